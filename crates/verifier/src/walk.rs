//! The walk over all paths.
//!
//! One state is carried along one path; at a branch that may go both ways the state for the jump waits on a stack
//! while the path falls through. Where paths meet, states are kept as checkpoints, and a path whose state an earlier,
//! finished one covers ends there (see `prune`).

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use paceline_btf::Btf;
use paceline_isa::{Code, Insn, Reg};
use paceline_spec::{MapSpec, ProgramSpec};

use crate::cfg::ControlFlow;
use crate::domain::precision::Precision;
use crate::domain::reads::StackReads;
use crate::domain::state::{Frame, Lost, MapRef, State, Value};
use crate::error::{Branch, Cause, Check, Hint, Problem, Refusal};
use crate::facts::Facts;
use crate::lend::Loans;
use crate::limits::Options;
use crate::observe::{Observer, PathEnd};
use crate::prune::Checkpoints;
use crate::stats::Stats;
use crate::step::Global;

/// Maximum number of branches that a refusal lists.
const PATH_TOLD: usize = 64;

/// Maximum number of waiting branches (`BPF_COMPLEXITY_LIMIT_JMP_SEQ`).
const MAX_WAITING: usize = 8192;

/// Successors of an instruction.
pub(crate) enum Next {
    /// Goes on at a slot.
    Go(usize),
    /// Continues at `next`; the branch to `target` waits with its state.
    Both { next: usize, target: usize, waiting: Box<State> },
    /// The path ends.
    End,
}

/// Entry points of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Root {
    /// The program.
    Main,
    /// A global function, by its index: verified for all arguments that its types allow.
    Global(usize),
    /// The callback of a timer in a value of this map.
    Timer { function: usize, map: MapRef },
}

impl Root {
    /// The function's index.
    pub(crate) fn function(self) -> usize {
        match self {
            Self::Main => 0,
            Self::Global(function) | Self::Timer { function, .. } => function,
        }
    }
}

/// A branch that waits.
struct Waiting {
    state: State,
    slot: usize,
    /// The checkpoint that the path to it passed last.
    checkpoint: Option<usize>,
    usable_from: usize,
    trail: u32,
}

/// The branches on the path to a point, as a list with shared tails; entry 0 is the start.
struct Trail {
    entries: Vec<(u32, Branch)>,
}

impl Trail {
    fn add(&mut self, before: u32, branch: Branch) -> u32 {
        self.entries.push((before, branch));
        (self.entries.len() - 1) as u32
    }

    fn to(&self, mut at: u32) -> Vec<Branch> {
        let mut path = Vec::new();
        while at != 0 && path.len() < PATH_TOLD {
            let Some(&(before, branch)) = self.entries.get(at as usize) else { break };
            path.push(branch);
            at = before;
        }
        path.reverse();
        path
    }
}

