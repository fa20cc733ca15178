//! Chains: several programs that run one after the other, as a graph says.

mod called;
mod counts;
mod error;
#[cfg(feature = "jit")]
mod fused;
#[cfg(feature = "jit")]
mod part;
mod shared;
#[cfg(feature = "jit")]
mod staged;

use std::sync::Arc;

use paceline_frame::{Burst, Frame, FrameMut, Verdict};
use paceline_maps::Map;
use paceline_runtime::fault::Fault;
use paceline_runtime::host as runtime;
use paceline_runtime::interpreter::image::{BurstEntry, Unset};
use paceline_runtime::per_cpu::PerCpuMaps;
use paceline_spec::graph::{Graph, Node};
use paceline_verifier::Verified;

use crate::engine::Engine;
use crate::host::Host;
use crate::look_ahead::LookAhead;
#[cfg(feature = "jit")]
use crate::native::{self, NativeCode};
use crate::program::Program;
use crate::run::{BurstFault, burst_result, enter_frames, run_frames};
#[cfg(feature = "jit")]
use crate::stages::ahead;
use crate::target::Target;
#[cfg(feature = "jit")]
use fused::Fused;
use shared::Shared;

pub use counts::ChainCounts;
pub use error::ChainError;
#[cfg(feature = "jit")]
pub use part::ChainPart;

/// Programs and a graph of their order. A chain runs like a program, over a packet or a burst.
///
/// Each program runs as if alone: a tail call inside one counts for that program only, and its verdict, or that of the
/// last program that it tail called, selects the edge. The last redirect counts; a packet with another
/// final verdict keeps none.
#[derive(Clone)]
pub struct Chain {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").finish_non_exhaustive()
    }
}

