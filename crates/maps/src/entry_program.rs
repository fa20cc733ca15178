//! Programs that entries of device and CPU maps name, by number, where the kernel takes a descriptor (`__dev_map_alloc_node` in
//! `kernel/bpf/devmap.c`, `__cpu_map_load_bpf_program` in `kernel/bpf/cpumap.c`). An entry keeps its program.
//!
//! Maps that hold programs (in timers, as program arrays, or in such entries) drop them with the map's last user (`MapUser`). A
//! user of a map of maps is also a user of the inner maps.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline_epoch::Domain;
use paceline_spec::{Errno, XdpAttach};

use crate::entries::{Entries, Pair};

/// A program that was made for entries of maps.
pub trait EntryProgram: Any + Send + Sync {
    /// The maps whose entries it was made for.
    fn attach(&self) -> XdpAttach;
}

type Programs = BTreeMap<u32, Weak<dyn EntryProgram>>;

/// The programs of this process, by number, while they exist.
fn programs() -> MutexGuard<'static, Programs> {
    static PROGRAMS: Mutex<Programs> = Mutex::new(BTreeMap::new());
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of times that an entry released a program.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Registers a program by its number, for entries to name; replaces an earlier one.
///
/// # Safety
/// An engine that knows the program's type runs it: it must be what the engine makes of a program.
pub unsafe fn announce(number: u32, program: Weak<dyn EntryProgram>) {
    let mut programs = programs();
    programs.retain(|_, program| program.strong_count() > 0);
    programs.insert(number, program);
}

/// The program of a number, if it still exists.
#[must_use]
pub fn entry_program(number: u32) -> Option<Arc<dyn EntryProgram>> {
    programs().get(&number)?.upgrade()
}

/// A number that changes whenever an entry releases its program: cached programs of entries must be looked up again.
#[must_use]
pub fn entry_program_changes() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

/// The program that the second half of a value names, if it names one; the error if there is none, or of another attach type.
pub(crate) fn named(
    value: Pair,
    attach: XdpAttach,
    otherwise: Errno,
) -> Result<Option<Arc<dyn EntryProgram>>, Errno> {
    match value.second {
        0 => Ok(None),
        number => {
            Domain::global().admit().map_err(|_| Errno::ENOMEM)?;
            let program = entry_program(number).filter(|program| program.attach() == attach);
            program.map(Some).ok_or(otherwise)
        }
    }
}

/// The programs that the entries of a map keep, by key.
#[derive(Default)]
pub(crate) struct Kept(Mutex<BTreeMap<u32, Arc<dyn EntryProgram>>>);

impl Kept {
    /// Changes an entry, and the program it keeps if the change succeeded.
    pub(crate) fn change<T, E>(
        &self,
        key: u32,
        program: Option<Arc<dyn EntryProgram>>,
        change: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change()?;
        let displaced = match program {
            Some(program) => kept.insert(key, program),
            None => kept.remove(&key),
        };
        drop(kept);
        displaced.into_iter().for_each(let_go);
        Ok(changed)
    }

    /// Sets an entry of an array, and the program it keeps.
    pub(crate) fn put(
        &self,
        entries: &Entries,
        index: usize,
        value: Pair,
        program: Option<Arc<dyn EntryProgram>>,
    ) -> Result<(), Errno> {
        self.change(index as u32, program, || {
            entries.swap(index, value.to_word());
            Ok(())
        })
    }

    /// Lets all go.
    pub(crate) fn clear(&self) {
        let kept = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        kept.into_values().for_each(let_go);
    }
}

/// Workers that are in a burst may have read the number.
fn let_go(program: Arc<dyn EntryProgram>) {
    Domain::global().retire(program);
    CHANGES.fetch_add(1, Ordering::Release);
}
