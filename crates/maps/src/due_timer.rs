//! Timers with their maps: how they are made and found, and those that are due.

use std::any::Any;
use std::sync::{Arc, Weak};

use paceline_spec::Errno;

use crate::map::Map;
use crate::timer::{Callback, Due, Timer, TimerQueue};

/// A timer that is due, ready to be fired.
pub struct DueTimer {
    /// The timer.
    pub timer: Arc<Timer>,
    /// Its map.
    pub map: Arc<Map>,
    /// Key of its element.
    pub key: Vec<u8>,
    /// Address of its value.
    pub value: usize,
    callback: Callback,
}

impl std::fmt::Debug for DueTimer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DueTimer").finish_non_exhaustive()
    }
}

impl DueTimer {
    /// The callback. It must not be used with other timers: the function is verified for keys and values of this map alone.
    #[must_use]
    pub fn callback(&self) -> &(dyn Any + Send + Sync) {
        &*self.callback
    }
}

/// The due timer; `None` if it was cancelled or restarted since it was due.
fn fire(timer: Arc<Timer>, due: Due) -> Option<DueTimer> {
    let callback = timer.end_run(due)?;
    let map = timer.map()?.downcast::<Map>().ok()?;
    let value = timer.address().checked_sub(map.timers()?.offset())?;
    let key = map.key_at(value)?;
    Some(DueTimer { timer, map, key, value, callback })
}

impl TimerQueue {
    /// Takes the first timer that is due at a time, among those that were started when [`started`](Self::started) was asked.
    #[must_use]
    pub fn take_due(&self, now: u64, started: u64) -> Option<DueTimer> {
        loop {
            let (due, timer) = self.next_due(now, started)?;
            if let Some(fired) = fire(timer, due) {
                return Some(fired);
            }
        }
    }
}

/// `bpf_timer_init`: makes a timer at the address of a field; `clock` is as [`Timer::clock`] gives it.
///
/// # Errors
/// `EINVAL`: no timer's field of this map. `EBUSY`: there is a timer already.
pub fn make_timer(map: &Arc<Map>, address: usize, clock: u64) -> Result<(), Errno> {
    let timers = map.timers().filter(|_| map.for_programs().is_timer(address)).ok_or(Errno::EINVAL)?;
    let map: Weak<Map> = Arc::downgrade(map);
    timers.make(map, address, clock)
}

/// The timer at the address of a field, if one was made there.
#[must_use]
pub fn timer_at(map: &Map, address: usize) -> Option<Arc<Timer>> {
    map.timers()?.at(address)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::PoisonError;
    use std::sync::atomic::{AtomicU64, Ordering};

    use paceline_btf::{SpecialField, SpecialKind};
    use paceline_epoch::Domain;
    use paceline_spec::{MapKind, MapSpec};

    use super::*;
    use crate::create::Limits;

    /// A map of one element with a timer, made and ready to start.
    fn timer() -> (Arc<Map>, Arc<Timer>) {
        let field = SpecialField { kind: SpecialKind::Timer, offset: 0, size: 16 };
        let spec = MapSpec { special: [field].into(), ..MapSpec::new("m", MapKind::Array, 4, 16, 1) };
        let map = Map::create(&spec, &Limits { cpus: 1, memory: 1 << 20 }).unwrap();
        let address = map.for_programs().lookup(&[0; 4], 0).unwrap().as_ptr() as usize;
        make_timer(&map, address, 1).unwrap();
        let timer = timer_at(&map, address).unwrap();
        // SAFETY: it is no function that anybody calls.
        unsafe { timer.set_callback(Arc::new(())) }.unwrap();
        (map, timer)
    }

    /// State of [`TimerQueue::take_due`] after it unlocks the queue.
    fn take(queue: &TimerQueue) -> (Due, Arc<Timer>) {
        queue.next_due(u64::MAX, u64::MAX).unwrap()
    }

    #[test]
    fn a_timer_that_was_moved_while_its_queue_took_it_fires_where_it_is_now() {
        let (_map, timer) = timer();
        let [old, new] = [TimerQueue::new(), TimerQueue::new()];
        timer.start(&old, 0).unwrap();
        let (due, taken) = take(&old);
        timer.start(&new, 7).unwrap();
        assert!(fire(taken, due).is_none());
        assert!(new.take_due(6, new.started()).is_none());
        assert!(new.take_due(7, new.started()).is_some());
    }

    #[test]
    fn a_timer_that_was_cancelled_while_its_queue_took_it_does_not_fire() {
        let (_map, timer) = timer();
        let queue = TimerQueue::new();
        timer.start(&queue, 0).unwrap();
        let (due, taken) = take(&queue);
        assert!(!timer.cancel(), "it did not run any more");
        // SAFETY: it is no function that anybody calls.
        unsafe { timer.set_callback(Arc::new(())) }.unwrap();
        assert!(fire(taken, due).is_none());
    }

    /// Retires a value when it is dropped, as engines do with functions, and enough others for a collection.
    struct Function(Arc<Map>, Arc<AtomicU64>);

    impl Drop for Function {
        fn drop(&mut self) {
            for _ in 0..100 {
                Domain::global().retire(Asking(Arc::clone(&self.0), Arc::clone(&self.1)));
            }
        }
    }

    /// Changes the element whose timer goes.
    struct Asking(Arc<Map>, Arc<AtomicU64>);

    impl Drop for Asking {
        fn drop(&mut self) {
            let _ = self.0.delete(&[0; 4]);
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_goes_with_a_timer_may_use_its_map() {
        let _turn = crate::slots::tests::BURSTS_END.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let field = SpecialField { kind: SpecialKind::Timer, offset: 0, size: 16 };
            let spec = MapSpec { special: [field].into(), ..MapSpec::new("m", MapKind::Hash, 4, 16, 1) };
            let map = Map::create(&spec, &Limits { cpus: 1, memory: 1 << 20 }).unwrap();
            let asked = Arc::new(AtomicU64::new(0));
            map.insert(&[0; 4], &[0; 16]).unwrap();
            let address = map.for_programs().lookup(&[0; 4], 0).unwrap().as_ptr() as usize;
            make_timer(&map, address, 1).unwrap();
            let function = Function(Arc::clone(&map), Arc::clone(&asked));
            // SAFETY: it is no function that anybody calls.
            unsafe { timer_at(&map, address).unwrap().set_callback(Arc::new(function)) }.unwrap();
            map.delete(&[0; 4]).unwrap();
            done.send(asked.load(Ordering::Relaxed)).unwrap();
        });
        let asked = is_done.recv_timeout(std::time::Duration::from_secs(60)).expect("no deadlock");
        assert_ne!(asked, 0);
    }
}
