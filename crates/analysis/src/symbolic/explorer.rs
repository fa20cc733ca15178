//! The search: paths from the most promising on, until all goals are met or nothing is left.
//!
//! The next path is by turns the nearest to a side that is looked for, and the one at the place that was visited least. Paths from
//! which no such side can be reached are dropped. An instruction that decides something (whether an element is there, whether two
//! keys are equal) leaves behind a state before that same instruction with the opposite condition, so that it decides before it
//! changes anything. One deadline ends the paths, the translation of terms and the searches; terms, open paths and answers that are
//! kept have limits.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::solver::{Answer, Batsat, Solver, Term, Terms};
use paceline_isa::Reg;
use paceline_spec::MapSpec;
use paceline_verifier::Verified;

use crate::symbolic::bounds::Assumption;
use crate::symbolic::claim::Claim;
use crate::symbolic::fixed::FixedValues;
use crate::symbolic::flow::Flow;
use crate::symbolic::give_up::{GiveUp, Place};
use crate::symbolic::goal::{Boundary, Call, Edge, Fate, Goal, Goals, Input, Side};
use crate::symbolic::goals::goals;
use crate::symbolic::memory::Memory;
use crate::symbolic::options::{Exploration, Options, Progress};
use crate::symbolic::source::{Source, Sources};
use crate::symbolic::state::{Assignment, Drawn, Frame, MapState, Packet, State};
use crate::symbolic::twin::Twin;
use crate::symbolic::value::{Pointer, Region, Value};
use crate::symbolic::waiting::Waiting;

/// Explores a verified program. `maps` are those it was verified with, with their initial elements. `tell` is called after each path.
#[must_use]
pub fn explore(
    verified: &Verified,
    maps: &[MapSpec],
    options: &Options,
    tell: &mut dyn FnMut(Progress),
) -> Exploration {
    let mut explorer = Explorer::new(verified, maps, *options);
    explorer.run(tell);
    explorer.finish()
}

/// Most time of one question at first.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// What happens after an instruction.
pub(crate) enum Next {
    /// The path goes on.
    On,
    /// The path has ended.
    End,
}

pub(crate) struct Explorer<'a> {
    /// The program that runs.
    pub(crate) verified: &'a Verified,
    /// Where two programs are compared.
    pub(crate) twin: Option<Twin<'a>>,
    /// Where a property is to be proved.
    pub(crate) claim: Option<Claim<'a>>,
    pub(crate) maps: &'a [MapSpec],
    pub(crate) options: Options,
    pub(crate) terms: Terms,
    pub(crate) sources: Sources,
    pub(crate) solver: Solver<Batsat>,
    pub(crate) flow: Flow,
    /// Goals that are looked for still; paths are no such ones, since they are known when they are found.
    pub(crate) open: BTreeSet<Goal>,
    pub(crate) fates: BTreeMap<Goal, Fate>,
    /// The sides and calls of the paths that were found.
    pub(crate) found: HashMap<(Vec<Side>, Vec<Call>), Goal>,
    /// Inputs whose bytes differ, of goals that have one.
    pub(crate) varied: BTreeMap<Goal, Input>,
    /// Inputs at boundaries, numbered where there are several.
    pub(crate) boundaries: BTreeMap<(usize, Edge, usize), Boundary>,
    /// How often boundaries were looked for in vain.
    pub(crate) vain: HashMap<(usize, Edge), u32>,
    /// The results of paths that have an input at a boundary.
    pub(crate) ends: HashSet<(usize, Edge, Option<u64>)>,
    pub(crate) queue: Vec<State>,
    /// The same where two programs are compared.
    pub(crate) waiting: Waiting,
    /// Paths whose turn it is.
    pub(crate) ready: Vec<State>,
    /// Places of the packet that are not known, at which bytes were read.
    pub(crate) places: Vec<Term>,
    /// Where two programs are compared, the values of maps to which none of them writes.
    pub(crate) fixed: FixedValues,
    /// Whether some product is a variable.
    pub(crate) has_products: bool,
    /// Where two programs are compared, the numbers that joint paths of the first one chose.
    pub(crate) choices: Vec<Term>,
    /// The conditions of the two paths that were joined, by what is known of both.
    pub(crate) joints: HashMap<Term, [Vec<Term>; 2]>,
    /// Paths to a goal for which there was no input.
    pub(crate) misses: HashMap<Goal, (u32, Place)>,
    /// How often paths were taken up at a slot.
    pub(crate) taken_up: HashMap<usize, u32>,
    /// Positions from which paths were not followed.
    pub(crate) left: Vec<(Vec<usize>, Place)>,
    /// The same, to find them.
    pub(crate) known_left: HashSet<(Vec<usize>, Place)>,
    /// The end of the exploration; `None` if that is farther away than times go.
    until: Option<Instant>,
    pub(crate) paths: u64,
    pub(crate) picks: u64,
    /// What is taken for granted on some path.
    pub(crate) assumed: BTreeSet<Assumption>,
    /// How many times the conflicts of the options a question may take now.
    pub(crate) effort: u64,
    /// Paths that wait for a greater effort.
    pub(crate) hard: Vec<State>,
}

