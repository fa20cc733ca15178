//! Chains: several programs that run one after the other, as a graph says.

use std::sync::Arc;

use paceline_chain::{Graph, MAX_RUNS, Next};
use paceline_frame::{Burst, Frame, FrameMut, Verdict};
use paceline_maps::Map;
use paceline_verifier::Verified;

use crate::engine::Engine;
use crate::fault::Fault;
use crate::host::Host;
use crate::image::Unset;
use crate::load::LoadError;
use crate::program::{BurstFault, Program, pinned, run_frames};
use crate::target::{Named, Target};

/// Counts of each node: one for each verdict, and one for values that are none.
const CLASSES: usize = Verdict::ALL.len() + 1;

/// Programs and the graph that says which runs after which. It runs like a program, over a packet or a burst.
///
/// Each program runs as if alone: a tail call inside one counts for that program only, and its verdict, or that of the
/// last one it came to, is what the graph goes by. Of several redirects the last one counts; none is left when the
/// final verdict is another.
#[derive(Clone)]
pub struct Chain {
    shared: Arc<Linked>,
}

/// A chain whose programs are called one by one. Its address is the token.
struct Linked {
    programs: Box<[Program]>,
    graph: Graph,
}

/// Why programs and a graph are no chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The graph has another number of nodes than there are programs.
    #[error("the graph has {nodes} nodes, and there are {programs} programs")]
    NodeCount {
        /// Nodes of the graph.
        nodes: usize,
        /// Programs given.
        programs: usize,
    },
    /// A program cannot be run.
    #[error("program {node} of the chain: {error}")]
    Program {
        /// Its node.
        node: usize,
        /// Why.
        #[source]
        error: LoadError,
    },
}

/// How often each program of a chain returned which verdict, on one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainCounts {
    /// [`CLASSES`] for each node, and then the packets that were aborted after [`MAX_RUNS`] programs.
    counts: Box<[u64]>,
}

impl ChainCounts {
    /// How often a program returned a verdict; `None` for values that are none.
    ///
    /// # Panics
    /// If the chain has no such node.
    #[must_use]
    pub fn of(&self, node: usize, verdict: Option<Verdict>) -> u64 {
        assert!(node < self.nodes(), "node {node} of a chain of {}", self.nodes());
        self.counts[node * CLASSES + verdict.map_or(CLASSES - 1, |verdict| verdict as usize)]
    }

    /// Nodes of the chain.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.counts.len() / CLASSES
    }

    /// Packets that were aborted because more than [`MAX_RUNS`] programs would have run.
    #[must_use]
    pub fn overruns(&self) -> u64 {
        self.counts.last().copied().unwrap_or(0)
    }
}

impl Chain {
    /// A chain of programs of any engines; the programs are the graph's nodes, in order. They are called one by one.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn new(programs: Vec<Program>, graph: Graph) -> Result<Self, ChainError> {
        let nodes = graph.nodes().len();
        if nodes != programs.len() {
            return Err(ChainError::NodeCount { nodes, programs: programs.len() });
        }
        Ok(Self { shared: Arc::new(Linked { programs: programs.into(), graph }) })
    }

    /// Makes a chain of verified programs ready to run on an engine: the parts are the graph's nodes, in order, each a
    /// program and its maps in the order of its object. One program may be several nodes.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn load(
        parts: &[(&Verified, Vec<Arc<Map>>)],
        graph: Graph,
        engine: Engine,
    ) -> Result<Self, ChainError> {
        let load = |(node, (verified, maps)): (usize, &(&Verified, Vec<Arc<Map>>))| {
            Program::load(verified, maps.clone(), engine).map_err(|error| ChainError::Program { node, error })
        };
        Self::new(parts.iter().enumerate().map(load).collect::<Result<_, _>>()?, graph)
    }

    /// The programs, by node.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.shared.programs
    }

    /// What runs after what.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.shared.graph
    }

    /// Counts for this chain, all 0.
    #[must_use]
    pub fn counts(&self) -> ChainCounts {
        ChainCounts { counts: vec![0; self.programs().len() * CLASSES + 1].into() }
    }

    /// Runs the chain over one packet; the frame gets the verdict.
    ///
    /// # Errors
    /// The packet made a program do what it may not.
    pub fn run(&self, frame: &mut FrameMut<'_>, host: &mut Host) -> Result<Verdict, Box<Fault>> {
        // SAFETY: the frame stays in its place; programs and helpers only change what it describes.
        let frame = unsafe { frame.descriptor_mut() };
        let frames = std::slice::from_mut(frame);
        // SAFETY: the token is the address that the entry takes.
        pinned(host, |host| unsafe { run_frames(run_linked, self.token(), frames, host) })
            .map_err(|fault| Box::new(fault.fault))?;
        Ok(frames[0].verdict())
    }

    /// Runs the chain over the packets of a burst, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// A packet made a program do what it may not.
    pub fn run_burst(&self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        // SAFETY: the frames stay in their places; programs and helpers only change what they describe.
        let frames = unsafe { burst.descriptors_mut() };
        // SAFETY: the token is the address that the entry takes.
        pinned(host, |host| unsafe { run_frames(run_linked, self.token(), frames, host) })
    }

    /// The same, and counts what each program returned.
    ///
    /// # Errors
    /// A packet made a program do what it may not.
    ///
    /// # Panics
    /// If the counts are those of a chain of another length.
    pub fn run_burst_counted(
        &self,
        burst: &mut Burst,
        host: &mut Host,
        counts: &mut ChainCounts,
    ) -> Result<(), BurstFault> {
        assert_eq!(counts.nodes(), self.programs().len(), "counts of another chain");
        host.chain_counts = counts.counts.as_mut_ptr();
        let result = self.run_burst(burst, host);
        host.chain_counts = std::ptr::null_mut();
        result
    }

    fn token(&self) -> u64 {
        Arc::as_ptr(&self.shared) as u64
    }
}

