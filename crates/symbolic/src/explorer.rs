//! The search: paths from the most promising on, until all goals are met or nothing is left.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use paceline_isa::Reg;
use paceline_solver::{Answer, Batsat, Solver, Term, Terms, smt_lib};
use paceline_spec::MapSpec;
use paceline_verifier::Verified;

use crate::claim::Claim;
use crate::flow::{FAR, Flow};
use crate::give_up::{GiveUp, Place};
use crate::goal::{Boundary, Call, Edge, Fate, Goal, Goals, Input, Side};
use crate::goals::goals;
use crate::memory::Memory;
use crate::source::{Source, Sources};
use crate::state::{Assignment, Drawn, Frame, MapState, Packet, State};
use crate::twin::Twin;
use crate::value::{Pointer, Region, Value};

/// Limits of an exploration.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Time for all of it.
    pub time: Duration,
    /// Most conflicts of one question to the solver.
    pub conflicts: u64,
    /// What is looked for.
    pub goals: Goals,
    /// Whether inputs at the boundaries of comparisons are made as well, as far as the followed paths have some, if goals are sides or paths.
    pub boundaries: bool,
    /// Most open paths that are kept.
    pub paths: usize,
    /// Most paths that are followed.
    pub followed: u64,
    /// Most terms that are kept, of some 150 bytes each.
    pub terms: usize,
    /// Most times that a path takes one side of a branch in one function call.
    pub rounds: u32,
    /// Most instructions of a path.
    pub instructions: u64,
    /// Most refutations that are kept for others to look at.
    pub refutations: usize,
    /// Length of packets in bytes: the least and the greatest.
    pub length: (u16, u16),
    /// The first random numbers that programs get with a seed: so many.
    pub random: fn(seed: u64, count: usize) -> Vec<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(60),
            conflicts: 20_000,
            goals: Goals::Sides,
            boundaries: false,
            paths: 20_000,
            followed: u64::MAX,
            terms: 6_000_000,
            rounds: 512,
            instructions: 200_000,
            refutations: 0,
            length: (1, 1514),
            random: |_, count| vec![0; count],
        }
    }
}

/// The result of an exploration.
#[derive(Clone, Debug)]
pub struct Exploration {
    /// Each goal; of paths, those that have an input.
    pub goals: BTreeMap<Goal, Fate>,
    /// If boundaries are looked for: further inputs for goals that have one, in which the bytes that decide differ from each other and from zero as far as they can.
    pub varied: BTreeMap<Goal, Input>,
    /// Inputs at the boundaries of comparisons, in the order of their jumps.
    pub boundaries: Vec<Boundary>,
    /// If paths are looked for: places at which some were given up, in the order of their slots. Without any, and with fewer paths than were looked for,
    /// there are no others.
    pub left: Vec<Place>,
    /// Paths that were followed to their end, or to where they were given up.
    pub paths: u64,
    /// Questions to the solver, and how many of them took a search.
    pub questions: (u64, u64),
    /// Conditions that the solver says cannot hold together, each as a script that asserts them ([`smt_lib`]).
    pub refutations: Vec<String>,
}

/// How far an exploration has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Goals that have an input; where two programs are compared, inputs on which they differ; of a property, inputs with which it does not hold.
    pub reached: usize,
    /// Goals that are looked for still; of paths, those that would be more than were looked for; where all paths are followed, those that wait.
    pub open: usize,
    /// Paths that were followed.
    pub paths: u64,
}

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

/// Paths that are taken up from many places before others are followed one after the other, where all are followed.
const TRIED_BROADLY: u64 = 1000;

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
    flow: Flow,
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
    queue: Vec<State>,
    /// Paths to a goal for which there was no input.
    pub(crate) misses: HashMap<Goal, u32>,
    /// How often paths were taken up at a slot.
    taken_up: HashMap<usize, u32>,
    /// Positions from which paths were not followed.
    pub(crate) left: Vec<(Vec<usize>, Place)>,
    /// The same, to find them.
    known_left: HashSet<(Vec<usize>, Place)>,
    /// The end of the exploration; `None` if that is farther away than times go.
    until: Option<Instant>,
    pub(crate) paths: u64,
    picks: u64,
}