impl<'a> Explorer<'a> {
    pub(crate) fn new(verified: &'a Verified, maps: &'a [MapSpec], options: Options) -> Self {
        let until = Instant::now().checked_add(options.time);
        let mut solver = Solver::new(Some(options.conflicts), Some(PATIENCE));
        solver.set_deadline(until);
        let mut explorer = Self {
            verified,
            twin: None,
            claim: None,
            maps,
            options,
            terms: Terms::new(),
            sources: Sources::default(),
            solver,
            flow: Flow::of(verified),
            open: BTreeSet::new(),
            fates: BTreeMap::new(),
            found: HashMap::new(),
            varied: BTreeMap::new(),
            boundaries: BTreeMap::new(),
            vain: HashMap::new(),
            ends: HashSet::new(),
            queue: Vec::new(),
            waiting: Waiting::default(),
            ready: Vec::new(),
            places: Vec::new(),
            fixed: FixedValues::default(),
            has_products: false,
            choices: Vec::new(),
            joints: HashMap::new(),
            misses: HashMap::new(),
            taken_up: HashMap::new(),
            left: Vec::new(),
            known_left: HashSet::new(),
            until,
            paths: 0,
            picks: 0,
            assumed: BTreeSet::new(),
            effort: 1,
            hard: Vec::new(),
        };
        explorer.set_goals();
        explorer
    }

    /// Goals to which the verifier found no way are unreachable; the others are looked for.
    fn set_goals(&mut self) {
        for (goal, may) in goals(self.verified, self.maps, self.options.goals) {
            if may {
                self.open.insert(goal);
            } else {
                self.fates.insert(goal, Fate::Unreachable { by_verifier: true });
            }
        }
        self.aim();
    }

    pub(crate) fn aim(&mut self) {
        match self.options.goals {
            // Paths end anywhere.
            Goals::Paths(_) => self.flow.aim(0..self.verified.code().len()),
            _ => self.flow.aim(self.open.iter().map(Goal::slot)),
        }
    }

    /// Whether nothing is looked for any more.
    fn is_done(&self) -> bool {
        if let Some(twin) = &self.twin {
            return twin.differing.len() >= twin.most;
        }
        if let Some(claim) = &self.claim {
            return claim.refuting.len() >= claim.most;
        }
        match self.options.goals {
            Goals::Paths(most) => self.found.len() >= most as usize,
            _ => self.open.is_empty(),
        }
    }

