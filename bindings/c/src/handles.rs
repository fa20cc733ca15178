//! Handles: tables of what C holds, and numbers that name it.
//!
//! A handle is no address. It is a number, typed as a pointer so that the C compiler tells kinds apart: the kind, the index of a cell in
//! the kind's table, and the generation of the cell, which counts up when a handle is freed. So a handle that is null, was
//! freed, is of another kind, or was never given out is found to be so without any access to memory that it might name, and a number is
//! never given out twice.
//!
//! A value that several threads may use is cloned out of its cell (`Arc`), so that freeing the handle ends nothing that runs. What one
//! thread at a time may use is locked in its cell, and a second user is refused instead of waiting: it may be a callback of the first.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use try_lock::TryLock;

use crate::opaque::{Opaque, name_of};
use crate::status::{Failure, paceline_status};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("handles have 64 bits");

const INDEX_BITS: u32 = 24;
const KIND_SHIFT: u32 = 56;
/// Cells of the first segment; each segment has twice as many as the one before.
const FIRST: usize = 64;
/// As many as cells of all indices need.
const SEGMENTS: usize = 18;
const CELLS: usize = FIRST * ((1 << SEGMENTS) - 1);
const _: () = assert!(CELLS <= 1 << INDEX_BITS);

/// Number of handles that were given out and not freed, of all kinds.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The handles of a kind.
pub(crate) struct Table<T, O> {
    segments: [OnceLock<Box<[Cell<T>]>>; SEGMENTS],
    free: Mutex<Free>,
    kind: std::marker::PhantomData<fn() -> O>,
}

struct Cell<T> {
    /// Generation of the handle that names the cell, or of the next one.
    generation: AtomicU32,
    content: TryLock<Content<T>>,
}

struct Content<T> {
    value: Option<T>,
    /// Whether a call ended by a panic while it used the value.
    is_broken: bool,
}

/// Cells without a value.
struct Free {
    freed: Vec<u32>,
    /// The first index that was never used.
    next: u32,
}

/// A value that is used by one thread.
pub(crate) struct Locked<'a, T>(try_lock::Locked<'a, Content<T>>);

impl<T> Deref for Locked<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.0.value.as_ref().unwrap_or_else(|| unreachable!("checked when it was locked"))
    }
}

impl<T> DerefMut for Locked<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.value.as_mut().unwrap_or_else(|| unreachable!("checked when it was locked"))
    }
}

impl<T> Drop for Locked<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_broken = true;
        }
    }
}

/// A handle that is looked at again and again.
pub(crate) struct Watch {
    handle: usize,
    generation: &'static AtomicU32,
}

impl Watch {
    /// Whether it is this handle, and was not freed.
    #[inline]
    pub(crate) fn is_live<O>(&self, handle: *const O) -> bool {
        self.handle == handle.addr() && self.generation.load(Ordering::Acquire) == generation_of(self.handle)
    }
}

/// Place of an index: its segment, and where in it.
#[inline]
fn place(index: usize) -> (usize, usize) {
    let segment = (index / FIRST + 1).ilog2() as usize;
    (segment, index - FIRST * ((1 << segment) - 1))
}

#[inline]
fn generation_of(handle: usize) -> u32 {
    (handle >> INDEX_BITS) as u32
}

impl<T, O: Opaque> Table<T, O> {
    pub(crate) const fn new() -> Self {
        Self {
            segments: [const { OnceLock::new() }; SEGMENTS],
            free: Mutex::new(Free { freed: Vec::new(), next: 0 }),
            kind: std::marker::PhantomData,
        }
    }

