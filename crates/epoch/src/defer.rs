//! Drops that wait until locks are given back.
//!
//! What was retired is dropped by whoever collects, and may be a user's, whose `Drop` may call what is collecting. So nobody
//! collects while he holds a lock, or he defers drops until he has given it back.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem::take;

use crate::garbage::Retired;
use crate::sync::model::thread_local;

thread_local! {
    static DEFERRED: RefCell<Deferred> = RefCell::default();
}

/// What this thread drops later.
#[derive(Default)]
struct Deferred {
    /// How many deferrals there are.
    depth: usize,
    values: Vec<Retired>,
}

/// Keeps this thread from dropping what was retired: see [`defer_drops`].
#[derive(Debug)]
#[must_use = "drops are deferred only as long as this lives"]
pub struct Deferral {
    /// Not at the end of the thread, when the list of values has gone.
    is_counted: bool,
    /// It stays on its thread.
    thread: PhantomData<*const ()>,
}

/// Lets what is retired to any [`Domain`](crate::Domain) and freed on this thread be dropped only with the result, or the last of
/// several. For a thread that takes a lock: declared before the lock's guard, the result is dropped after it.
///
/// What [is inert](crate::Domain::retire_inert) is dropped at once all the same.
pub fn defer_drops() -> Deferral {
    let is_counted = DEFERRED.try_with(|deferred| deferred.borrow_mut().depth += 1).is_ok();
    Deferral { is_counted, thread: PhantomData }
}

impl Drop for Deferral {
    fn drop(&mut self) {
        if !self.is_counted {
            return;
        }
        let values = DEFERRED.try_with(|deferred| {
            let mut deferred = deferred.borrow_mut();
            deferred.depth -= 1;
            if deferred.depth == 0 { take(&mut deferred.values) } else { Vec::new() }
        });
        // No longer borrowed: a value may retire others when it is dropped.
        drop(values);
    }
}

/// Drops values whose grace period is over, now or with the thread's last deferral.
pub(crate) fn release(freed: Vec<Retired>) {
    let mut freed = Some(freed);
    let now = DEFERRED.try_with(|deferred| {
        let mut deferred = deferred.borrow_mut();
        let freed = freed.take().unwrap_or_default();
        if deferred.depth == 0 {
            return freed;
        }
        let (now, later): (Vec<_>, Vec<_>) = freed.into_iter().partition(|value| value.is_inert);
        deferred.values.extend(later);
        now
    });
    drop((now, freed));
}
