//! Table of all installed code by address, for lookups from anywhere, including signal handlers.
//!
//! The table consists of parts with some hundred entries, by address. A writer replaces one part by a modified copy; if the part is
//! too long, it is split, and the table is replaced. A reader increments a counter, loads the current table and the current part,
//! and decrements the counter: no lock, no allocation. Old parts and tables are freed by the next change that finds the counter at
//! zero; later readers find newer ones, because the counter and the pointers are accessed in one total order.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::exec::code::{Function, SourceLine};
use crate::exec::sync::lock;

/// Registered code: from its installation to the end of its grace period.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) range: Range<usize>,
    pub(crate) functions: Arc<[Function]>,
}

/// By increasing address, without overlap. Pointers instead of [`Arc`]s, so that a copy is a copy of memory: code stays in its part
/// no longer than its [`Arc`] is held by its owner, and then by [`OLD`].
type Part = Vec<(usize, *const Installed)>;

/// Parts with their start addresses: 0 for the first. Each ends where the next begins, and may be empty.
type Table = Box<[(usize, AtomicPtr<Part>)]>;

/// Maximum number of entries of a part: the amount that a change copies, while the table is copied once per half as many.
const MOST: usize = 256;

static CURRENT: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());
static LOOKING: AtomicUsize = AtomicUsize::new(0);
/// Garbage that a reader may still access. The mutex also serializes changes of the table.
static OLD: Mutex<Old> = Mutex::new(Old { tables: Vec::new(), parts: Vec::new(), code: Vec::new() });

struct Old {
    /// Raw pointers instead of boxes, which would assert unique access to their contents.
    tables: Vec<*mut Table>,
    parts: Vec<*mut Part>,
    code: Vec<Arc<Installed>>,
}

// SAFETY: tables and parts may be read and freed on any thread, as may the code that they point to.
unsafe impl Send for Old {}

/// Result of a lookup of an address in generated code.
#[derive(Clone, Copy, Debug)]
pub struct Location<'a> {
    /// The function.
    pub function: &'a Function,
    /// Offset from the start of the function in bytes.
    pub offset: u32,
    /// The slot that the code was compiled from; `None` for code without one, such as a prologue.
    pub slot: Option<u32>,
    /// The source line of that slot, if line information is available.
    pub line: Option<&'a SourceLine>,
}