    /// Gives a value to C.
    pub(crate) fn give(&self, value: T) -> Result<*mut O, Failure> {
        let index = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            match free.freed.pop() {
                Some(index) => index,
                None if (free.next as usize) < CELLS => {
                    free.next += 1;
                    free.next - 1
                }
                None => {
                    return Err(Failure::new(paceline_status::NoRoom, "all handles of the kind are in use"));
                }
            }
        };
        let (segment, offset) = place(index as usize);
        let cells =
            self.segments[segment].get_or_init(|| (0..FIRST << segment).map(|_| Cell::new()).collect());
        let cell = &cells[offset];
        *cell.wait() = Content { value: Some(value), is_broken: false };
        LIVE.fetch_add(1, Ordering::Relaxed);
        let generation = cell.generation.load(Ordering::Relaxed) as usize;
        let handle = (O::KIND as usize) << KIND_SHIFT | generation << INDEX_BITS | index as usize;
        Ok(std::ptr::without_provenance_mut(handle))
    }

    /// The cell of a handle, whose generation may be another one.
    #[inline]
    fn cell(&self, handle: *const O) -> Result<&Cell<T>, Failure> {
        let handle = handle.addr();
        let (segment, offset) = place(handle & ((1 << INDEX_BITS) - 1));
        let is_kind = handle >> KIND_SHIFT == O::KIND as usize;
        let cells = self.segments.get(segment).filter(|_| is_kind).and_then(OnceLock::get);
        cells.and_then(|cells| cells.get(offset)).ok_or_else(|| wrong::<O>(handle))
    }

    /// Generation: tells whether a handle was freed.
    pub(crate) fn watch(&'static self, handle: *const O) -> Result<Watch, Failure> {
        Ok(Watch { handle: handle.addr(), generation: &self.cell(handle)?.generation })
    }

    /// The value of a handle that any thread may use.
    pub(crate) fn get(&self, handle: *const O) -> Result<T, Failure>
    where
        T: Clone,
    {
        let cell = self.cell(handle)?;
        let content = cell.wait();
        cell.check::<O>(handle)?;
        content.value.clone().ok_or_else(|| wrong::<O>(handle.addr()))
    }

    /// The value of a handle that one thread at a time may use.
    #[inline]
    pub(crate) fn lock(&self, handle: *const O) -> Result<Locked<'_, T>, Failure> {
        let cell = self.cell(handle)?;
        let content = cell.content.try_lock().ok_or_else(busy::<O>)?;
        cell.check::<O>(handle)?;
        match &*content {
            Content { is_broken: true, .. } => Err(broken::<O>()),
            Content { value: None, .. } => Err(wrong::<O>(handle.addr())),
            Content { value: Some(_), .. } => Ok(Locked(content)),
        }
    }

    /// Takes a value back: the handle is no longer one. `refuse` may say that it has to stay.
    pub(crate) fn take_if(
        &self,
        handle: *const O,
        refuse: impl FnOnce(&mut T) -> Result<(), Failure>,
    ) -> Result<T, Failure> {
        let cell = self.cell(handle)?;
        let mut content =
            if O::IS_LOCKED { cell.content.try_lock().ok_or_else(busy::<O>)? } else { cell.wait() };
        cell.check::<O>(handle)?;
        let found = content.value.as_mut().ok_or_else(|| wrong::<O>(handle.addr()))?;
        refuse(found)?;
        let taken = content.value.take().ok_or_else(|| wrong::<O>(handle.addr()))?;
        let generation = cell.generation.load(Ordering::Relaxed);
        cell.generation.store(generation.wrapping_add(1), Ordering::Release);
        drop(content);
        LIVE.fetch_sub(1, Ordering::Relaxed);
        // A cell whose generations are used up names nothing any more.
        if generation < u32::MAX {
            let index = (handle.addr() & ((1 << INDEX_BITS) - 1)) as u32;
            self.free.lock().unwrap_or_else(PoisonError::into_inner).freed.push(index);
        }
        Ok(taken)
    }

    /// Frees a handle. Nothing happens for null, as with `free`.
    pub(crate) fn free(&self, handle: *const O) -> Result<(), Failure> {
        if !handle.is_null() {
            drop(self.take_if(handle, |_| Ok(()))?);
        }
        Ok(())
    }
}

impl<T> Cell<T> {
    fn new() -> Self {
        let content = TryLock::new(Content { value: None, is_broken: false });
        Self { generation: AtomicU32::new(1), content }
    }

    /// Locks the cell of a value that any thread may use: others hold it as long as it takes to clone the value.
    fn wait(&self) -> try_lock::Locked<'_, Content<T>> {
        loop {
            match self.content.try_lock() {
                Some(content) => return content,
                None => std::thread::yield_now(),
            }
        }
    }

    /// Checks, now that the cell is locked, that the handle is its value's.
    #[inline]
    fn check<O: Opaque>(&self, handle: *const O) -> Result<(), Failure> {
        let is_same = self.generation.load(Ordering::Relaxed) == generation_of(handle.addr());
        if is_same { Ok(()) } else { Err(wrong::<O>(handle.addr())) }
    }
}