impl Chain {
    /// A chain of programs of any engines; the programs are the graph's nodes, in order. They are called one by one.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn new(programs: Vec<Program>, graph: Graph) -> Result<Self, ChainError> {
        check_nodes(&graph, programs.len())?;
        Ok(Self::calling(programs, graph, called::run))
    }

    /// Makes a chain of verified programs ready to run on an engine: the parts are the graph's nodes, in order, each a
    /// program and its maps in the order of its object. One program may be several nodes. As native code they are
    /// compiled to one function.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn load(
        parts: &[(&Verified, Vec<Arc<Map>>)],
        graph: Graph,
        engine: Engine,
    ) -> Result<Self, ChainError> {
        Self::load_with(parts, graph, engine, LookAhead::default())
    }

    /// Like [`load`](Self::load); also says whether bursts run in stages, with the look-ups of the chain's first program ahead.
    ///
    /// # Errors
    /// [`ChainError`].
    #[cfg_attr(not(feature = "jit"), expect(unused_variables, reason = "native code alone looks ahead"))]
    pub fn load_with(
        parts: &[(&Verified, Vec<Arc<Map>>)],
        graph: Graph,
        engine: Engine,
        look_ahead: LookAhead,
    ) -> Result<Self, ChainError> {
        check_nodes(&graph, parts.len())?;
        #[cfg(feature = "jit")]
        if engine == Engine::Jit {
            match Self::with_settings(parts, &graph, &native::settings(), look_ahead) {
                // Its programs are called one by one, each as native code if it can be.
                Err(error) if error.is_lack() => {}
                loaded => return loaded,
            }
        }
        let load = |(node, (verified, maps)): (Node, &(&Verified, Vec<Arc<Map>>))| {
            Program::load(verified, maps.clone(), engine).map_err(|error| ChainError::Program { node, error })
        };
        let programs = graph.iter().map(|(node, _)| node).zip(parts).map(load).collect::<Result<_, _>>()?;
        Self::new(programs, graph)
    }

    /// Makes a chain ready to run as native code that is compiled otherwise than [`load`](Self::load) does: `change` changes the settings
    /// that are best on this machine. It cannot add instructions that the machine lacks.
    ///
    /// # Errors
    /// [`ChainError`].
    #[cfg(feature = "jit")]
    pub fn load_with_settings(
        parts: &[(&Verified, Vec<Arc<Map>>)],
        graph: Graph,
        look_ahead: LookAhead,
        change: impl FnOnce(&mut native::Settings),
    ) -> Result<Self, ChainError> {
        check_nodes(&graph, parts.len())?;
        let mut settings = native::settings();
        let machine = settings;
        change(&mut settings);
        native::restrict(&mut settings, &machine);
        Self::with_settings(parts, &graph, &settings, look_ahead)
    }

    /// Compiles parts to one function: the graph's nodes, in order. One part may be several nodes. Also says whether bursts run in stages,
    /// with the look-ups of the chain's first program ahead.
    ///
    /// # Errors
    /// [`ChainError`].
    #[cfg(feature = "jit")]
    pub fn fused(parts: Vec<ChainPart>, graph: Graph, look_ahead: LookAhead) -> Result<Self, ChainError> {
        check_nodes(&graph, parts.len())?;
        let stages = |first: &ChainPart| {
            let verified = first.verified();
            ahead(verified.program(), verified.code(), first.maps(), look_ahead).ok().map(Arc::new)
        };
        let ahead = parts.first().and_then(stages);
        let fused = Fused::compile(parts.into(), &graph, ahead)?;
        let (entry, pins, per_cpu) = (staged::entry::<false>(fused.plain()), fused.pins(), fused.per_cpu());
        let shared = Shared { graph, entry, pins, per_cpu, programs: Box::default(), fused: Some(fused) };
        Ok(Self { shared: Arc::new(shared) })
    }

    #[cfg(feature = "jit")]
    fn with_settings(
        parts: &[(&Verified, Vec<Arc<Map>>)],
        graph: &Graph,
        settings: &native::Settings,
        look_ahead: LookAhead,
    ) -> Result<Self, ChainError> {
        let part = |(node, (verified, maps)): (Node, &(&Verified, Vec<Arc<Map>>))| {
            ChainPart::with_settings(Arc::new((*verified).clone()), maps.clone(), settings)
                .map_err(|error| ChainError::Program { node, error })
        };
        let parts = graph.iter().map(|(node, _)| node).zip(parts).map(part).collect::<Result<_, _>>()?;
        Self::fused(parts, graph.clone(), look_ahead)
    }

    fn calling(programs: Vec<Program>, graph: Graph, entry: BurstEntry) -> Self {
        let pins = programs.iter().any(|program| program.pins);
        let per_cpu = PerCpuMaps::union(programs.iter().map(|program| &program.image.per_cpu));
        let shared = Shared {
            graph,
            entry,
            pins,
            per_cpu,
            programs: programs.into(),
            #[cfg(feature = "jit")]
            fused: None,
        };
        Self { shared: Arc::new(shared) }
    }

    /// The native code of all programs, if they were compiled to one function.
    #[cfg(feature = "jit")]
    #[must_use]
    pub fn native_code(&self) -> Option<NativeCode<'_>> {
        self.shared.fused.as_ref().map(Fused::code)
    }

    /// The order of the programs.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.shared.graph
    }

    /// Counts for this chain, all 0. Native code that counts is compiled when the first are made.
    ///
    /// # Errors
    /// [`ChainError`]: the code is not compiled.
    pub fn counts(&self) -> Result<ChainCounts, ChainError> {
        #[cfg(feature = "jit")]
        if let Some(fused) = &self.shared.fused {
            fused.count(&self.shared.graph)?;
        }
        Ok(ChainCounts::new(self.graph().nodes().len()))
    }

    /// Entry of bursts that counts return values; `None` if its code was not compiled.
    fn counted_entry(&self) -> Option<BurstEntry> {
        #[cfg(feature = "jit")]
        if let Some(fused) = &self.shared.fused {
            return fused.counted().map(staged::entry::<true>);
        }
        Some(self.shared.entry)
    }

    /// Runs the chain over one packet; the frame gets the verdict.
    ///
    /// # Errors
    /// A run ended with a fault.
    pub fn run(&self, frame: &mut FrameMut<'_>, host: &mut Host) -> Result<Verdict, Box<Fault>> {
        // SAFETY: the frame stays in its place; programs and helpers only change what it describes.
        let frame = unsafe { frame.descriptor_mut() };
        let frames = std::slice::from_mut(frame);
        self.run_frames(self.shared.entry, frames, &mut host.runtime).map_err(|fault| fault.fault)?;
        Ok(frames[0].verdict())
    }

    /// Runs the chain over the packets of a burst, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// A run over a packet ended with a fault.
    #[inline]
    pub fn run_burst(&self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        // SAFETY: the frames stay in their places; programs and helpers only change what they describe.
        let frames = unsafe { burst.descriptors_mut() };
        self.run_frames(self.shared.entry, frames, &mut host.runtime)
    }

    /// The same, and counts what each program returned.
    ///
    /// # Errors
    /// A run over a packet ended with a fault.
    ///
    /// # Panics
    /// If the counts are those of another chain.
    pub fn run_burst_counted(
        &self,
        burst: &mut Burst,
        host: &mut Host,
        counts: &mut ChainCounts,
    ) -> Result<(), BurstFault> {
        assert_eq!(counts.nodes(), self.graph().nodes().len(), "counts of another chain");
        let Some(entry) = self.counted_entry() else { panic!("counts of another chain") };
        // SAFETY: the frames stay in their places; programs and helpers only change what they describe.
        let frames = unsafe { burst.descriptors_mut() };
        let range = frames.as_mut_ptr_range();
        let token = self.token();
        let host = &mut host.runtime;
        if let Err(fault) = host.admit(&self.shared.per_cpu) {
            return Err(BurstFault::of_all(frames, fault));
        }
        // SAFETY: the counts are those of this chain, and borrowed until others are set below.
        unsafe { host.set_chain_counts(counts.counts.as_mut_ptr()) };
        // SAFETY: the frames are borrowed for the call, and the token is the entry's own.
        let run = |host: &mut runtime::Host| unsafe { enter_frames(entry, token, range.clone(), host) };
        // SAFETY: programs do not pin.
        let reached = if self.shared.pins { unsafe { host.pinned(run) } } else { run(host) };
        // Before a panic can go on: the counts are borrowed until here.
        // SAFETY: null counts nothing.
        unsafe { host.set_chain_counts(std::ptr::null_mut()) };
        burst_result(frames, frames.len(), reached, host)
    }

    #[inline]
    fn run_frames(
        &self,
        entry: BurstEntry,
        frames: &mut [Frame],
        host: &mut runtime::Host,
    ) -> Result<(), BurstFault> {
        if let Err(fault) = host.admit(&self.shared.per_cpu) {
            return Err(BurstFault::of_all(frames, fault));
        }
        // SAFETY: the token is the address that the entry takes.
        let mut run = |host: &mut runtime::Host| unsafe { run_frames(entry, self.token(), frames, host) };
        // SAFETY: programs do not pin.
        if self.shared.pins { unsafe { host.pinned(run) } } else { run(host) }
    }

    fn token(&self) -> u64 {
        Arc::as_ptr(&self.shared) as u64
    }
}

