//! The walk over all paths.

use super::budget::Budget;
use super::checkpoints::Checkpoints;
use super::path::{Path, Trail, Visit};
use crate::domain::state::{Frame, State};
use crate::env::Env;
use crate::error::{Branch, Cause, Check, Refusal, invariant, reject};
use crate::observe::{Observer, PathEnd};
use crate::records::{Records, Root};
use crate::stats::Stats;
use crate::transformer::{Next, Round, Transformer, entry_state};

/// Maximum number of waiting branches (`BPF_COMPLEXITY_LIMIT_JMP_SEQ`).
const MAX_WAITING: usize = 8192;

/// A branch that waits.
struct Waiting {
    state: State,
    slot: usize,
    /// The checkpoint that the path to it passed last.
    checkpoint: Option<usize>,
    usable_from: usize,
    trail: u32,
}

/// The exploration of a program.
pub(crate) struct Exploration<'a> {
    env: &'a Env<'a>,
    pub(crate) records: Records,
    observer: Option<&'a mut dyn Observer>,
    path: Path,
    waiting: Vec<Waiting>,
    trail: Trail,
    checkpoints: Checkpoints,
    budget: Budget,
}

impl<'a> Exploration<'a> {
    pub(crate) fn new(env: &'a Env<'a>, observer: Option<&'a mut dyn Observer>) -> Self {
        Self {
            env,
            records: Records::new(env.code.len(), env.flow.functions.len()),
            observer,
            path: Path { state: State::new(Frame::new(0, 0, 0)), slot: 0, trail: 0 },
            waiting: Vec::new(),
            trail: Trail::new(),
            checkpoints: Checkpoints::new(env.code.len()),
            budget: Budget::default(),
        }
    }

    /// Cost so far.
    pub(crate) fn stats(&self) -> Stats {
        Stats { work: self.checkpoints.work(), ..self.budget.stats }
    }

    /// Explores all paths from all entry points: the program, then every global function that was called and every timer
    /// callback.
    pub(crate) fn run(&mut self) -> Result<(), Box<Refusal>> {
        while let Some(root) = self.records.roots.take() {
            self.start(root)?;
            self.explore()
                .map_err(|problem| self.path.refusal(self.env, &self.trail, self.stats(), *problem))?;
        }
        Ok(())
    }

    fn start(&mut self, root: Root) -> Result<(), Box<Refusal>> {
        let state = entry_state(self.env, &mut self.records, root)?;
        self.checkpoints.restart();
        self.records.restart();
        self.trail.restart();
        self.budget.restart();
        self.path = Path { state, slot: self.env.start_of(root.function()), trail: 0 };
        self.tell(|observer, path| observer.function(path.slot, &path.state));
        Ok(())
    }

    /// Explores all paths from the current state on.
    fn explore(&mut self) -> Check {
        loop {
            match self.step()? {
                Next::Go(slot) => self.path.slot = slot,
                Next::Repeat(head) => {
                    let round = Round { head, just_kept: false };
                    self.checkpoints.widen(&mut self.path.state, round, &self.records);
                    self.path.slot = head;
                }
                Next::Both { next, target, mut waiting, round } => {
                    if let Some(round) = round {
                        self.checkpoints.widen(&mut waiting, round, &self.records);
                    }
                    self.fork(next, target, *waiting)?;
                }
                Next::End => {
                    if !self.resume() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Goes on with another path after the end of one; false if there is none.
    fn resume(&mut self) -> bool {
        let (checkpoints, mut visit) = self.pruning();
        if checkpoints.end_path(&mut visit) {
            self.tell(|observer, path| observer.retry(path.slot));
            return true;
        }
        let Some(Waiting { state, slot, checkpoint, usable_from, trail }) = self.waiting.pop() else {
            return false;
        };
        self.budget.release(state.bytes());
        self.path = Path { state, slot, trail };
        self.checkpoints.resume(checkpoint, usable_from);
        self.tell(|observer, path| observer.resume(path.slot));
        true
    }

    fn step(&mut self) -> Check<Next> {
        self.budget.check(self.checkpoints.work(), self.env.options)?;
        let (checkpoints, mut visit) = self.pruning();
        if checkpoints.meet(&mut visit)? {
            self.tell(|observer, path| observer.path_ends(path.slot, PathEnd::Covered));
            return Ok(Next::End);
        }
        let slot = self.path.slot;
        self.budget.stats.instructions += 1;
        let insn = invariant(self.env.code.get(slot), "successors are instructions")?;
        self.records.facts.reached(slot);
        self.tell(|observer, path| observer.instruction(slot, &path.state));
        if insn.is_jump() {
            self.checkpoints.count_jump();
        }
        let (state, records) = (&mut self.path.state, &mut self.records);
        let next = Transformer { env: self.env, slot, state, records }.run(insn)?;
        if matches!(next, Next::End) {
            self.tell(|observer, path| observer.path_ends(path.slot, PathEnd::Exit));
        }
        Ok(next)
    }

    /// Adds a waiting branch and continues at `next`.
    fn fork(&mut self, next: usize, target: usize, state: State) -> Check {
        if self.waiting.len() >= MAX_WAITING {
            return reject(Cause::TooManyBranches(MAX_WAITING));
        }
        let (slot, before) = (self.path.slot, self.path.trail);
        let trail = self.trail.add(before, Branch { slot, taken: target != slot + 1 });
        self.path.trail = self.trail.add(before, Branch { slot, taken: next != slot + 1 });
        let checkpoint = self.checkpoints.branch();
        self.tell(|observer, _| observer.branch(slot, target));
        self.budget.hold(state.bytes(), &self.records, self.env.options)?;
        let usable_from = self.checkpoints.usable_from();
        self.waiting.push(Waiting { state, slot: target, checkpoint, usable_from, trail });
        self.budget.stats.peak_branches = self.budget.stats.peak_branches.max(self.waiting.len());
        self.path.slot = next;
        Ok(())
    }

    fn pruning(&mut self) -> (&mut Checkpoints, Visit<'_>) {
        let Self { env, records, path, budget, checkpoints, .. } = self;
        (checkpoints, Visit { env, path, records, budget })
    }

    fn tell(&mut self, tell: impl FnOnce(&mut dyn Observer, &Path)) {
        if let Some(observer) = &mut self.observer {
            tell(&mut **observer, &self.path);
        }
    }
}
