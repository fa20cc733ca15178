//! Connections of clients, each with a thread; their number and their time are bounded.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Builder, Scope};
use std::time::{Duration, Instant};

use super::error::ControlError;
use crate::common::console;

/// Connections at a time; one more is refused if none ends soon.
const MOST: usize = 8;
/// Time to wait for the end of one.
const WAIT: Duration = Duration::from_millis(100);
/// Time within which a request must arrive and its answer be taken.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks whether the run has ended.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// Accepts connections by `next`, which does not wait, until `stop` is set; `serve` runs on a thread for each. A connection without a
/// thread, as where memory is short, is closed.
pub(super) fn accept<'scope, 'env, S: Send + 'env>(
    scope: &'scope Scope<'scope, 'env>,
    stop: &'env AtomicBool,
    mut next: impl FnMut() -> io::Result<S> + Send + 'env,
    serve: impl Fn(S, Place) + Send + Sync + 'env,
) -> Result<(), ControlError> {
    let (serve, connections) = (Arc::new(serve), Arc::new(AtomicUsize::new(0)));
    let listen = move || {
        while !stop.load(Ordering::Relaxed) {
            let Ok(stream) = next() else {
                thread::sleep(LOOK);
                continue;
            };
            // A client that has its answer may still hold its place.
            let end = Instant::now() + WAIT;
            while connections.load(Ordering::Relaxed) >= MOST && Instant::now() < end {
                thread::sleep(LOOK / 10);
            }
            let (serve, place) = (Arc::clone(&serve), Place::take(&connections));
            let started =
                Builder::new().name("client".to_owned()).spawn_scoped(scope, move || serve(stream, place));
            if let Err(error) = started {
                console::note(format_args!(
                    "a client is turned away, because there is no thread for it: {error}"
                ));
                thread::sleep(LOOK);
            }
        }
    };
    Builder::new()
        .name("clients".to_owned())
        .spawn_scoped(scope, listen)
        .map(drop)
        .map_err(ControlError::Thread)
}

/// One of the connections.
pub(super) struct Place(Arc<AtomicUsize>, usize);

impl Place {
    fn take(connections: &Arc<AtomicUsize>) -> Self {
        let before = connections.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connections), before)
    }

    /// Whether there are too many connections for this one.
    pub(super) fn is_over(&self) -> bool {
        self.1 >= MOST
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