/// Number of handles that were given out and not freed.
pub(crate) fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// The error of a handle that names nothing.
#[cold]
fn wrong<O: Opaque>(handle: usize) -> Failure {
    let wanted = O::NAME;
    let kind = name_of((handle >> KIND_SHIFT) as u8);
    let message = match kind {
        _ if handle == 0 => format!("null is given for {wanted}"),
        Some(kind) if kind == wanted => format!("the handle of {wanted} was freed, or is none"),
        Some(kind) => format!("a handle of {kind} is given for {wanted}"),
        None => format!("what is given for {wanted} is no handle"),
    };
    Failure::new(paceline_status::Handle, message)
}

#[cold]
fn busy<O: Opaque>() -> Failure {
    let name = O::NAME;
    Failure::new(
        paceline_status::Busy,
        format!("{name} is in use by another thread, or by the call that called back"),
    )
}

#[cold]
fn broken<O: Opaque>() -> Failure {
    let name = O::NAME;
    Failure::new(
        paceline_status::Panic,
        format!("{name} was left by a call that ended by a panic; it can only be freed"),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::opaque::{paceline_burst, paceline_map};

    #[test]
    fn indices_have_places_of_their_own() {
        assert_eq!([0, 63, 64, 191, 192].map(place), [(0, 0), (0, 63), (1, 0), (1, 127), (2, 0)]);
        assert_eq!(place(CELLS - 1), (SEGMENTS - 1, (FIRST << (SEGMENTS - 1)) - 1));
        assert_eq!(place(CELLS).0, SEGMENTS);
    }

    #[test]
    fn a_number_is_given_out_once() {
        let table = Table::<Arc<u32>, paceline_map>::new();
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..1000 {
            let handle = table.give(Arc::new(round)).unwrap();
            assert!(seen.insert(handle.addr()));
            assert_eq!(*table.get(handle).unwrap(), round);
            table.free(handle).unwrap();
            assert_eq!(table.free(handle).unwrap_err().status(), paceline_status::Handle);
        }
        let many: Vec<_> = (0..500).map(|n| table.give(Arc::new(n)).unwrap()).collect();
        assert!(many.iter().enumerate().all(|(n, handle)| *table.get(*handle).unwrap() == n as u32));
    }

    #[test]
    fn any_number_that_is_no_handle_is_refused() {
        let table = Table::<Arc<u32>, paceline_map>::new();
        let handle = table.give(Arc::new(7)).unwrap().addr();
        let wrong = [
            0,
            1,
            usize::MAX,
            handle + 1,
            handle ^ 1 << KIND_SHIFT,
            handle ^ 1 << INDEX_BITS,
            handle | 0xff_ffff,
        ];
        for number in wrong {
            let status = table.get(std::ptr::without_provenance(number)).unwrap_err().status();
            assert_eq!(status, paceline_status::Handle, "{number:#x}");
        }
    }

    #[test]
    fn a_shared_value_can_be_freed_while_others_look_at_it() {
        let table = Table::<Arc<u32>, paceline_map>::new();
        let current = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let look = || {
                while current.load(Ordering::Relaxed) != usize::MAX {
                    let handle = std::ptr::without_provenance(current.load(Ordering::Relaxed));
                    if let Err(failure) = table.get(handle) {
                        assert_eq!(failure.status(), paceline_status::Handle);
                    }
                }
            };
            let others = [scope.spawn(look), scope.spawn(look)];
            for round in 0..20_000 {
                let handle = table.give(Arc::new(round)).unwrap();
                current.store(handle.addr(), Ordering::Relaxed);
                table.free(handle).unwrap();
            }
            current.store(usize::MAX, Ordering::Relaxed);
            others.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    #[test]
    fn what_a_panic_left_can_only_be_freed() {
        let table = Table::<u32, paceline_burst>::new();
        let handle = table.give(7).unwrap();
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _locked = table.lock(handle).unwrap();
            panic!("meant");
        }));
        assert!(panics.is_err());
        assert_eq!(table.lock(handle).map(drop).unwrap_err().status(), paceline_status::Panic);
        table.free(handle).unwrap();
        let next = table.give(8).unwrap();
        assert_eq!(*table.lock(next).unwrap(), 8);
    }

    #[test]
    fn a_locked_value_is_refused_to_others_and_stays() {
        let table = Table::<u32, paceline_burst>::new();
        let handle = table.give(7).unwrap();
        let locked = table.lock(handle).unwrap();
        assert_eq!(table.lock(handle).map(drop).unwrap_err().status(), paceline_status::Busy);
        assert_eq!(table.free(handle).unwrap_err().status(), paceline_status::Busy);
        drop(locked);
        assert_eq!(*table.lock(handle).unwrap(), 7);
    }
}
