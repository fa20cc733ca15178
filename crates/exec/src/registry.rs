//! All installed code by address, to be asked from anywhere, signal handlers included.
//!
//! The table is replaced as a whole, by whoever installs or frees. Who looks counts itself in, takes the current
//! table, and counts itself out: no lock, no allocation. Old tables are freed by the next change that sees nobody
//! looking; whoever comes later finds a newer one, because the count and the pointer are accessed in one total order.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::code::{Function, SourceLine};
use crate::sync::lock;

/// Code that can be found: from its installation to the end of its grace period.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) range: Range<usize>,
    pub(crate) functions: Arc<[Function]>,
}

/// By ascending address, without overlap. Pointers and not [`Arc`]s, so that a copy of the table is a copy of memory:
/// code stays in the table no longer than its [`Arc`] is held by whoever inserted it, and then by [`OLD`].
type Table = Vec<(usize, *const Installed)>;

static CURRENT: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());
static LOOKING: AtomicUsize = AtomicUsize::new(0);
/// What someone may still be looking at. Also the lock of those who change the table.
static OLD: Mutex<Old> = Mutex::new(Old { tables: Vec::new(), code: Vec::new() });

struct Old {
    /// Pointers and not boxes, which would claim to be the only way to what is in them.
    tables: Vec<*mut Table>,
    code: Vec<Arc<Installed>>,
}

// SAFETY: tables may be read and freed on any thread, as the code that they point to may.
unsafe impl Send for Old {}

/// What an address in generated code belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Location<'a> {
    /// The function.
    pub function: &'a Function,
    /// Bytes from the start of the function.
    pub offset: u32,
    /// The instruction that the code was made from; `None` in code that belongs to none, such as a prologue.
    pub slot: Option<u32>,
    /// The source line of that instruction, where there is line information.
    pub line: Option<&'a SourceLine>,
}

/// Calls `with` with what the address `pc` belongs to, if it lies in a function of installed code.
///
/// May be called in a signal handler, on any thread: takes no lock, allocates nothing, and frees nothing. What `with`
/// does should be as careful; it must not install or drop code.
pub fn find<R>(pc: usize, with: impl FnOnce(Location<'_>) -> R) -> Option<R> {
    /// Counts out also if `with` panics.
    struct Look;
    impl Drop for Look {
        fn drop(&mut self) {
            LOOKING.fetch_sub(1, Ordering::SeqCst);
        }
    }
    LOOKING.fetch_add(1, Ordering::SeqCst);
    let _look = Look;
    // SAFETY: null or a table from a box. It was current after we had counted ourselves in, and `replace` frees no
    // table that was current since while anybody is counted in.
    let table = unsafe { CURRENT.load(Ordering::SeqCst).as_ref() }?;
    let after = table.partition_point(|&(start, _)| start <= pc);
    let &(_, code) = table.get(after.checked_sub(1)?)?;
    // SAFETY: code in a table that is in use is alive: it is freed with the tables that it was in, or later.
    let code = unsafe { &*code };
    let offset = u32::try_from(pc - code.range.start).ok()?;
    let own = |function: &&Function| offset.checked_sub(function.start).is_some_and(|at| at < function.len);
    let function = code.functions.iter().find(own)?;
    let slot = function.map.slot(offset);
    let line = slot.and_then(|slot| function.line(slot));
    Some(with(Location { function, offset: offset - function.start, slot, line }))
}

/// Lets code be found. It is alive until after [`remove`].
pub(crate) fn insert(code: &Arc<Installed>) {
    let start = code.range.start;
    replace(&mut lock(&OLD), |table| {
        let place = table.partition_point(|&(other, _)| other < start);
        table.insert(place, (start, Arc::as_ptr(code)));
    });
}

/// The opposite.
pub(crate) fn remove(code: &Arc<Installed>) {
    let mut old = lock(&OLD);
    old.code.push(Arc::clone(code));
    replace(&mut old, |table| table.retain(|&(_, other)| other != Arc::as_ptr(code)));
}

fn replace(old: &mut Old, change: impl FnOnce(&mut Table)) {
    let current = CURRENT.load(Ordering::SeqCst);
    // SAFETY: null or a table from a box, freed by nobody but the holder of the lock, which our caller is.
    let mut table = unsafe { current.as_ref() }.cloned().unwrap_or_default();
    change(&mut table);
    CURRENT.store(Box::into_raw(Box::new(table)), Ordering::SeqCst);
    if !current.is_null() {
        old.tables.push(current);
    }
    // In a signal handler the one who looks may be this very thread, which therefore does not wait.
    if LOOKING.load(Ordering::SeqCst) == 0 {
        for table in old.tables.drain(..) {
            // SAFETY: came from a box, was current once and is no longer, and nobody looks who may have seen it so.
            drop(unsafe { Box::from_raw(table) });
        }
        old.code.clear();
    }
}
