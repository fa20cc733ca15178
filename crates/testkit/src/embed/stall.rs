//! A worker that stalls.

use std::sync::mpsc;
use std::thread::JoinHandle;

use paceline_epoch::Domain;

/// A worker in a burst that ends when this is dropped.
pub(super) struct Stall {
    pub(super) end: Option<mpsc::Sender<()>>,
    pub(super) thread: Option<JoinHandle<()>>,
}

impl Stall {
    pub(super) fn begin() -> Self {
        let ((begun, has_begun), (end, ended)) = (mpsc::channel(), mpsc::channel::<()>());
        let thread = std::thread::spawn(move || {
            let mut reader = Domain::global().reader();
            let _pin = reader.pin();
            let _ = begun.send(());
            let _ = ended.recv();
        });
        let _ = has_begun.recv();
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
