//! Bursts that are followed: their packets run program by program on the plain interpreter, which tells the way of each packet.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use paceline_engine::{BurstFault, ByKey, Caller, Fault, Host, Program, Steer, Target};
use paceline_frame::{Burst, FrameMut, Verdict};
use paceline_isa::Insn;
use paceline_spec::graph::{Next, Node};
use paceline_spec::{LineInfo, ProgramSpec};

use crate::step::{Step, step_with};
use crate::version::Version;

/// A followed burst may take one part in so many of a worker's time.
const SHARE: u32 = 100;
/// Bursts after an aborted packet of which some are followed, to find where others are aborted.
const BURSTS: u32 = 1 << 16;

/// The last conditional jump of a run, or its last instruction if it had none.
#[derive(Clone, Debug)]
pub struct LastBranch {
    program: Arc<ProgramSpec>,
    slot: usize,
}

impl LastBranch {
    /// Name of the program, which may have been tail called.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program.name
    }

    /// Slot of the instruction.
    #[must_use]
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The source line, where the object has it.
    #[must_use]
    pub fn line(&self) -> Option<&LineInfo> {
        self.program.line_of(self.slot).filter(|line| line.line > 0)
    }
}

impl fmt::Display for LastBranch {
    /// `firewall.bpf.c:88`, or `instruction 7 of firewall`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line() {
            Some(line) => write!(f, "{}:{}", line.file.rsplit('/').next().unwrap_or(&line.file), line.line),
            None => write!(f, "instruction {} of {}", self.slot, self.program.name),
        }
    }
}

/// Place where programs aborted packets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct AbortPlace {
    /// Name of the program that decided, in its chain.
    pub program: Arc<str>,
    /// The last branch, as [`LastBranch`] is displayed.
    pub branch: String,
}

/// A way from a program of a chain to the next one, or to the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ChainEdge {
    /// Name of the program.
    pub from: Arc<str>,
    /// Name of the next one, or the chain's verdict.
    pub to: Next<Arc<str>>,
}

/// Counts of the packets that were followed: a sample of all packets.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FollowCounts {
    /// Packets that were followed.
    pub packets: u64,
    /// Aborted packets among them.
    pub aborted: BTreeMap<AbortPlace, u64>,
    /// The ways that they took.
    pub edges: BTreeMap<ChainEdge, u64>,
}

/// Findings of the workers of a pipeline, and whether they are to follow packets.
#[derive(Default)]
pub(super) struct Follow {
    is_wanted: AtomicBool,
    counts: Mutex<FollowCounts>,
}

impl Follow {
    pub(super) fn want(&self, is_wanted: bool) {
        self.is_wanted.store(is_wanted, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> FollowCounts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, burst: &Burst, ways: &Ways) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (frame, way) in burst.iter().zip(&ways.all) {
            counts.packets += 1;
            for (node, next) in &way.steps {
                let Some(from) = ways.names.get(node.index()).cloned() else { continue };
                let to = match next {
                    Next::Program(next) => ways.names.get(next.index()).cloned().map(Next::Program),
                    Next::End(verdict) => Some(Next::End(*verdict)),
                };
                let Some(to) = to else { continue };
                *counts.edges.entry(ChainEdge { from, to }).or_default() += 1;
            }
            let (Some(program), Some(branch)) = (ways.program(way), &way.branch) else { continue };
            if frame.verdict() == Verdict::Aborted {
                let place = AbortPlace { program, branch: branch.to_string() };
                *counts.aborted.entry(place).or_default() += 1;
            }
        }
    }
}

/// Chooses the bursts of a worker that are followed.
#[derive(Default)]
pub(super) struct Sampler {
    /// Bursts that are left since a packet was aborted.
    left: u32,
    /// Earliest time of the next one.
    next: Option<Instant>,
}

impl Sampler {
    /// A packet was aborted.
    #[cold]
    pub(super) fn arm(&mut self) {
        self.left = BURSTS;
    }

    /// Whether the next burst is to be followed.
    #[inline]
    pub(super) fn is_due(&mut self, follow: &Follow) -> bool {
        if self.left == 0 && !follow.is_wanted.load(Ordering::Relaxed) {
            return false;
        }
        self.left = self.left.saturating_sub(1);
        self.next.is_none_or(|next| Instant::now() >= next)
    }

    /// Runs a burst through the program of a key, and counts the ways of its packets.
    #[cold]
    pub(super) fn run_burst(
        &mut self,
        follow: &Follow,
        caller: &mut Caller<ByKey>,
        key: u64,
        burst: &mut Burst,
        host: &mut Host,
    ) -> Result<(), BurstFault> {
        let start = Instant::now();
        let (ran, ways) = run_burst(caller, key, burst, host);
        follow.note(burst, &ways);
        let took: Duration = start.elapsed();
        self.next = Some(Instant::now() + took * SHARE);
        ran
    }
}

