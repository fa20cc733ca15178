//! Timers in values of maps (`bpf_timer_init` and the others in `kernel/bpf/helpers.c`).
//!
//! A timer is a special field of a value, which programs neither load nor store. The map keeps its initialized timers by the address of
//! the field. An element that is freed cancels its timer.
//!
//! A started timer is in the [queue](TimerQueue) of the worker that started it, which fires it between bursts, as the kernel fires
//! a timer on the CPU that started it. Lock order: the timers of a map, a timer, a queue.
//!
//! No packet exists when a timer fires, so engines enter the callback by its address (`callback` in `paceline-runtime`). The state
//! of timers is under locks; their only atomic, the time of a queue's first timer, is a hint that the worker reads again in its
//! next burst.

use std::any::Any;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline_btf::{SpecialField, SpecialKind};
use paceline_epoch::Domain;
use paceline_spec::Errno;

/// The callback of a timer, as the engine that runs it represents it. Its drop must wait for workers that still run the
/// function.
pub(crate) type Callback = Arc<dyn Any + Send + Sync>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a timer of a queue is due: nanoseconds of the queue's clock, and its number among those of one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    at: u64,
    number: u64,
}

/// A timer in a value.
pub struct Timer {
    /// The map that it is in, of which timers know nothing else.
    map: Weak<dyn Any + Send + Sync>,
    /// Address of its field.
    address: usize,
    clock: u64,
    state: Mutex<State>,
}

impl std::fmt::Debug for Timer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timer").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    callback: Option<Callback>,
    /// Queue and due time, if started.
    running: Option<(Weak<TimerQueue>, Due)>,
    /// Whether the element was freed.
    is_gone: bool,
}

impl State {
    /// Stops the timer; whether it ran. Gives the queue as well, to be dropped outside the lock: its worker may have gone, and
    /// it is then the last to hold other timers.
    fn stop(&mut self) -> (bool, Option<Arc<TimerQueue>>) {
        let Some((queue, due)) = self.running.take() else { return (false, None) };
        let queue = queue.upgrade();
        (queue.as_ref().is_none_or(|queue| queue.remove(due)), queue)
    }
}

impl Timer {
    /// The clock, from `bpf_timer_init`: `CLOCK_REALTIME`, `CLOCK_MONOTONIC` or `CLOCK_BOOTTIME`.
    #[must_use]
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Sets the callback.
    ///
    /// # Errors
    /// `EINVAL`: the element was freed. `ENOMEM`: stalled workers keep too many retired values.
    ///
    /// # Safety
    /// The engine that fires due timers calls the function, if it knows the function, with a key and a value of the timer's map: the function
    /// must have been verified for that map.
    pub unsafe fn set_callback(&self, callback: Callback) -> Result<(), Errno> {
        if !Domain::global().has_room() {
            return Err(Errno::ENOMEM);
        }
        let mut state = lock(&self.state);
        if state.is_gone {
            return Err(Errno::EINVAL);
        }
        let old = state.callback.replace(callback);
        drop(state);
        // Outside the lock: it may be the last to hold a program.
        drop(old);
        Ok(())
    }

    /// Starts it, anew if it runs: it is due at a time of the queue's clock.
    ///
    /// # Errors
    /// `EINVAL`: it has nothing to call, or its element has gone.
    pub fn start(self: &Arc<Self>, queue: &Arc<TimerQueue>, at: u64) -> Result<(), Errno> {
        let mut state = lock(&self.state);
        if state.is_gone || state.callback.is_none() {
            return Err(Errno::EINVAL);
        }
        let (_, old) = state.stop();
        state.running = Some((Arc::downgrade(queue), queue.insert(at, self.clone())));
        drop(state);
        drop(old);
        Ok(())
    }

    /// Cancels the timer and drops the callback; returns whether it was started. A callback that another worker executes continues.
    pub fn cancel(&self) -> bool {
        let mut state = lock(&self.state);
        let ((ran, queue), callback) = (state.stop(), state.callback.take());
        drop(state);
        drop((queue, callback));
        ran
    }

    /// Ends it with its element.
    fn end(&self) {
        lock(&self.state).is_gone = true;
        self.cancel();
    }

    /// The callback of a timer that was due; `None` if it was cancelled or restarted since.
    pub(crate) fn end_run(&self, due: Due) -> Option<Callback> {
        let mut state = lock(&self.state);
        if state.running.as_ref().is_none_or(|(_, running)| *running != due) {
            return None;
        }
        state.running = None;
        state.callback.clone()
    }

