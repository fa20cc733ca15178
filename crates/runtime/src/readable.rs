//! Memory that helpers with unchecked addresses may read, on engines without regions.
//!
//! These are values of the program's maps and the stack of the calling function: interpreters record the maps on entry, native code
//! before the call. In functions whose formats ask for text, the whole stack is zeroed on entry and no store to it is dead.

use std::ops::Range;
use std::sync::Arc;

use paceline_maps::Map;

/// Memory of a program besides its packet. Generated code stores it word by word.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Readable {
    maps: *const Arc<Map>,
    count: usize,
    stack_end: u64,
    stack_len: u64,
}

impl std::fmt::Debug for Readable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readable").finish_non_exhaustive()
    }
}

impl Default for Readable {
    fn default() -> Self {
        Self { maps: std::ptr::null(), count: 0, stack_end: 0, stack_len: 0 }
    }
}

impl Readable {
    /// The maps of a program that begins to run, without a stack.
    #[inline]
    pub fn of(maps: &[Arc<Map>]) -> Self {
        Self { maps: maps.as_ptr(), count: maps.len(), ..Self::default() }
    }

    /// Whether the maps are those of another program.
    #[inline]
    pub fn is_of_another(&self, other: &Self) -> bool {
        self.maps != other.maps
    }

    /// Sets the stack of the running function: `len` bytes that end at an address.
    pub fn set_stack(&mut self, end: u64, len: usize) {
        (self.stack_end, self.stack_len) = (end, len as u64);
    }

    /// Number of readable bytes at an address, at most `most`.
    ///
    /// # Safety
    /// The maps and the stack must exist.
    pub unsafe fn at(&self, address: u64, most: usize) -> usize {
        let maps = if self.maps.is_null() {
            &[]
        } else {
            // SAFETY: the maps were given as a slice, and are guaranteed by the caller.
            unsafe { std::slice::from_raw_parts(self.maps, self.count) }
        };
        readable_at(address, most, maps, self.stack_end - self.stack_len..self.stack_end)
    }
}

/// Number of bytes at an address that lie in one value of a map or on a stack, at most `most`.
pub fn readable_at(address: u64, most: usize, maps: &[Arc<Map>], stack: Range<u64>) -> usize {
    if stack.contains(&address) {
        return most.min((stack.end - address) as usize);
    }
    let start = address as usize;
    let may_read =
        |map: &&Arc<Map>| map.for_programs().access().read && map.for_programs().contains(start, 1);
    let Some(map) = maps.iter().find(may_read) else { return 0 };
    let is_there = |len: usize| {
        map.for_programs().contains(start, len) && !map.for_programs().touches_special(start, len)
    };
    longest(most, is_there)
}

/// Greatest allowed length up to `most`; `allowed` must be monotonic.
pub fn longest(most: usize, allowed: impl Fn(usize) -> bool) -> usize {
    let (mut allowed_len, mut beyond) = (0, most + 1);
    while allowed_len + 1 < beyond {
        let len = usize::midpoint(allowed_len, beyond);
        if allowed(len) {
            allowed_len = len;
        } else {
            beyond = len;
        }
    }
    allowed_len
}