/// The way of a packet through a chain.
#[derive(Default)]
pub(super) struct Way {
    /// The programs that ran, and what followed each.
    steps: Vec<(Node, Next)>,
    /// The last branch of the last one.
    pub(super) branch: Option<LastBranch>,
}

/// The ways of the packets of a burst that ran without a fault.
#[derive(Default)]
pub(super) struct Ways {
    /// Names of the programs, by node.
    names: Vec<Arc<str>>,
    pub(super) all: Vec<Way>,
}

impl Ways {
    /// Name of the program that decided.
    pub(super) fn program(&self, way: &Way) -> Option<Arc<str>> {
        way.steps.last().and_then(|(node, _)| self.names.get(node.index()).cloned())
    }
}

/// Runs a burst through the program of a key as `caller` does, and tells the way of each packet.
pub(super) fn run_burst(
    caller: &mut Caller<ByKey>,
    key: u64,
    burst: &mut Burst,
    host: &mut Host,
) -> (Result<(), BurstFault>, Ways) {
    let target = caller.enter(host).target(key).cloned();
    if let Some(version) = target.as_ref().and_then(Target::data::<Arc<Version>>) {
        let names = version.layout.names.iter().map(|name| name.as_str().into()).collect();
        return run_chain(version, names, burst, host);
    }
    if let Some(program) = target.as_ref().and_then(Target::program) {
        return run_program(program, burst, host);
    }
    // No program, or a chain of unknown programs.
    let ran = caller.run_burst(key, burst, host);
    let done = ran.as_ref().map_or_else(|fault| fault.index, |()| burst.len());
    (ran, Ways { names: Vec::new(), all: (0..done).map(|_| Way::default()).collect() })
}

fn run_chain(
    version: &Version,
    names: Vec<Arc<str>>,
    burst: &mut Burst,
    host: &mut Host,
) -> (Result<(), BurstFault>, Ways) {
    let chain = (version.programs.as_slice(), &version.layout.graph);
    each(names, burst, host, |frame, host, way| {
        let run = |program: &Program, frame: &mut FrameMut<'_>, host: &mut Host| {
            way.branch = run(program, frame, host)?;
            Ok(())
        };
        let after = |step: Step, _: &_| way.steps.push((step.node, step.next));
        step_with(chain, frame, host, run, |_, _| {}, after).map(drop)
    })
}

/// A program alone, unlike a chain, leaves return values that are no verdict in the frame.
fn run_program(program: &Program, burst: &mut Burst, host: &mut Host) -> (Result<(), BurstFault>, Ways) {
    each(vec![program.spec().name.as_str().into()], burst, host, |frame, host, way| {
        way.branch = run(program, frame, host)?;
        way.steps.push((Node::ENTRY, Next::End(frame.verdict())));
        Ok(())
    })
}

/// Runs packets in order until the first fault.
fn each(
    names: Vec<Arc<str>>,
    burst: &mut Burst,
    host: &mut Host,
    mut run: impl FnMut(&mut FrameMut<'_>, &mut Host, &mut Way) -> Result<(), Box<Fault>>,
) -> (Result<(), BurstFault>, Ways) {
    let mut ways = Ways { names, all: Vec::with_capacity(burst.len()) };
    for index in 0..burst.len() {
        let mut way = Way::default();
        if let Err(fault) = run(&mut burst.frame_mut(index), host, &mut way) {
            return (Err(BurstFault::at(burst, index, fault)), ways);
        }
        ways.all.push(way);
    }
    (Ok(()), ways)
}

/// Runs a program over a packet, and tells its last branch.
fn run(
    program: &Program,
    frame: &mut FrameMut<'_>,
    host: &mut Host,
) -> Result<Option<LastBranch>, Box<Fault>> {
    let (mut id, mut spec, mut last, mut branch) = (None, None, 0, None);
    program.run_steered(frame, host, |observed| {
        if id != Some(observed.program_id()) {
            (id, spec) = (Some(observed.program_id()), Some(Arc::clone(observed.program())));
            branch = None;
        }
        last = observed.slot;
        if matches!(observed.insn(), Some(Insn::JumpIf { .. })) {
            branch = Some(observed.slot);
        }
        Steer::Follow
    })?;
    Ok(spec.map(|program| LastBranch { program, slot: branch.unwrap_or(last) }))
}