/// The state of the walk.
pub(crate) struct Walk<'a> {
    pub(crate) program: &'a ProgramSpec,
    pub(crate) code: &'a Code,
    pub(crate) maps: &'a [MapSpec],
    pub(crate) btf: Option<&'a Btf>,
    pub(crate) options: &'a Options,
    pub(crate) flow: &'a ControlFlow,
    pub(crate) facts: Facts,
    pub(crate) stats: Stats,
    /// The state on the current path.
    pub(crate) state: State,
    /// Slot of the current instruction.
    pub(crate) slot: usize,
    pub(crate) precision: Precision,
    pub(crate) reads: StackReads,
    pub(crate) checkpoints: Checkpoints,
    /// Deepest stack use of each function, in bytes.
    pub(crate) stack_used: Vec<u32>,
    /// For each function whether it is a callback.
    pub(crate) is_callback: Vec<bool>,
    /// For each function whether it prints memory at addresses.
    pub(crate) prints: Vec<bool>,
    /// Words of each function's stack that other functions read (`FunctionFact::shared`).
    pub(crate) stack_shared: Vec<u64>,
    /// The entry points found so far: the program, called global functions, timer callbacks.
    pub(crate) roots: Vec<Root>,
    known_roots: HashSet<Root>,
    /// The parameters of the global functions that were called, by function index.
    pub(crate) globals: HashMap<usize, Rc<Global>>,
    /// Where the path began.
    pub(crate) root: Root,
    /// Memory arguments of global functions.
    pub(crate) loans: Loans,
    /// The observer, if there is one.
    pub(crate) observer: Option<&'a mut dyn Observer>,
    /// Bytes of the kept and the waiting states.
    pub(crate) held: usize,
    waiting: Vec<Waiting>,
    trail: Trail,
    at: u32,
    last_id: u32,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        program: &'a ProgramSpec,
        code: &'a Code,
        maps: &'a [MapSpec],
        btf: Option<&'a Btf>,
        options: &'a Options,
        flow: &'a ControlFlow,
    ) -> Self {
        let start = Branch { slot: 0, taken: false };
        Self {
            program,
            code,
            maps,
            btf,
            options,
            flow,
            facts: Facts::new(code.len()),
            stats: Stats::default(),
            state: State::new(Frame::new(0, 0, 0)),
            slot: 0,
            precision: Precision::new(),
            reads: StackReads::new(flow.functions.len()),
            checkpoints: Checkpoints::new(code.len()),
            stack_used: vec![0; flow.functions.len()],
            is_callback: vec![false; flow.functions.len()],
            prints: vec![false; flow.functions.len()],
            stack_shared: vec![0; flow.functions.len()],
            roots: vec![Root::Main],
            known_roots: HashSet::from([Root::Main]),
            globals: HashMap::new(),
            root: Root::Main,
            loans: Loans::default(),
            observer: None,
            held: 0,
            waiting: Vec::new(),
            trail: Trail { entries: vec![(0, start)] },
            at: 0,
            last_id: 0,
        }
    }

    /// A new id for a pointer or a group of numbers.
    pub(crate) fn new_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    /// The last id in use.
    pub(crate) fn last_id(&self) -> u32 {
        self.last_id
    }

    /// Adds an entry point, unless it is known.
    pub(crate) fn add_root(&mut self, root: Root) {
        if self.known_roots.insert(root) {
            self.roots.push(root);
        }
    }

    /// Walks all paths from a state at the start of a function.
    pub(crate) fn explore(&mut self, state: State, slot: usize) -> Result<(), Box<Refusal>> {
        self.checkpoints.restart();
        self.precision = Precision::new();
        self.reads.restart();
        self.trail.entries.truncate(1);
        self.held = 0;
        (self.state, self.slot, self.at) = (state, slot, 0);
        if let Some(observer) = &mut self.observer {
            observer.function(slot, &self.state);
        }
        loop {
            let next = match self.step() {
                Ok(next) => next,
                Err(problem) => return Err(self.refusal(*problem)),
            };
            match next {
                Next::Go(slot) => self.slot = slot,
                Next::Both { next, target, waiting } => {
                    if let Err(problem) = self.fork(next, target, *waiting) {
                        return Err(self.refusal(*problem));
                    }
                }
                Next::End if self.end_path() => {
                    if let Some(observer) = &mut self.observer {
                        observer.retry(self.slot);
                    }
                }
                Next::End => {
                    let Some(waiting) = self.waiting.pop() else { return Ok(()) };
                    self.held = self.held.saturating_sub(waiting.state.bytes());
                    (self.state, self.slot) = (waiting.state, waiting.slot);
                    self.resume_at(waiting.usable_from, waiting.checkpoint, waiting.trail);
                    if let Some(observer) = &mut self.observer {
                        observer.resume(self.slot);
                    }
                }
            }
        }
    }

    /// Resumes from a checkpoint and the branches that led there; see [`Checkpoints::usable_from`].
    pub(crate) fn resume_at(&mut self, usable_from: usize, checkpoint: Option<usize>, trail: u32) {
        self.at = trail;
        self.checkpoints.resume(checkpoint, usable_from);
    }

    /// The last branch on the current path.
    pub(crate) fn trail_end(&self) -> u32 {
        self.at
    }

    fn step(&mut self) -> Check<Next> {
        if self.stats.instructions >= self.options.max_instructions {
            return crate::error::reject(Cause::TooComplex(self.stats.instructions));
        }
        let work = self.checkpoints.work();
        if work > self.options.max_work {
            return crate::error::reject(Cause::TooMuchWork(work));
        }
        if self.meets_earlier_state()? {
            if let Some(observer) = &mut self.observer {
                observer.path_ends(self.slot, PathEnd::Covered);
            }
            return Ok(Next::End);
        }
        self.stats.instructions += 1;
        self.facts.reached(self.slot);
        if let Some(observer) = &mut self.observer {
            observer.instruction(self.slot, &self.state);
        }
        let Some(&insn) = self.code.get(self.slot) else {
            // The control flow check has ensured that successors are instructions.
            return crate::error::reject(Cause::FallsOff);
        };
        if insn.is_jump() {
            self.checkpoints.count_jump();
        }
        let next = self.run(&insn)?;
        if let (Next::End, Some(observer)) = (&next, &mut self.observer) {
            observer.path_ends(self.slot, PathEnd::Exit);
        }
        Ok(next)
    }

    /// Adds a waiting branch and continues at `next`.
    fn fork(&mut self, next: usize, target: usize, state: State) -> Check {
        if self.waiting.len() >= MAX_WAITING {
            return crate::error::reject(Cause::TooManyBranches(MAX_WAITING));
        }
        let slot = self.slot;
        let trail = self.trail.add(self.at, Branch { slot, taken: target != slot + 1 });
        self.at = self.trail.add(self.at, Branch { slot, taken: next != slot + 1 });
        let checkpoint = self.checkpoints.branch();
        if let Some(observer) = &mut self.observer {
            observer.branch(slot, target);
        }
        self.hold(state.bytes())?;
        let usable_from = self.checkpoints.usable_from();
        self.waiting.push(Waiting { state, slot: target, checkpoint, usable_from, trail });
        self.stats.peak_branches = self.stats.peak_branches.max(self.waiting.len());
        self.slot = next;
        Ok(())
    }

    /// Adds the bytes of a state that is kept.
    pub(crate) fn hold(&mut self, bytes: usize) -> Check {
        self.held += bytes;
        let all = self.held + self.precision.bytes() + self.reads.bytes();
        self.stats.peak_bytes = self.stats.peak_bytes.max(all);
        if all > self.options.max_bytes {
            return crate::error::reject(Cause::TooMuchMemory(all));
        }
        Ok(())
    }

    /// Reads a register, which must have been set.
    pub(crate) fn read(&self, reg: Reg) -> Check<Value> {
        match self.state.get(reg) {
            Value::Unset => {
                crate::error::reject_with(Cause::NotSet(crate::error::RegName(reg)), Hint::Initialize)
            }
            value => Ok(value),
        }
    }

    /// Changes a register, which must not be the frame pointer.
    pub(crate) fn write(&mut self, reg: Reg, value: Value) -> Check {
        if reg == Reg::R10 {
            return crate::error::reject(Cause::FramePointer);
        }
        self.state.set(reg, value);
        Ok(())
    }

    /// Cost of the walk so far.
    pub(crate) fn stats(&self) -> Stats {
        Stats { work: self.checkpoints.work(), ..self.stats }
    }

    fn refusal(&self, problem: Problem) -> Box<Refusal> {
        let insn = self.code.get(self.slot);
        let told = |reg: &Reg| *reg != Reg::R10 && !self.state.get(*reg).is_unset();
        let registers: Vec<(Reg, Value)> = match insn {
            Some(insn) if !matches!(insn, Insn::Exit) => {
                insn.reads().iter().filter(told).map(|reg| (reg, self.state.get(reg))).collect()
            }
            _ => Vec::new(),
        };
        let stale =
            registers.iter().filter_map(|(_, value)| value.scalar().and_then(|s| s.stale_since)).next();
        let is_access = matches!(problem.cause, Cause::NoMemory(..) | Cause::Argument { .. });
        let stale = stale.filter(|_| is_access);
        let stale_hint = stale.map(|stale| match stale.lost {
            Lost::Packet => Hint::StalePacketPointer,
            Lost::Buffer => Hint::EndedSlice,
        });
        let path = self.trail.to(self.at);
        let complex_hint = problem.cause.is_too_complex().then(|| match self.goes_round(&path) {
            true => Hint::BoundLoop,
            false => Hint::FewerPaths,
        });
        Box::new(Refusal {
            slot: self.slot,
            hint: stale_hint.or(complex_hint).or(problem.hint),
            cause: problem.cause,
            registers,
            invalidated_by: stale.map(|stale| stale.slot as usize),
            path,
            calls: self.state.frames().skip(1).map(|frame| frame.call_slot).collect(),
            stats: self.stats(),
        })
    }

    /// Whether a path leads through a loop: a branch comes again, and not because a function without loops is called again.
    fn goes_round(&self, path: &[Branch]) -> bool {
        let comes_again = |branch: &Branch| path.iter().filter(|other| other.slot == branch.slot).count() > 1;
        let goes_back = |(slot, insn): (usize, &Insn)| {
            insn.jump_target(slot)
                .is_some_and(|target| usize::try_from(target).is_ok_and(|target| target <= slot))
        };
        (self.flow.has_rounds || self.code.iter().any(goes_back)) && path.iter().any(comes_again)
    }
}
