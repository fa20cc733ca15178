//! Random graphs of random programs, on all ways to run a chain, which must have equal results: verdicts, packets, redirect
//! targets, maps, and counts of verdicts per program.

use std::fmt::Write;
use std::sync::Arc;

use fastrand::Rng;
use paceline::chain::{Edges, Graph, Next, Node};
use paceline::{Chain, FrameMeta, LookAhead, Map};
use paceline_engine::OptLevel;
use paceline_frame::{MAX_BURST, Verdict};
use paceline_isa::assemble;
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::Verified;

use super::engine::EngineSubject;
use super::engine::random_array;
use super::subject::{Left, Stopped, redirect_of};
use super::work::{Work, Workshop};
use crate::engine::load_native_chain;
use crate::random::{Purpose, candidate};
use crate::{AnyEngine, Contents};

const XDP: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };

/// Maximum number of programs of a graph.
const NODES: usize = 6;

/// A chain to run.
#[derive(Clone, Debug)]
pub struct ChainWork {
    /// The programs by node, then those in the program array; maps, packets, and the seed of contents.
    pub work: Work,
    /// The graph.
    pub graph: Graph,
}

impl ChainWork {
    fn nodes(&self) -> &[Verified] {
        let nodes = self.graph.nodes().len();
        self.work.programs.get(..nodes).unwrap_or_default()
    }
}

impl Workshop {
    /// The random chain of a seed, with this number of packets; `None` if no accepted programs are found.
    #[must_use]
    pub fn chain(&self, seed: u64, runs: usize) -> Option<ChainWork> {
        let mut rng = Rng::with_seed(seed ^ 0xc4a1);
        let nodes = rng.usize(1..=NODES);
        let mut programs: Vec<Verified> = Vec::with_capacity(nodes);
        while programs.len() < nodes {
            let next = rng.u64(..);
            let made = match rng.u8(..8) {
                0 if rng.bool() => self.small_filter(&mut rng),
                0 => self.filter(next),
                1..4 => self.any_program(next),
                _ => self.small_program(&mut rng),
            };
            programs.extend(made);
        }
        let graph = random_graph(nodes, &mut rng)?;
        if programs.iter().any(Verified::has_tail_calls) {
            programs.extend((0..4).filter_map(|_| self.any_program(rng.u64(..))).take(2));
        }
        let work = self.work_of(programs, seed, runs);
        Some(ChainWork { work, graph })
    }

    /// A random XDP program, if the seed's program is one.
    fn any_program(&self, seed: u64) -> Option<Verified> {
        let made = candidate(seed, Purpose::Run);
        matches!(made.kind, ProgramKind::Xdp { .. }).then(|| self.verify(&made).ok()).flatten()
    }

    /// A random socket filter, whose context has other fields: that of one of the next seeds.
    fn filter(&self, seed: u64) -> Option<Verified> {
        let seeds = (0..64).map(|next| seed.wrapping_add(next));
        let mut filters = seeds
            .map(|seed| candidate(seed, Purpose::Run))
            .filter(|made| made.kind == ProgramKind::SocketFilter)
            .filter_map(|made| self.verify(&made).ok());
        // Programs in arrays are XDP programs.
        filters.find(|filter| !filter.has_tail_calls())
    }

    /// A program that returns verdicts, which random programs rarely do.
    fn small_program(&self, rng: &mut Rng) -> Option<Verified> {
        self.of_text(&small_text(rng), XDP)
    }

    /// A filter whose verdict is a field of its context, at an offset at which other contexts have another one.
    fn small_filter(&self, rng: &mut Rng) -> Option<Verified> {
        let (offset, value) = (rng.u32(..6) * 4, rng.u32(1..8));
        let text = format!("r0 = *(u32 *)(r1 + {offset})\nr0 &= {value}\nexit");
        self.of_text(&text, ProgramKind::SocketFilter)
    }

    fn of_text(&self, text: &str, kind: ProgramKind) -> Option<Verified> {
        let slots = assemble(text, &()).ok()?.encode().ok()?;
        let mut program = ProgramSpec::new("small", kind, slots);
        program.license = "GPL".to_owned();
        self.verify_program(&program).ok()
    }
}

