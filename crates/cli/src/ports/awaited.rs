//! Inputs whose next bytes may come at any time, such as pipes: who waits for them.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

/// Threads that wait for bytes of inputs.
#[derive(Clone, Default)]
pub(crate) struct Waiting(Arc<Mutex<HashSet<ThreadId>>>);

impl Waiting {
    /// Whether a thread waits now.
    pub(crate) fn has(&self, thread: ThreadId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&thread)
    }

    /// A file as an input; reads of one that lies on a disk do not wait.
    pub(super) fn input(&self, file: File) -> Box<dyn Read + Send> {
        match file.metadata() {
            Ok(facts) if facts.is_file() => Box::new(file),
            _ => Box::new(Awaited { file, waiting: self.clone() }),
        }
    }

    fn during<T>(&self, wait: impl FnOnce() -> T) -> T {
        let (threads, own) =
            (|| self.0.lock().unwrap_or_else(PoisonError::into_inner), thread::current().id());
        threads().insert(own);
        let result = wait();
        threads().remove(&own);
        result
    }
}

struct Awaited {
    file: File,
    waiting: Waiting,
}

impl Read for Awaited {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Self { file, waiting } = self;
        waiting.during(|| file.read(bytes))
    }
}
