//! What packets are given to.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use paceline_frame::Burst;
use paceline_interpreter::image::{BurstEntry, Entry};
use paceline_maps::Map;

use crate::host::Host;
use crate::program::Program;
use crate::run::{BurstFault, run_alone, run_frames};

/// Something that takes packets: a program or a chain, whatever the engine.
#[derive(Clone)]
pub struct Target {
    /// Where single packets enter; who calls it has pinned what it may come to.
    pub(crate) entry: Entry,
    pub(crate) burst_entry: BurstEntry,
    /// Different for each program and chain that there is.
    pub(crate) token: u64,
    /// Whether it can come to programs or elements of maps that others may take away meanwhile.
    pinned: bool,
    owner: Arc<dyn Named>,
    data: Option<Arc<dyn Any + Send + Sync>>,
}

/// What keeps a program or a chain.
pub(crate) trait Named: Send + Sync {
    /// What it is called.
    fn name(&self) -> &str;

    /// The maps of the program, or of all programs.
    fn maps(&self) -> Vec<Arc<Map>>;
}

impl Target {
    /// # Safety
    /// The entries must take the token as long as the owner lives.
    pub(crate) unsafe fn new(
        entry: Entry,
        burst_entry: BurstEntry,
        token: u64,
        owner: Arc<dyn Named>,
        pinned: bool,
    ) -> Self {
        Self { entry, burst_entry, token, pinned, owner, data: None }
    }

    /// The same target with something that belongs to it: who finds the target at a call site finds that too.
    #[must_use]
    pub fn with_data(mut self, data: impl Any + Send + Sync) -> Self {
        self.data = Some(Arc::new(data));
        self
    }

    /// What belongs to it, if it is of this type.
    #[must_use]
    pub fn data<T: Any>(&self) -> Option<&T> {
        self.data.as_deref()?.downcast_ref()
    }

    /// Name of the program, or `chain`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.owner.name()
    }

    /// The maps of the program, or of all programs of the chain. Those of programs that it comes to by tail calls are not among
    /// them.
    #[must_use]
    pub fn maps(&self) -> Vec<Arc<Map>> {
        self.owner.maps()
    }

    /// Where single packets enter: what call sites find programs by. Programs of engines that are no compilers share one.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.entry as usize as u64
    }

    /// Runs the packets of a burst, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// A packet made a program do what it may not.
    pub fn run_burst(&self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        // SAFETY: the frames stay in their places; programs and helpers only change what they describe.
        let frames = unsafe { burst.descriptors_mut() };
        let host = &mut host.runtime;
        let run = |host: &mut paceline_runtime::host::Host| match frames {
            // SAFETY: the token is the entry's own.
            [frame] => unsafe { run_alone(self.entry, self.token, frame, host) },
            // SAFETY: the token is the entry's own.
            frames => unsafe { run_frames(self.burst_entry, self.token, frames, host) },
        };
        if self.pinned { host.pinned(run) } else { run(host) }
    }
}

impl Named for Program {
    fn name(&self) -> &str {
        &self.spec().name
    }

    fn maps(&self) -> Vec<Arc<Map>> {
        Self::maps(self).to_vec()
    }
}

impl From<&Program> for Target {
    fn from(program: &Program) -> Self {
        let (owner, image) = (Arc::new(program.clone()), &program.image);
        // SAFETY: the program keeps its image, which is what its token points to.
        unsafe { Self::new(image.verdict_entry(), image.burst_entry, program.token, owner, program.pins) }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("name", &self.name()).finish_non_exhaustive()
    }
}