/// Runs the chain over one packet.
///
/// # Safety
/// The frame must be one that nothing else uses during the call, and `chain` the address of a [`Linked`].
unsafe extern "C" fn run_linked_packet(
    frame: u64,
    chain: u64,
    _: Unset,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the caller vouches for the address.
    let chain = unsafe { &*(chain as *const Linked) };
    // SAFETY: the caller vouches for the frame. Whoever has a fault does not ask for the verdict.
    let verdict = unsafe { chain.run(frame, host) }.unwrap_or(Verdict::Aborted);
    if verdict != Verdict::Redirect {
        // SAFETY: as above; the run has ended.
        unsafe { &mut *(frame as *mut Frame) }.set_redirect(None);
    }
    verdict as u64
}

/// Runs the chain over the packets of a burst.
///
/// # Safety
/// The frames must be those of a burst that nothing else uses during the call, and `chain` the address of a [`Linked`].
unsafe extern "C" fn run_linked(
    first: u64,
    end: u64,
    chain: u64,
    r4: Unset,
    r5: Unset,
    host: &mut Host,
) -> u64 {
    let mut frame = first;
    while frame != end {
        // SAFETY: the caller vouches for the addresses.
        let verdict = unsafe { run_linked_packet(frame, chain, r4, r4, r5, host) };
        if host.fault.is_some() {
            return frame;
        }
        // SAFETY: the frame is one of the burst's; the run has ended.
        unsafe { &mut *(frame as *mut Frame) }.set_code(verdict as u32);
        frame += size_of::<Frame>() as u64;
    }
    end
}

impl Linked {
    /// Runs the chain over one packet; `None` if a run failed.
    ///
    /// # Safety
    /// `frame` must be the address of a frame that nothing else uses during the call.
    unsafe fn run(&self, frame: u64, host: &mut Host) -> Option<Verdict> {
        let unset = Unset::uninit();
        let mut node = 0;
        for _ in 0..MAX_RUNS {
            let program = &self.programs[node];
            // SAFETY: the caller vouches for the frame, and the token is the entry's own.
            let r0 = unsafe { (program.image.entry)(frame, program.token, unset, unset, unset, host) } as u32;
            if host.fault.is_some() {
                return None;
            }
            self.count(node * CLASSES + (r0 as usize).min(CLASSES - 1), host);
            match self.graph.after(node, r0) {
                Next::Program(next) => node = next,
                Next::End(verdict) => return Some(verdict),
            }
        }
        self.count(self.programs.len() * CLASSES, host);
        Some(Verdict::Aborted)
    }

    fn count(&self, index: usize, host: &Host) {
        if !host.chain_counts.is_null() {
            // SAFETY: the counts were made for a chain of this length, and are borrowed while the chain runs.
            unsafe { *host.chain_counts.add(index) += 1 };
        }
    }
}

impl Named for Linked {
    fn name(&self) -> &str {
        "chain"
    }
}

impl From<&Chain> for Target {
    fn from(chain: &Chain) -> Self {
        let owner = Arc::clone(&chain.shared);
        // SAFETY: the owner is what the token points to, and it keeps the programs.
        unsafe { Self::new(run_linked_packet, run_linked, chain.token(), owner, true) }
    }
}