/// Calls `with` with the location of the address `pc`, if it is within a function of installed code.
///
/// Async-signal-safe on any thread: takes no lock, allocates nothing, and frees nothing. The same restrictions apply to `with`,
/// which must not install or drop code.
pub fn find<R>(pc: usize, with: impl FnOnce(Location<'_>) -> R) -> Option<R> {
    /// Decrements the counter, also if `with` panics.
    struct Look;
    impl Drop for Look {
        fn drop(&mut self) {
            LOOKING.fetch_sub(1, Ordering::SeqCst);
        }
    }
    LOOKING.fetch_add(1, Ordering::SeqCst);
    let _look = Look;
    // SAFETY: null or a table from a box. It was current after the counter was incremented, and `Old::free` frees nothing that was
    // current since while the counter is nonzero.
    let table = unsafe { CURRENT.load(Ordering::SeqCst).as_ref() }?;
    // SAFETY: from a box, and protected like the table.
    let part = unsafe { part_of(table, pc)?.load(Ordering::SeqCst).as_ref() }?;
    let after = part.partition_point(|&(start, _)| start <= pc);
    let &(_, code) = part.get(after.checked_sub(1)?)?;
    // SAFETY: code in a part that is in use is alive: it is freed together with the parts that contained it, or later.
    let code = unsafe { &*code };
    let offset = u32::try_from(pc - code.range.start).ok()?;
    let own = |function: &&Function| offset.checked_sub(function.start).is_some_and(|at| at < function.len);
    let function = code.functions.iter().find(own)?;
    let slot = function.map.slot(offset);
    let line = slot.and_then(|slot| function.line(slot));
    Some(with(Location { function, offset: offset - function.start, slot, line }))
}

/// The part of an address.
fn part_of(table: &Table, address: usize) -> Option<&AtomicPtr<Part>> {
    let after = table.partition_point(|&(start, _)| start <= address);
    table.get(after.checked_sub(1)?).map(|(_, part)| part)
}

/// Registers code, which must stay alive until after [`remove`].
pub(crate) fn insert(code: &Arc<Installed>) {
    let start = code.range.start;
    lock(&OLD).change(start, |part| {
        let place = part.partition_point(|&(other, _)| other < start);
        part.insert(place, (start, Arc::as_ptr(code)));
    });
}

/// Unregisters code.
pub(crate) fn remove(code: &Arc<Installed>) {
    let mut old = lock(&OLD);
    old.code.push(Arc::clone(code));
    old.change(code.range.start, |part| part.retain(|&(_, other)| other != Arc::as_ptr(code)));
}

impl Old {
    /// Replaces the part of an address by a modified copy.
    fn change(&mut self, address: usize, change: impl FnOnce(&mut Part)) {
        // SAFETY: null or a table from a box, freed only by the holder of the lock, which is the caller.
        let table = unsafe { CURRENT.load(Ordering::SeqCst).as_ref() };
        let place = table.and_then(|table| part_of(table, address));
        let current = place.map_or(ptr::null_mut(), |place| place.load(Ordering::SeqCst));
        // SAFETY: as above.
        // default: a part that is not there is empty.
        let mut part = unsafe { current.as_ref() }.cloned().unwrap_or_default();
        change(&mut part);
        match place {
            Some(place) if part.len() <= MOST => {
                place.store(Box::into_raw(Box::new(part)), Ordering::SeqCst);
                self.parts.push(current);
            }
            _ => self.split(table.map_or(&[], |table| table), current, part),
        }
        self.free();
    }

    /// Replaces the table by one in which a part is split into two halves, and empty parts are removed.
    fn split(&mut self, table: &[(usize, AtomicPtr<Part>)], old: *mut Part, mut part: Part) {
        let mut parts = Vec::with_capacity(table.len() + 1);
        let mut put = |start, part| parts.push((start, AtomicPtr::new(part)));
        let upper = part.split_off(part.len() / 2);
        let mut halves = Some((part, upper));
        let first = [(0, AtomicPtr::new(old))];
        for (start, place) in if table.is_empty() { &first } else { table } {
            let other = place.load(Ordering::SeqCst);
            // SAFETY: null or from a box, and freed only by the holder of the lock.
            let is_empty = unsafe { other.as_ref() }.is_none_or(Vec::is_empty);
            if other == old
                && let Some((lower, upper)) = halves.take()
            {
                put(*start, Box::into_raw(Box::new(lower)));
                if let Some(&(middle, _)) = upper.first().filter(|(middle, _)| middle != start) {
                    put(middle, Box::into_raw(Box::new(upper)));
                }
            } else if *start == 0 || !is_empty {
                put(*start, other);
                continue;
            }
            if !other.is_null() {
                self.parts.push(other);
            }
        }
        let new = Box::into_raw(Box::new(parts.into_boxed_slice()));
        let replaced = CURRENT.swap(new, Ordering::SeqCst);
        if !replaced.is_null() {
            self.tables.push(replaced);
        }
    }

    /// Frees garbage, if no reader is active.
    fn free(&mut self) {
        // In a signal handler the active reader may be this very thread, so waiting would deadlock.
        if LOOKING.load(Ordering::SeqCst) != 0 {
            return;
        }
        for table in self.tables.drain(..) {
            // SAFETY: came from a box, was current once and is no longer, and no reader that may have loaded it is active.
            drop(unsafe { Box::from_raw(table) });
        }
        for part in self.parts.drain(..) {
            // SAFETY: the same.
            drop(unsafe { Box::from_raw(part) });
        }
        self.code.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::exec::code::CodeMap;

    /// An address range without other code of this process.
    const LOW: usize = 1 << 12;
    const BYTES: usize = 16;

    fn code(place: usize) -> Arc<Installed> {
        let function = Function {
            name: place.to_string(),
            start: 0,
            len: BYTES as u32,
            map: CodeMap::new(vec![(0, place as u32)]),
            lines: [].into(),
        };
        let start = LOW + place * BYTES;
        Arc::new(Installed { range: start..start + BYTES, functions: [function].into() })
    }

    fn name_of(place: usize) -> Option<String> {
        find(LOW + place * BYTES + BYTES / 2, |found| found.function.name.clone())
    }

    #[test]
    fn code_is_found_from_its_insertion_to_its_removal() {
        const PLACES: usize = 5000;
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut place = 0;
                while !done.load(Ordering::Relaxed) {
                    place = (place + 7919) % PLACES;
                    assert!(name_of(place).is_none_or(|name| name == place.to_string()));
                }
            });
            let (mut installed, mut state) = (BTreeMap::new(), 1_usize);
            // Grows, shrinks, and grows elsewhere: parts are split, and become empty.
            for step in 0..30_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let place = (state >> 33) % (PLACES / 2) + if step < 15_000 { 0 } else { PLACES / 2 };
                let grows = step % 10_000 < 5_000;
                let is_there = installed.contains_key(&place);
                if grows && !is_there {
                    let code = code(place);
                    insert(&code);
                    installed.insert(place, code);
                } else if !grows && let Some((_, code)) = installed.pop_first() {
                    remove(&code);
                }
                if step % 500 == 0 {
                    let expected = |place| installed.contains_key(&place).then(|| place.to_string());
                    assert!((0..PLACES).all(|place| name_of(place) == expected(place)), "step {step}");
                }
            }
            installed.into_values().for_each(|code| remove(&code));
            assert!((0..PLACES).all(|place| name_of(place).is_none()));
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_change_does_not_copy_all_there_is() {
        let count = || {
            let _old = lock(&OLD);
            // SAFETY: a table from a box, which is freed only while the lock is held.
            let table = unsafe { CURRENT.load(Ordering::SeqCst).as_ref() };
            let len = |part: &AtomicPtr<Part>| {
                // SAFETY: as the table.
                unsafe { part.load(Ordering::SeqCst).as_ref() }.map_or(0, Vec::len)
            };
            table.map_or((0, 0), |table| {
                (table.len(), table.iter().map(|(_, part)| len(part)).max().unwrap_or_default())
            })
        };
        let all: Vec<_> = (10_000..20_000).map(code).collect();
        all.iter().for_each(insert);
        let (parts, longest) = count();
        assert!(parts <= 10_000 / (MOST / 2) + 64 && longest <= MOST, "{parts} of {longest} at most");
        all.iter().for_each(remove);
    }
}
