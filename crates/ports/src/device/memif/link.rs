//! The queues of a connection, which the ports of an interface share.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::channel::End;
use super::queue::{Receiver, Sender};

/// The queues of a connection.
pub(super) struct Link {
    receivers: Box<[Mutex<Receiver>]>,
    senders: Box<[Mutex<Sender>]>,
}

impl Link {
    pub(super) fn new(receivers: Vec<Receiver>, senders: Vec<Sender>) -> Self {
        let (receivers, senders) = (receivers.into_iter(), senders.into_iter());
        Self { receivers: receivers.map(Mutex::new).collect(), senders: senders.map(Mutex::new).collect() }
    }

    /// The receiving end of a queue; `None` if the connection has fewer.
    pub(super) fn receiver(&self, queue: usize) -> Option<MutexGuard<'_, Receiver>> {
        self.receivers.get(queue).map(lock)
    }

    /// A sending end for a queue: several share one if the connection has fewer. `None` if it has none.
    pub(super) fn sender(&self, queue: usize) -> Option<MutexGuard<'_, Sender>> {
        self.senders.get(queue % self.senders.len().max(1)).map(lock)
    }
}

/// The connection of an interface, as its ports see it: the port of the first queue makes and ends it.
#[derive(Default)]
pub(super) struct Shared {
    /// Changes with the connection.
    generation: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    link: Option<Arc<Link>>,
    failure: Option<End>,
}

impl Shared {
    /// Number of the connection.
    pub(super) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// The connection with its number.
    pub(super) fn link(&self) -> (u32, Option<Arc<Link>>) {
        let state = lock(&self.state);
        (self.generation(), state.link.clone())
    }

    /// Replaces the connection.
    pub(super) fn publish(&self, link: Option<Arc<Link>>) {
        let mut state = lock(&self.state);
        *state = State { link, failure: None };
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Tells that a connection must end: a port found that the peer breaks the protocol.
    pub(super) fn fail(&self, generation: u32, end: End) {
        let mut state = lock(&self.state);
        if self.generation() == generation {
            state.failure.get_or_insert(end);
        }
    }

    /// Why the connection must end, if it must.
    pub(super) fn failure(&self) -> Option<End> {
        lock(&self.state).failure.clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
