//! Single-stepping of chains: effect and time of each program.

use std::time::{Duration, Instant};

use paceline_engine::{Fault, Host, Program};
use paceline_frame::{Frame, FrameMut, Verdict};
use paceline_spec::graph::{Graph, MAX_RUNS, Next, Node};

/// One run of a program of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The program.
    pub node: Node,
    /// Return value.
    pub code: u32,
    /// Successor.
    pub next: Next,
    /// Duration, with the reading of a clock.
    pub time: Duration,
}

/// Runs a chain over one packet as [`Chain`](paceline_engine::Chain) does, and tells of every program: `before` when it is
/// about to run, and `after` when it has. Verdict and frame are the same; it takes longer.
///
/// # Errors
/// The packet caused an invalid access of a program.
///
/// # Panics
/// If the graph has more nodes than there are programs.
pub fn step(
    chain: (&[Program], &Graph),
    frame: &mut FrameMut<'_>,
    host: &mut Host,
    before: impl FnMut(Node, &Frame),
    after: impl FnMut(Step, &Frame),
) -> Result<Verdict, Box<Fault>> {
    step_with(
        chain,
        frame,
        host,
        |program, frame, host| program.run_raw(frame, host).map(drop),
        before,
        after,
    )
}

/// As [`step`], with another way to run a program over a packet.
pub(crate) fn step_with(
    (programs, graph): (&[Program], &Graph),
    frame: &mut FrameMut<'_>,
    host: &mut Host,
    mut run: impl FnMut(&Program, &mut FrameMut<'_>, &mut Host) -> Result<(), Box<Fault>>,
    mut before: impl FnMut(Node, &Frame),
    mut after: impl FnMut(Step, &Frame),
) -> Result<Verdict, Box<Fault>> {
    assert!(graph.nodes().len() <= programs.len(), "a program for every node");
    let mut node = Node::ENTRY;
    let mut end = Verdict::Aborted;
    for _ in 0..MAX_RUNS {
        before(node, frame);
        let start = Instant::now();
        run(&programs[node.index()], frame, host)?;
        let time = start.elapsed();
        let code = frame.code();
        let next = graph.after(node, code);
        after(Step { node, code, next, time }, frame);
        match next {
            Next::Program(next) => node = next,
            Next::End(verdict) => {
                end = verdict;
                break;
            }
        }
    }
    frame.set_verdict(end);
    if end != Verdict::Redirect {
        frame.set_redirect(None);
    }
    Ok(end)
}

/// A packet at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its bytes.
    pub data: Vec<u8>,
    /// The metadata before them.
    pub metadata: Vec<u8>,
    /// Address of its first byte, to tell in which direction it grew or shrank.
    address: usize,
}

impl Packet {
    fn of(frame: &Frame) -> Self {
        let (data, metadata) = (frame.packet().to_vec(), frame.metadata().to_vec());
        Self { data, metadata, address: frame.data().addr() }
    }
}

/// Effect of a program on a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// Program, return value, and the next step.
    pub step: Step,
    /// The packet when the program began.
    pub before: Packet,
    /// The packet when it was done.
    pub after: Packet,
}

impl TraceStep {
    /// Bytes by which the packet's start moved; negative if the packet grew at the front.
    #[must_use]
    pub fn head_moved(&self) -> isize {
        self.after.address.cast_signed().wrapping_sub(self.before.address.cast_signed())
    }

    /// Whether the program left the packet and its metadata as they were.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.before == self.after
    }

    /// The bytes that are another value than before, as offset in the packet as it is now, the old bytes and the new
    /// ones. Bytes that were not there before, or are no longer there, are not among them.
    #[must_use]
    pub fn changes(&self) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
        let moved = self.head_moved();
        let mut changes: Vec<(usize, Vec<u8>, Vec<u8>)> = Vec::new();
        for (offset, new) in self.after.data.iter().enumerate() {
            let old = offset.checked_add_signed(moved).and_then(|offset| self.before.data.get(offset));
            let Some(old) = old.filter(|old| *old != new) else { continue };
            match changes.last_mut() {
                Some((start, before, after)) if *start + after.len() == offset => {
                    before.push(*old);
                    after.push(*new);
                }
                _ => changes.push((offset, vec![*old], vec![*new])),
            }
        }
        changes
    }
}

/// All that happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The programs that ran.
    pub steps: Vec<TraceStep>,
    /// Final verdict.
    pub verdict: Verdict,
}

impl Trace {
    /// Whether the packet was aborted because more than [`MAX_RUNS`] programs would have run.
    #[must_use]
    pub fn is_overrun(&self) -> bool {
        self.steps.last().is_some_and(|last| matches!(last.step.next, Next::Program(_)))
    }
}

/// Runs a chain over one packet as [`step`] does, and records the effect of each program.
///
/// # Errors
/// The packet caused an invalid access of a program.
///
/// # Panics
/// If the graph has more nodes than there are programs.
pub fn trace(
    chain: (&[Program], &Graph),
    frame: &mut FrameMut<'_>,
    host: &mut Host,
) -> Result<Trace, Box<Fault>> {
    let mut befores = Vec::new();
    let mut steps = Vec::new();
    let verdict = step(
        chain,
        frame,
        host,
        |_, frame| befores.push(Packet::of(frame)),
        |step, frame| steps.push((step, Packet::of(frame))),
    )?;
    let steps = befores.into_iter().zip(steps);
    let steps = steps.map(|(before, (step, after))| TraceStep { step, before, after }).collect();
    Ok(Trace { steps, verdict })
}