fn small_text(rng: &mut Rng) -> String {
    let (verdict, other) = (rng.u32(..6), rng.u32(..6));
    let (byte, length, value) = (rng.u32(..14), rng.u32(14..80), rng.u32(..8));
    let bytes = format!(
        "r2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\nr4 = r2\nr4 += {length}\nif r4 > r3 goto short\n"
    );
    match rng.u8(..11) {
        0 => format!("r0 = {verdict}\nexit"),
        // The verdict is a byte of the packet.
        1 => format!("{bytes}r0 = *(u8 *)(r2 + {byte})\nr0 &= 7\nexit\nshort:\nr0 = {verdict}\nexit"),
        // Constant verdicts on each path.
        2 => format!(
            "r0 = {verdict}\n{bytes}r5 = *(u8 *)(r2 + {byte})\nr5 &= 7\nif r5 > {value} goto short\nr0 = {other}\nshort:\nexit"
        ),
        // Uninitialized stack bytes are zero, whatever ran before.
        3 => "r0 = *(u64 *)(r10 - 8)\nr2 = *(u64 *)(r10 - 16)\nr0 |= r2\nr3 = -1\n*(u64 *)(r10 - 8) = r3\n*(u64 *)(r10 - 16) = r3\nif r0 != 0 goto bad\nr0 = 2\nexit\nbad:\nr0 = 77\nexit".to_owned(),
        4 => format!("r1 = {value}\nr2 = 0\ncall bpf_redirect\nexit"),
        // It redirects and then returns another verdict.
        5 => format!("r1 = {value}\nr2 = 0\ncall bpf_redirect\nr0 = {verdict}\nexit"),
        // The packet moves between programs.
        6 => format!("r6 = r1\nr2 = {}\ncall bpf_xdp_adjust_head\nr1 = r6\nr0 = {verdict}\nexit", rng.i32(-16..16)),
        // It reloads packet pointers after the packet has moved.
        7 => format!("r6 = r1\nr2 = {}\ncall bpf_xdp_adjust_head\nr1 = r6\n{bytes}r0 = *(u8 *)(r2 + {byte})\nr0 &= 7\nexit\nshort:\nr0 = {verdict}\nexit", rng.i32(-16..16)),
        // It keeps a packet pointer across a call, and adds a number from the packet to it.
        8 => format!("r6 = *(u32 *)(r1 + 0)\nr7 = *(u32 *)(r1 + 4)\ncall bpf_ktime_get_ns\nr4 = r6\nr4 += {length}\nif r4 > r7 goto short\nr5 = *(u8 *)(r6 + {byte})\nr5 &= {value}\nr6 += r5\nr4 = r6\nr4 += 1\nif r4 > r7 goto short\nr0 = *(u8 *)(r6 + 0)\nr0 &= 7\nexit\nshort:\nr0 = {other}\nexit"),
        // Numbers of the context.
        9 => format!("r0 = *(u32 *)(r1 + {})\nr0 &= {value}\nexit", rng.choice([12, 16]).unwrap_or(12)),
        _ => format!(
            "{bytes}r5 = *(u8 *)(r2 + {byte})\nr5 += 1\n*(u8 *)(r2 + {byte}) = r5\nr0 = {verdict}\nexit\nshort:\nr0 = {other}\nexit"
        ),
    }
}

pub(crate) fn random_graph(nodes: usize, rng: &mut Rng) -> Option<Graph> {
    // Half of them have no cycles.
    let forward = rng.bool();
    let next = |rng: &mut Rng, node: usize| {
        let first = if forward { node + 1 } else { 0 };
        match rng.u8(..4) {
            1.. if first < nodes => Next::Program(Node::new(rng.usize(first..nodes))),
            _ => Next::End(rng.choice(Verdict::ALL).unwrap_or(Verdict::Pass)),
        }
    };
    let edges = |node| {
        let mut edges = Edges::NONE;
        for verdict in Verdict::ALL {
            if rng.bool() {
                edges = edges.with(verdict, next(rng, node));
            }
        }
        if rng.u8(..3) == 0 { edges.with_wildcard(next(rng, node)) } else { edges }
    };
    Graph::new((0..nodes).map(edges).collect()).ok()
}

/// Way to run a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainWay {
    /// Program by program.
    Called(AnyEngine),
    /// As one function of native code, with or without counts.
    Fused(OptLevel, bool),
}

impl ChainWay {
    /// All ways; the others are compared with the first.
    pub const ALL: [Self; 8] = [
        Self::Called(AnyEngine::Plain),
        Self::Called(AnyEngine::Threaded),
        Self::Called(AnyEngine::CheckedJit),
        Self::Called(AnyEngine::Jit),
        Self::Fused(OptLevel::Full, false),
        Self::Fused(OptLevel::Full, true),
        Self::Fused(OptLevel::None, false),
        Self::Fused(OptLevel::None, true),
    ];

    pub(crate) fn engine(self) -> AnyEngine {
        match self {
            Self::Called(engine) => engine,
            Self::Fused(..) => AnyEngine::Jit,
        }
    }

    /// Whether it reports verdicts of programs.
    pub(crate) fn counts(self) -> bool {
        !matches!(self, Self::Fused(_, false))
    }
}

/// Result of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ChainLeft {
    packets: Vec<Left>,
    counts: Option<Vec<u64>>,
    maps: Vec<Option<Contents>>,
}

/// One way to run chains, with maps of its own.
pub struct ChainSubject {
    way: ChainWay,
    subject: EngineSubject,
}

impl ChainSubject {
    /// A way, on the CPU of this number; `None` if its engine does not exist on this machine.
    ///
    /// # Errors
    /// A map cannot be created.
    pub fn new(way: ChainWay, cpu: usize) -> Result<Option<Self>, String> {
        if EngineSubject::probe(way.engine()).is_err() {
            return Ok(None);
        }
        Ok(Some(Self { way, subject: EngineSubject::new(way.engine(), cpu)? }))
    }

