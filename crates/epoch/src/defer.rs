//! Deferral of drops until locks are released.
//!
//! A collection drops retired values on the calling thread. A user's `Drop` may call back into the code that collects, so a
//! caller that holds a lock defers drops until the lock is released.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem::take;

use crate::garbage::Retired;
use crate::sync::model::thread_local;

thread_local! {
    static DEFERRED: RefCell<Deferred> = RefCell::default();
}

/// The deferred drops of this thread.
#[derive(Default)]
struct Deferred {
    /// Number of nested deferrals.
    depth: usize,
    /// Whether values are being dropped. A value that retires others when it is dropped would otherwise drop those within its own
    /// drop, recursively.
    is_draining: bool,
    values: Vec<Retired>,
}

impl Deferred {
    fn drops_now(&self) -> bool {
        self.depth == 0 && !self.is_draining
    }
}

/// Defers drops of retired values on this thread: see [`defer_drops`].
#[derive(Debug)]
#[must_use = "drops are deferred only as long as this lives"]
pub struct Deferral {
    /// False at the end of the thread, when its list of values no longer exists.
    is_counted: bool,
    /// Not `Send`: it belongs to its thread.
    thread: PhantomData<*const ()>,
}

/// Defers the drops of values that were retired to any [`Domain`](crate::Domain) and are freed on this thread, until the result, or
/// the last of several, is dropped. For a thread that takes a lock: declared before the lock's guard, the result is dropped after
/// it.
///
/// [Inert](crate::Domain::retire_inert) values are never deferred.
pub fn defer_drops() -> Deferral {
    let is_counted = DEFERRED.try_with(|deferred| deferred.borrow_mut().depth += 1).is_ok();
    Deferral { is_counted, thread: PhantomData }
}

impl Drop for Deferral {
    fn drop(&mut self) {
        if !self.is_counted {
            return;
        }
        let drops_now = DEFERRED.try_with(|deferred| {
            let mut deferred = deferred.borrow_mut();
            deferred.depth -= 1;
            deferred.drops_now()
        });
        if drops_now.unwrap_or_default() {
            drain();
        }
    }
}

/// Ends the draining, also on a panic.
struct Draining;

impl Drop for Draining {
    fn drop(&mut self) {
        let _at_the_end_of_the_thread =
            DEFERRED.try_with(|deferred| deferred.borrow_mut().is_draining = false);
    }
}

/// Drops deferred values, including those that are deferred meanwhile.
fn drain() {
    let next = || {
        let next = DEFERRED.try_with(|deferred| {
            let mut deferred = deferred.borrow_mut();
            deferred.is_draining = true;
            take(&mut deferred.values)
        });
        next.unwrap_or_default()
    };
    let _end = Draining;
    loop {
        let values = next();
        if values.is_empty() {
            return;
        }
        // The borrow has ended: a value may retire others when it is dropped.
        drop(values);
    }
}

/// Whether this thread is dropping retired values. Values retired by those drops wait for a later retirement, so that no single
/// change has to drop the whole backlog.
pub(crate) fn is_draining() -> bool {
    DEFERRED.try_with(|deferred| deferred.borrow().is_draining).unwrap_or_default()
}

/// Drops values whose grace period is over, now or at the end of the thread's last deferral.
pub(crate) fn release(freed: Vec<Retired>) {
    let mut freed = Some(freed);
    let at_once = DEFERRED.try_with(|deferred| {
        let mut deferred = deferred.borrow_mut();
        let (inert, others): (Vec<_>, Vec<_>) =
            freed.take().unwrap_or_default().into_iter().partition(|value| value.is_inert);
        deferred.values.extend(others);
        (inert, deferred.drops_now())
    });
    match at_once {
        Ok((inert, drops_now)) => {
            drop(inert);
            if drops_now {
                drain();
            }
        }
        // At the end of the thread nothing can be deferred.
        Err(_) => drop(freed),
    }
}
