//! Stores to the stack that the compiler remembers: their offsets and sizes, and constants.
//!
//! Store-to-load forwarding works for loads that read the same bytes as the store, or some of them; a longer load waits until the
//! store has left the store buffer for the cache. A key that was stored field by field is therefore loaded field by field.

/// One store to the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StackStore {
    /// Offset from the frame pointer in bytes.
    pub(crate) at: i32,
    /// Size in bytes: 1, 2, 4 or 8.
    pub(crate) bytes: u8,
    /// The stored constant, if it is one, zero-extended.
    pub(crate) number: Option<u64>,
}

impl StackStore {
    fn end(&self) -> i32 {
        self.at + i32::from(self.bytes)
    }
}

/// Number of stores that are remembered: enough for the fields of common keys.
const MOST: usize = 8;

/// Size of loads in bytes where the stores are unknown: keys are mostly structures of 4-byte fields.
const LONGEST: i32 = 4;

/// The last stores to the stack, without overlaps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StackStores {
    parts: [StackStore; MOST],
    len: usize,
}

impl StackStores {
    fn all(&self) -> &[StackStore] {
        self.parts.get(..self.len).unwrap_or_default()
    }

    /// Records a store.
    pub(crate) fn store(&mut self, new: StackStore) {
        self.forget(new.at, new.end());
        if self.len == MOST {
            self.parts.rotate_left(1);
            self.len -= 1;
        }
        if let Some(place) = self.parts.get_mut(self.len) {
            *place = new;
            self.len += 1;
        }
    }

    /// Drops stores that overlap the bytes from `start` to `end`.
    pub(crate) fn forget(&mut self, start: i32, end: i32) {
        let old = std::mem::take(self);
        for part in old.all().iter().filter(|part| part.end() <= start || end <= part.at) {
            if let Some(place) = self.parts.get_mut(self.len) {
                *place = *part;
                self.len += 1;
            }
        }
    }

    /// Splits `bytes` bytes from `start` into parts that can be loaded with store forwarding.
    pub(crate) fn of(&self, start: i32, bytes: u8) -> impl Iterator<Item = StackStore> {
        let end = start + i32::from(bytes);
        let mut at = start;
        std::iter::from_fn(move || {
            let left = end - at;
            if left <= 0 {
                return None;
            }
            let stored = self.all().iter().find(|part| part.at == at && part.end() <= end);
            let part = stored.copied().unwrap_or_else(|| {
                let next = self.all().iter().map(|part| part.at - at).filter(|&ahead| ahead > 0);
                let most = next.fold(left.min(LONGEST), i32::min);
                StackStore { at, bytes: 1 << most.ilog2(), number: None }
            });
            at = part.end();
            Some(part)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{StackStore, StackStores};

    fn parts(stores: &[(i32, u8)]) -> StackStores {
        let mut parts = StackStores::default();
        stores.iter().for_each(|&(at, bytes)| parts.store(StackStore { at, bytes, number: None }));
        parts
    }

    fn loads(stores: &[(i32, u8)], start: i32, bytes: u8) -> Vec<(i32, u8)> {
        parts(stores).of(start, bytes).map(|part| (part.at, part.bytes)).collect()
    }

    #[test]
    fn bytes_are_loaded_as_they_were_stored() {
        assert_eq!(loads(&[], -8, 8), [(-8, 4), (-4, 4)]);
        assert_eq!(loads(&[], -8, 7), [(-8, 4), (-4, 2), (-2, 1)]);
        assert_eq!(loads(&[(-8, 8)], -8, 8), [(-8, 8)]);
        assert_eq!(loads(&[(-1, 1), (-2, 1), (-8, 4), (-4, 2)], -8, 8), [(-8, 4), (-4, 2), (-2, 1), (-1, 1)]);
        // Only some stores are known, or a store is longer than the load.
        assert_eq!(loads(&[(-5, 1)], -8, 8), [(-8, 2), (-6, 1), (-5, 1), (-4, 4)]);
        assert_eq!(loads(&[(-8, 8)], -8, 4), [(-8, 4)]);
        assert_eq!(loads(&[(-8, 8)], -4, 4), [(-4, 4)]);
    }

    #[test]
    fn a_later_store_takes_the_place_of_an_earlier_one() {
        assert_eq!(loads(&[(-8, 8), (-6, 2)], -8, 8), [(-8, 2), (-6, 2), (-4, 4)]);
        let many: Vec<(i32, u8)> = (-12..0).map(|at| (at, 1)).collect();
        assert_eq!(loads(&many, -12, 8)[..5], [(-12, 4), (-8, 1), (-7, 1), (-6, 1), (-5, 1)]);
    }

    #[test]
    fn numbers_are_forgotten_with_any_byte() {
        let mut parts = StackStores::default();
        parts.store(StackStore { at: -8, bytes: 4, number: Some(7) });
        parts.forget(-4, 0);
        assert_eq!(parts.of(-8, 4).next().and_then(|part| part.number), Some(7));
        parts.forget(-5, -4);
        assert_eq!(parts.of(-8, 4).next().and_then(|part| part.number), None);
    }
}
