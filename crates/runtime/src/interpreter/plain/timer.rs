//! Timer callbacks on the plain interpreter.

use std::ops::Range;
use std::sync::Arc;

use crate::callback::TimerCallback;
use crate::fault::Fault;
use crate::host::Host;
use paceline_maps::DueTimer;

use crate::interpreter::image::Image;

/// A function that timers call, on the plain interpreter.
pub(super) struct CheckedCallback {
    pub(super) image: Arc<Image>,
    pub(super) slot: usize,
}

impl TimerCallback for CheckedCallback {
    fn call(
        &self,
        due: &DueTimer,
        arguments: [u64; 5],
        key: Range<u64>,
        host: &mut Host,
    ) -> Result<(), Box<Fault>> {
        let Self { image, slot } = self;
        if image.admits(host) {
            // SAFETY: the host that fires the timer runs an empty packet and has the key.
            return unsafe { super::run_function(image, *slot, arguments, key, Arc::clone(&due.map), host) };
        }
        host.run.fault.take().map_or(Ok(()), Err)
    }
}
