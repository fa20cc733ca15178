//! Targets of packets: programs and chains.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use paceline_frame::Burst;
use paceline_maps::Map;
use paceline_runtime::interpreter::image::{BurstEntry, Entry};
use paceline_runtime::per_cpu::PerCpuMaps;

use crate::host::Host;
use crate::program::Program;
use crate::run::{BurstFault, run_alone, run_frames};

/// A program or a chain, on any engine.
#[derive(Clone)]
pub struct Target {
    /// Entry of single packets; callers pin the run first.
    pub(crate) entry: Entry,
    pub(crate) burst_entry: BurstEntry,
    /// Unique among living programs and chains.
    pub(crate) token: u64,
    /// Whether runs are pinned, because others may remove programs or elements of maps that the program uses.
    pinned: bool,
    pub(crate) per_cpu: PerCpuMaps,
    owner: Arc<dyn Named>,
    data: Option<Arc<dyn Any + Send + Sync>>,
}

/// Owner of a program or a chain.
pub(crate) trait Named: Send + Sync {
    /// Name of the program, or `chain`.
    fn name(&self) -> &str;

    /// The maps of the program, or of all programs.
    fn maps(&self) -> Vec<Arc<Map>>;

    /// The program, if it is one.
    fn program(&self) -> Option<&Program> {
        None
    }
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
        per_cpu: PerCpuMaps,
    ) -> Self {
        Self { entry, burst_entry, token, pinned, per_cpu, owner, data: None }
    }

    /// The target with data of the caller, which look-ups at call sites return with it.
    #[must_use]
    pub fn with_data(mut self, data: impl Any + Send + Sync) -> Self {
        self.data = Some(Arc::new(data));
        self
    }

    /// The caller's data, if it is of this type.
    #[must_use]
    pub fn data<T: Any>(&self) -> Option<&T> {
        self.data.as_deref()?.downcast_ref()
    }

    /// Name of the program, or `chain`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.owner.name()
    }

    /// The program; `None` for a chain.
    #[must_use]
    pub fn program(&self) -> Option<&Program> {
        self.owner.program()
    }

    /// The maps of the program, or of all programs of the chain, without those of tail called
    /// programs.
    #[must_use]
    pub fn maps(&self) -> Vec<Arc<Map>> {
        self.owner.maps()
    }

    /// Address of the entry of single packets, the key of call sites. Programs of an interpreter share one.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.entry as usize as u64
    }

    /// Runs the packets of a burst, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// A run over a packet ended with a fault.
    #[inline]
    pub fn run_burst(&self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        // SAFETY: the frames stay in their places; programs and helpers only change what they describe.
        let frames = unsafe { burst.descriptors_mut() };
        let host = &mut host.runtime;
        if let Err(fault) = host.admit(&self.per_cpu) {
            return Err(BurstFault::of_all(frames, fault));
        }
        let run = |host: &mut paceline_runtime::host::Host| match frames {
            // SAFETY: the token is the entry's own.
            [frame] => unsafe { run_alone(self.entry, self.token, frame, host) },
            // SAFETY: the token is the entry's own.
            frames => unsafe { run_frames(self.burst_entry, self.token, frames, host) },
        };
        // SAFETY: programs do not pin.
        if self.pinned { unsafe { host.pinned(run) } } else { run(host) }
    }
}

impl Named for Program {
    fn name(&self) -> &str {
        &self.spec().name
    }

    fn maps(&self) -> Vec<Arc<Map>> {
        Self::maps(self).to_vec()
    }

    fn program(&self) -> Option<&Program> {
        Some(self)
    }
}

impl From<&Program> for Target {
    fn from(program: &Program) -> Self {
        let (owner, image) = (Arc::new(program.clone()), &program.image);
        // SAFETY: the program keeps its image, which its token points to.
        unsafe {
            let (entry, burst_entry) = (image.verdict_entry(), image.entries.burst);
            Self::new(entry, burst_entry, program.token, owner, program.pins, image.per_cpu.clone())
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("name", &self.name()).finish_non_exhaustive()
    }
}
