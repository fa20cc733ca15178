//! What packets are given to.

use std::any::Any;
use std::sync::Arc;

use paceline_frame::Burst;

use crate::host::Host;
use crate::image::BurstEntry;
use crate::program::{BurstFault, Program, pinned, run_frames};

/// Something that takes bursts: a program or a chain, whatever the engine.
#[derive(Clone)]
pub struct Target {
    entry: BurstEntry,
    token: u64,
    /// Whether it can come to programs or elements of maps that others may take away meanwhile.
    pinned: bool,
    /// What keeps it.
    _owner: Arc<dyn Any + Send + Sync>,
}

impl Target {
    /// # Safety
    /// The entry must take the token as long as the owner lives.
    pub(crate) unsafe fn new(
        entry: BurstEntry,
        token: u64,
        owner: Arc<dyn Any + Send + Sync>,
        pinned: bool,
    ) -> Self {
        Self { entry, token, pinned, _owner: owner }
    }

    /// Runs the packets of a burst, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// A packet made a program do what it may not.
    pub fn run_burst(&self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        // SAFETY: the frames stay in their places; programs and helpers only change what they describe.
        let frames = unsafe { burst.descriptors_mut() };
        // SAFETY: the token is the entry's own.
        let mut run = |host: &mut Host| unsafe { run_frames(self.entry, self.token, frames, host) };
        if self.pinned { pinned(host, run) } else { run(host) }
    }
}

impl From<&Program> for Target {
    fn from(program: &Program) -> Self {
        let owner = Arc::new(program.clone());
        // SAFETY: the program keeps its image, which is what its token points to.
        unsafe { Self::new(program.image.burst_entry, program.token, owner, program.pins) }
    }
}