    fn chain(&self, work: &ChainWork) -> Result<Chain, String> {
        let maps = self.subject.maps();
        let parts = || {
            work.nodes().iter().map(|verified| (verified, maps.to_vec())).collect::<Vec<(_, Vec<Arc<Map>>)>>()
        };
        let graph = work.graph.clone();
        let is_staged = work.work.seed.is_multiple_of(2);
        let look_ahead = if is_staged { LookAhead::Always } else { LookAhead::Never };
        let chain = match self.way {
            ChainWay::Called(_) => {
                let programs = work.nodes().iter().map(|verified| self.subject.load(verified));
                let programs =
                    programs.collect::<Result<Vec<_>, _>>().map_err(|error| paceline::with_causes(&error))?;
                Chain::new(programs, graph)
            }
            ChainWay::Fused(level, _) => load_native_chain(&parts(), graph, look_ahead, level),
        };
        chain.map_err(|error| paceline::with_causes(&error))
    }

    fn run(&mut self, work: &ChainWork) -> Result<ChainLeft, String> {
        self.subject.renew_rings(&work.work)?;
        let chain = self.chain(work)?;
        let targets = work.work.programs.get(work.graph.nodes().len()..).unwrap_or_default();
        let targets =
            targets.iter().map(|target| self.subject.load(target)).collect::<Result<Vec<_>, Stopped>>();
        let targets = targets.map_err(|error| paceline::with_causes(&error))?;
        if let Some(array) = self.subject.maps().get(random_array(XDP)) {
            for (target, index) in targets.iter().zip(0..) {
                target.install(array, index).map_err(|error| paceline::with_causes(&error))?;
            }
        }
        self.subject.prepare(&work.work)?;
        let mut counts = chain.counts().map_err(|error| paceline::with_causes(&error))?;
        let mut left = ChainLeft::default();
        let mut lengths = Rng::with_seed(work.work.seed);
        let mut inputs = work.work.inputs.as_slice();
        while !inputs.is_empty() {
            let (these, later) = inputs.split_at(lengths.usize(1..=MAX_BURST).min(inputs.len()));
            inputs = later;
            let (burst, host) = self.subject.machine();
            burst.clear();
            for (index, input) in these.iter().enumerate() {
                burst
                    .push(&input.data, FrameMeta::default())
                    .map_err(|error| paceline::with_causes(&error))?;
                burst
                    .frame_mut(index)
                    .set_metadata(&input.meta)
                    .map_err(|error| paceline::with_causes(&error))?;
            }
            let run = if self.way.counts() {
                chain.run_burst_counted(burst, host, &mut counts)
            } else {
                chain.run_burst(burst, host)
            };
            run.map_err(|fault| fault.to_string())?;
            left.packets.extend(burst.iter().map(|frame| Left {
                code: frame.code(),
                r0: None,
                data: frame.packet().to_vec(),
                meta: frame.metadata().to_vec(),
                redirect: Some(redirect_of(frame.redirect())),
            }));
        }
        let all = (0..counts.nodes()).map(Node::new).flat_map(|node| {
            Verdict::ALL.map(Some).into_iter().chain([None]).map(move |verdict| (node, verdict))
        });
        let all = all.map(|(node, verdict)| counts.of(node, verdict)).chain([counts.overruns()]);
        left.counts = self.way.counts().then(|| all.collect());
        left.maps = self.subject.contents(&work.work);
        Ok(left)
    }
}

/// Runs a chain in all ways.
///
/// # Errors
/// The difference between two of them, or the refusal of the chain by one.
pub fn compare_chains(subjects: &mut [ChainSubject], work: &ChainWork) -> Result<(), String> {
    let mut first: Option<(ChainWay, ChainLeft)> = None;
    for subject in subjects {
        let left = subject.run(work).map_err(|error| format!("{:?}: {error}", subject.way))?;
        match &first {
            None => first = Some((subject.way, left)),
            Some((way, expected)) => {
                if let Some(text) = difference(expected, &left) {
                    return Err(format!("{way:?} and {:?}: {text}\n{}", subject.way, listing(work)));
                }
            }
        }
    }
    Ok(())
}

fn difference(one: &ChainLeft, other: &ChainLeft) -> Option<String> {
    let pairs = || one.packets.iter().zip(&other.packets);
    if let Some(index) = pairs().position(|(one, other)| one != other) {
        return Some(format!("packet {index}\n{:x?}\n{:x?}", one.packets[index], other.packets[index]));
    }
    if one.counts.is_some() && other.counts.is_some() && one.counts != other.counts {
        return Some(format!("counts\n{:?}\n{:?}", one.counts, other.counts));
    }
    let index = one.maps.iter().zip(&other.maps).position(|(one, other)| one != other)?;
    Some(format!("map {index}\n{:x?}\n{:x?}", one.maps[index], other.maps[index]))
}

/// The graph and the programs, as text.
fn listing(work: &ChainWork) -> String {
    let mut text = String::new();
    for (node, (edges, verified)) in work.graph.nodes().iter().zip(work.nodes()).enumerate() {
        let _ = writeln!(text, "node {node}: {edges:?}");
        for line in paceline_isa::disassemble(&verified.program().insns) {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}