impl<'a> Explorer<'a> {
    pub(crate) fn new(verified: &'a Verified, maps: &'a [MapSpec], options: Options) -> Self {
        let until = Instant::now().checked_add(options.time);
        let mut solver = Solver::new(Some(options.conflicts), Some(Duration::from_secs(10)));
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
            misses: HashMap::new(),
            taken_up: HashMap::new(),
            left: Vec::new(),
            known_left: HashSet::new(),
            until,
            paths: 0,
            picks: 0,
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
        match self.entry() {
            Ok(state) => self.queue.extend(state),
            Err(why) => {
                let state = self.start();
                self.leave(&state, why);
            }
        }
        while !self.is_done() {
            if let Some(why) = self.limit() {
                let left = std::mem::take(&mut self.queue);
                left.iter().for_each(|state| self.leave(state, why));
                break;
            }
            let Some(mut state) = self.pick() else { break };
            if self.is_possible(&mut state) {
                self.follow(state);
                self.paths += 1;
            }
            tell(self.progress());
        }
    }

    fn progress(&self) -> Progress {
        if let Some(twin) = &self.twin {
            return Progress { reached: twin.differing.len(), open: self.queue.len(), paths: self.paths };
        }
        if let Some(claim) = &self.claim {
            return Progress { reached: claim.refuting.len(), open: self.queue.len(), paths: self.paths };
        }
        let reached = self.fates.values().filter(|fate| matches!(fate, Fate::Reached(_))).count();
        let open = match self.options.goals {
            Goals::Paths(most) => (most as usize).saturating_sub(self.found.len()),
            _ => self.open.len(),
        };
        Progress { reached, open, paths: self.paths }
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
        let frame =
            Frame { stack: Rc::default(), saved: [Value::Unset; 4], return_to: usize::MAX, callback: None };
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
            sent: Rc::default(),
            first: None,
            instructions: 0,
            cost: 0,
        }
    }

    /// Where a state is: its slot, and where its callers go on, the innermost first.
    fn position(state: &State) -> impl Iterator<Item = usize> + '_ {
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

    /// The next path to follow: by turns the nearest to a goal, and the one whose place was visited least. Where all are followed, after some
    /// the newest first, so that few wait.
    fn pick(&mut self) -> Option<State> {
        self.picks += 1;
        if self.follows_all() && self.picks > TRIED_BROADLY {
            return self.queue.pop();
        }
        let mut queue = std::mem::take(&mut self.queue);
        queue.retain(|state| self.distance(state) != FAR);
        self.queue = queue;
        let by_distance = !self.picks.is_multiple_of(4);
        let visits = |state: &State| self.taken_up.get(&state.slot).copied().unwrap_or(0);
        let rank = |(_, state): &(usize, &State)| match by_distance {
            true => {
                let distance = u64::from(self.distance(state));
                distance + u64::from(state.cost) * 4 + u64::from(visits(state)) * 2
            }
            false => u64::from(visits(state)) + u64::from(state.cost),
        };
        let (index, _) = self.queue.iter().enumerate().min_by_key(rank)?;
        let state = self.queue.swap_remove(index);
        *self.taken_up.entry(state.slot).or_default() += 1;
        Some(state)
    }

    /// Checks the condition of a path that was not checked yet.
    fn is_possible(&mut self, state: &mut State) -> bool {
        if !std::mem::take(&mut state.pending) {
            return true;
        }
        self.solver.tidy();
        let Some((&condition, others)) = state.path.split_last() else { return true };
        match self.solver.extend(&mut self.terms, others, &state.assignment.model, condition) {
            Answer::Sat(model) => {
                state.assignment = Assignment::new(model);
                true
            }
            Answer::Unsat => false,
            Answer::Unknown(unknown) => {
                self.leave(state, GiveUp::Solver(unknown));
                false
            }
        }
    }

    /// Follows a path to its end.
    fn follow(&mut self, mut state: State) {
        if let Some(twin) = &self.twin {
            self.verified = twin.programs[usize::from(state.first.is_some())];
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
                Ok(Next::On) => {}
                Ok(Next::End) => return,
                Err(why) => return self.leave(&state, why),
            }
        }
    }

    /// Notes that nothing is known of what comes after a state.
    pub(crate) fn leave(&mut self, state: &State, why: GiveUp) {
        let place = Place { slot: state.slot, why };
        if self.twin.is_some() {
            let left = (state.first.is_some(), place);
            return self.twin_mut(|twin| {
                if !twin.left.contains(&left) {
                    twin.left.push(left);
                }
            });
        }
        if let Some(claim) = &mut self.claim {
            if !claim.left.contains(&place) {
                claim.left.push(place);
            }
            return;
        }
        self.leave_at(Self::position(state).collect(), place);
    }

    /// Notes that nothing is known of what comes after the functions that a state is in return to their callers.
    pub(crate) fn leave_callers(&mut self, state: &State, why: GiveUp) {
        if self.follows_all() {
            return self.leave(state, why);
        }
        self.leave_at(Self::position(state).skip(1).collect(), Place { slot: state.slot, why });
    }

    fn leave_at(&mut self, position: Vec<usize>, place: Place) {
        if self.flow.from(position.iter().copied()) == FAR {
            return;
        }
        let left = (position, place);
        if self.known_left.insert(left.clone()) {
            self.left.push(left);
        }
    }

    /// Keeps another path for later, in which a condition holds that was not checked.
    pub(crate) fn fork(&mut self, state: &State, condition: Term, cost: u32) {
        let mut other = state.clone();
        other.path.push(condition);
        other.pending = true;
        other.cost += cost;
        self.keep(other);
    }

    /// Keeps a path for later, if it may lead to a goal.
    pub(crate) fn keep(&mut self, mut state: State) {
        if self.distance(&state) == FAR {
            return;
        }
        if self.queue.len() >= self.options.paths {
            return self.leave(&state, GiveUp::Paths);
        }
        state.assignment.forget();
        self.queue.push(state);
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

    /// What is not reached is unreachable, unless a path was given up from which it may be reached.
    fn finish(mut self) -> Exploration {
        let open = std::mem::take(&mut self.open);
        let from_entry = |flow: &mut Flow, goal: &Goal| {
            flow.aim(std::iter::once(goal.slot()));
            flow.distance(0) != FAR
        };
        for goal in open {
            let fate = if !from_entry(&mut self.flow, &goal) {
                Fate::GivenUp(Place { slot: goal.slot(), why: GiveUp::Timer })
            } else {
                let near = self
                    .left
                    .iter()
                    .map(|(position, place)| (self.flow.from(position.iter().copied()), place))
                    .filter(|(distance, _)| *distance != FAR)
                    .min_by_key(|(distance, _)| *distance);
                match near {
                    Some((_, place)) => Fate::GivenUp(place.clone()),
                    None => Fate::Unreachable { by_verifier: false },
                }
            };
            self.fates.insert(goal, fate);
        }
        let mut left = Vec::new();
        if matches!(self.options.goals, Goals::Paths(_)) {
            left.extend(self.left.into_iter().map(|(_, place)| place));
            left.sort_by_key(|place| place.slot);
            left.dedup();
        }
        Exploration {
            goals: self.fates,
            varied: self.varied,
            boundaries: self.boundaries.into_values().collect(),
            left,
            paths: self.paths,
            questions: self.solver.counts(),
            refutations: self
                .solver
                .refuted()
                .take(self.options.refutations)
                .map(|conditions| smt_lib(&self.terms, conditions))
                .collect(),
        }
    }
}
