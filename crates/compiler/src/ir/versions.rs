//! Versions of variables or classes of memory: which write is the last one before each block.

use crate::internal::Internal;
use crate::ir::cfg::Cfg;

/// The version at the function's entry.
pub(crate) const ENTRY: u32 = 0;

/// The write that a variable has its value from: 0 for the entry, the number of a write, which is below 2^31, or a block where versions meet.
pub type Version = u32;

const MET: Version = 1 << 31;

/// The version of a variable for which different ones meet in the block at a position.
const fn met(position: u32) -> Version {
    MET | position
}

/// The position of the block where versions met; `None` for the entry and for writes.
pub(crate) const fn met_at(version: Version) -> Option<u32> {
    if version & MET != 0 { Some(version & !MET) } else { None }
}

/// Versions of `N` variables at the start of each block, by its position.
pub struct Versions<const N: usize> {
    /// None if all are those of the entry.
    before: Vec<[Version; N]>,
}

impl<const N: usize> std::fmt::Debug for Versions<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Versions").finish_non_exhaustive()
    }
}

impl<const N: usize> Versions<N> {
    /// The versions in a graph in which the last writes of each block, by its position, are these.
    ///
    /// # Errors
    /// A block comes before all its predecessors.
    pub fn of(cfg: &Cfg, last: &[[Option<Version>; N]]) -> Result<Self, Internal> {
        // All are those of the entry.
        if last.iter().all(|last| *last == [None; N]) {
            return Ok(Self { before: Vec::new() });
        }
        let count = cfg.order().len();
        let mut before: Vec<Option<[Version; N]>> = vec![None; count];
        let after = |before: &[Option<[Version; N]>], position: u32| {
            let (written, versions) = (last[position as usize], before[position as usize]?);
            Some(std::array::from_fn::<Version, N, _>(|at| match written[at] {
                Some(written) => written,
                None => versions[at],
            }))
        };
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for position in 0..count as u32 {
                let old = before[position as usize];
                let mut known = cfg.predecessors(position).iter().filter_map(|&from| after(&before, from));
                let mut new = match known.next() {
                    Some(new) => new,
                    None if position == 0 => [ENTRY; N],
                    None => return Err(Internal("a block comes before all its predecessors")),
                };
                for other in known {
                    for (version, other) in new.iter_mut().zip(other) {
                        if *version != other {
                            *version = met(position);
                        }
                    }
                }
                // Versions that met once stay so, which makes the search end.
                for (version, old) in new.iter_mut().zip(old.into_iter().flatten()) {
                    if old == met(position) {
                        *version = old;
                    }
                }
                if old != Some(new) {
                    (before[position as usize], changed) = (Some(new), cfg.has_loops());
                }
            }
        }
        let before = before.into_iter().collect::<Option<_>>();
        Ok(Self { before: before.ok_or(Internal("a block has no versions"))? })
    }

    /// The versions at the start of the block at a position.
    #[must_use]
    pub fn before(&self, position: u32) -> [Version; N] {
        if self.before.is_empty() { [ENTRY; N] } else { self.before[position as usize] }
    }
}