    pub(crate) fn run(&mut self, tell: &mut dyn FnMut(Progress)) {
        loop {
            match self.entry() {
                Ok(state) => state.into_iter().for_each(|state| self.keep(state)),
                Err(GiveUp::Solver(_)) if self.limit().is_none() => {
                    self.raise_effort();
                    continue;
                }
                Err(why) => {
                    let state = self.start();
                    self.leave(&state, why);
                }
            }
            break;
        }
        while !self.is_done() {
            if let Some(why) = self.limit() {
                let mut left = std::mem::take(&mut self.queue);
                left.extend(self.waiting.take());
                left.append(&mut self.ready);
                left.append(&mut self.hard);
                left.iter().for_each(|state| self.leave(state, why));
                break;
            }
            let Some(mut state) = self.pick() else {
                if self.hard.is_empty() {
                    break;
                }
                self.take_up_hard();
                continue;
            };
            if self.is_possible(&mut state) {
                self.follow(state);
                self.paths += 1;
            }
            tell(self.progress());
        }
    }

    fn progress(&self) -> Progress {
        if let Some(twin) = &self.twin {
            return Progress { reached: twin.differing.len(), open: self.waiting_paths(), paths: self.paths };
        }
        if let Some(claim) = &self.claim {
            return Progress { reached: claim.refuting.len(), open: self.waiting_paths(), paths: self.paths };
        }
        let reached = self.fates.values().filter(|fate| matches!(fate, Fate::Reached(_))).count();
        let open = match self.options.goals {
            Goals::Paths(most) => (most as usize).saturating_sub(self.found.len()),
            _ => self.open.len(),
        };
        Progress { reached, open, paths: self.paths }
    }

    /// Paths that are still to be followed.
    fn waiting_paths(&self) -> usize {
        self.queue.len() + self.waiting.len() + self.ready.len() + self.hard.len()
    }