    /// The map, if it still exists.
    pub(crate) fn map(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.map.upgrade()
    }

    /// Address of its field.
    pub(crate) fn address(&self) -> usize {
        self.address
    }
}

/// The timers that one worker started and has to fire.
#[derive(Default)]
pub struct TimerQueue {
    timers: Mutex<Waiting>,
    /// When the first one is due; `u64::MAX` without one.
    first: AtomicU64,
}

impl std::fmt::Debug for TimerQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimerQueue").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Waiting {
    by_due: BTreeMap<Due, Arc<Timer>>,
    /// Timers started so far.
    last: u64,
}

impl TimerQueue {
    /// A queue in which nothing runs.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self { timers: Mutex::default(), first: AtomicU64::new(u64::MAX) })
    }

    /// When the first timer is due, in nanoseconds; `u64::MAX` without one.
    #[inline]
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first.load(Ordering::Acquire)
    }

    /// Number of timers that run.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.timers).by_due.len()
    }

    /// Whether none runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The timers that were started until now.
    #[must_use]
    pub fn started(&self) -> u64 {
        lock(&self.timers).last
    }

    /// Takes the first timer that is due at a time out of the queue, among the first `started` ones.
    pub(crate) fn next_due(&self, now: u64, started: u64) -> Option<(Due, Arc<Timer>)> {
        let mut timers = lock(&self.timers);
        let is_due = |(due, _): &(&Due, &Arc<Timer>)| due.at <= now && due.number <= started;
        let due = *timers.by_due.iter().take_while(|(due, _)| due.at <= now).find(is_due)?.0;
        let timer = timers.by_due.remove(&due)?;
        self.note_first(&timers);
        Some((due, timer))
    }

    fn insert(&self, at: u64, timer: Arc<Timer>) -> Due {
        let mut timers = lock(&self.timers);
        timers.last += 1;
        let due = Due { at, number: timers.last };
        timers.by_due.insert(due, timer);
        self.note_first(&timers);
        due
    }

    /// Takes a timer out; whether it was there.
    fn remove(&self, due: Due) -> bool {
        let mut timers = lock(&self.timers);
        let timer = timers.by_due.remove(&due);
        self.note_first(&timers);
        drop(timers);
        timer.is_some()
    }

    fn note_first(&self, timers: &Waiting) {
        let first = timers.by_due.first_key_value().map_or(u64::MAX, |(due, _)| due.at);
        self.first.store(first, Ordering::Release);
    }
}

/// The timers of a map, by the address of their fields.
pub(crate) struct Timers {
    /// Offset of the field in a value.
    offset: usize,
    by_address: Mutex<HashMap<usize, Arc<Timer>>>,
}

impl Timers {
    /// The offset in bytes of the timer in a value.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// For a map whose values have these fields; `None` if none is a timer.
    pub(crate) fn of(special: &[SpecialField]) -> Option<Self> {
        let field = special.iter().rfind(|field| field.kind == SpecialKind::Timer)?;
        Some(Self { offset: field.offset as usize, by_address: Mutex::default() })
    }

    /// Cancels the timer of a value whose element is freed, or replaced in its place.
    pub(crate) fn forget(&self, value: usize) {
        let timer = lock(&self.by_address).remove(&value.wrapping_add(self.offset));
        if let Some(timer) = timer {
            timer.end();
        }
    }

    /// Makes a timer of a map at the address of its field; `EBUSY` if there is one.
    pub(crate) fn make(
        &self,
        map: Weak<dyn Any + Send + Sync>,
        address: usize,
        clock: u64,
    ) -> Result<(), Errno> {
        match lock(&self.by_address).entry(address) {
            Entry::Occupied(_) => Err(Errno::EBUSY),
            Entry::Vacant(place) => {
                place.insert(Arc::new(Timer { map, address, clock, state: Mutex::default() }));
                Ok(())
            }
        }
    }

    /// The timer at the address of a field.
    pub(crate) fn at(&self, address: usize) -> Option<Arc<Timer>> {
        lock(&self.by_address).get(&address).cloned()
    }

    /// Ends all timers.
    pub(crate) fn clear(&self) {
        let timers = std::mem::take(&mut *lock(&self.by_address));
        timers.values().for_each(|timer| timer.end());
    }
}