fn check_nodes(graph: &Graph, programs: usize) -> Result<(), ChainError> {
    let nodes = graph.nodes().len();
    if nodes == programs { Ok(()) } else { Err(ChainError::NodeCount { nodes, programs }) }
}

/// Runs the chain over one packet, which is a burst of one.
///
/// # Safety
/// The frame must be one that nothing else uses during the call, and `chain` the address of a [`Shared`].
unsafe extern "C" fn run_packet(
    frame: u64,
    chain: u64,
    _: Unset,
    r4: Unset,
    r5: Unset,
    host: &mut runtime::Host,
) -> u64 {
    // SAFETY: the address is guaranteed by the caller.
    let entry = unsafe { &*(chain as *const Shared) }.entry;
    // SAFETY: the frame is guaranteed by the caller.
    unsafe { entry(frame, frame + size_of::<Frame>() as u64, chain, r4, r5, host) };
    // SAFETY: as above; the run has ended. After a fault the verdict is not used.
    u64::from(unsafe { &*(frame as *const Frame) }.code())
}

impl From<&Chain> for Target {
    fn from(chain: &Chain) -> Self {
        let owner = Arc::clone(&chain.shared);
        // SAFETY: the token points to the owner, which keeps the programs or their code.
        unsafe {
            let (pins, per_cpu) = (chain.shared.pins, chain.shared.per_cpu.clone());
            Self::new(run_packet, chain.shared.entry, chain.token(), owner, pins, per_cpu)
        }
    }
}