    /// The limit of the whole exploration that is reached.
    pub(crate) fn limit(&self) -> Option<GiveUp> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            Some(GiveUp::Time)
        } else if self.paths >= self.options.followed {
            Some(GiveUp::Followed)
        } else if self.terms.len() > self.options.terms {
            Some(GiveUp::Terms)
        } else {
            None
        }
    }

    /// The state in which a run begins; `None` if there is no such packet.
    fn entry(&mut self) -> Result<Option<State>, GiveUp> {
        let (least, greatest) = self.options.length;
        let length = self.sources.term(&mut self.terms, Source::Length);
        let (low, high) =
            (self.terms.constant(16, u64::from(least)), self.terms.constant(16, u64::from(greatest)));
        let start = self.start();
        let mut path = vec![self.terms.ule(low, length), self.terms.ule(length, high)];
        path.extend(self.assumptions(&start)?);
        let model = match self.solver.check(&mut self.terms, &path) {
            Answer::Sat(model) => model,
            Answer::Unsat => return Ok(None),
            Answer::Unknown(unknown) => return Err(GiveUp::Solver(unknown)),
        };
        Ok(Some(State { path, assignment: Assignment::new(model), ..start }))
    }

    /// The state in which a run begins, without conditions.
    pub(crate) fn start(&mut self) -> State {
        let length = self.sources.term(&mut self.terms, Source::Length);
        let zero = self.terms.constant(64, 0);
        let mut registers = [Value::Unset; 11];
        registers[1] = Value::Pointer(Pointer { region: Region::Context, offset: zero });
        registers[10] = Value::Pointer(Pointer { region: Region::Stack(0), offset: zero });
        let end = self.terms.resize(length, 64);
        let frame = Frame {
            stack: Rc::default(),
            saved: [Value::Unset; 4],
            return_to: usize::MAX,
            callback: None,
            at: 0,
            rounds: Vec::new(),
        };
        State {
            slot: 0,
            registers,
            frames: vec![frame],
            packet: Packet { start: 0, meta: 0, end, written: Rc::new(Memory::default()), floor: None },
            context: Rc::default(),
            objects: Vec::new(),
            maps: self.maps.iter().map(|_| Rc::new(MapState::default())).collect(),
            path: Vec::new(),
            assignment: Assignment::default(),
            pending: false,
            taken: None,
            called: None,
            at: None,
            rounds: Rc::default(),
            drawn: Drawn::default(),
            redirect: None,
            tail: None,
            is_elsewhere: false,
            has_ended: false,
            guess: None,
            sent: Rc::default(),
            first: None,
            instructions: 0,
            cost: 0,
        }
    }

    /// Where a state is: its slot, and where its callers go on, the innermost first.
    pub(crate) fn position(state: &State) -> impl Iterator<Item = usize> + '_ {
        let callers =
            state.frames.iter().rev().map(|frame| frame.return_to).filter(|slot| *slot != usize::MAX);
        // A callback that is called again.
        let again = state.frames.iter().filter_map(|frame| frame.callback.map(|callback| callback.start));
        std::iter::once(state.slot).chain(callers).chain(again)
    }

    /// How far a state is from a side that is looked for.
    pub(crate) fn distance(&self, state: &State) -> u32 {
        // Where programs are compared, those of the second one come first.
        if self.follows_all() {
            return u32::from(state.first.is_none());
        }
        self.flow.from(Self::position(state))
    }

    /// Whether all paths are followed, and not only those to goals: where programs are compared, and where a property is to be proved.
    pub(crate) fn follows_all(&self) -> bool {
        self.twin.is_some() || self.claim.is_some()
    }

    /// Follows a path to its end.
    fn follow(&mut self, mut state: State) {
        if let Some(twin) = &self.twin {
            self.verified = twin.programs[usize::from(state.first.is_some())];
        }
        if state.has_ended {
            if let Err(why) = self.ended(&mut state) {
                self.leave(&state, why);
            }
            return;
        }
        const BETWEEN_CHECKS: u64 = 16;
        loop {
            state.instructions += 1;
            if state.instructions > self.options.instructions {
                return self.leave(&state, GiveUp::Length);
            }
            if state.instructions.is_multiple_of(BETWEEN_CHECKS)
                && let Some(why) = self.limit()
            {
                return self.leave(&state, why);
            }
            match self.step(&mut state) {
                Ok(Next::On) if self.twin.is_some() && self.should_wait(&mut state) => {
                    return self.wait(state);
                }
                Ok(Next::On) => {}
                Ok(Next::End) => return,
                Err(why) => return self.leave(&state, why),
            }
        }
    }

    /// Decides a condition by the path's model; the path in which it is otherwise comes later, from the same instruction on. So an
    /// instruction decides before it changes the state, or changes it in a way that may happen twice.
    pub(crate) fn decide(&mut self, state: &mut State, condition: Term, cost: u32) -> bool {
        if let Some(value) = self.terms.value(condition) {
            return value == 1;
        }
        let not = self.terms.not(condition);
        if state.path.contains(&condition) {
            return true;
        }
        if state.path.contains(&not) {
            return false;
        }
        let holds = state.assignment.value(&self.terms, condition) == 1;
        let (here, there) = if holds { (condition, not) } else { (not, condition) };
        self.fork(state, there, cost);
        state.path.push(here);
        holds
    }

    /// A number in the place of a term; the path for other numbers comes later.
    pub(crate) fn concrete(&mut self, state: &mut State, term: Term) -> u64 {
        if let Some(value) = self.terms.value(term) {
            return value;
        }
        let value = state.assignment.value(&self.terms, term);
        let constant = self.terms.constant(self.terms.width(term), value);
        let equal = self.terms.eq(term, constant);
        self.decide(state, equal, 1);
        value
    }

    pub(crate) fn register(state: &State, reg: Reg) -> Value {
        state.registers[usize::from(reg.number())]
    }

    pub(crate) fn set(state: &mut State, reg: Reg, value: Value) {
        state.registers[usize::from(reg.number())] = value;
    }
}
