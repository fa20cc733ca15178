//! The current path, and the branches that led to it.

use paceline_isa::{Insn, Reg};

use super::budget::Budget;
use crate::domain::state::{Lost, State, Value};
use crate::env::Env;
use crate::error::{Branch, Cause, Check, Hint, Problem, Refusal};
use crate::records::Records;
use crate::stats::Stats;

/// Maximum number of branches that a refusal lists.
const PATH_TOLD: usize = 64;

/// The current path.
pub(super) struct Path {
    pub(super) state: State,
    /// Slot of the current instruction.
    pub(super) slot: usize,
    /// The last branch, in the [`Trail`].
    pub(super) trail: u32,
}

impl Path {
    /// The refusal of the instruction at its end.
    pub(super) fn refusal(
        &self,
        env: &Env<'_>,
        trail: &Trail,
        stats: Stats,
        problem: Problem,
    ) -> Box<Refusal> {
        let insn = env.code.get(self.slot);
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
        let path = trail.to(self.trail);
        let complex_hint = problem.cause.is_too_complex().then(|| match goes_round(env, &path) {
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
            stats,
        })
    }
}

/// The current path with all that is needed to compare its state, and to keep it.
pub(super) struct Visit<'a> {
    pub(super) env: &'a Env<'a>,
    pub(super) path: &'a mut Path,
    pub(super) records: &'a mut Records,
    pub(super) budget: &'a mut Budget,
}

impl Visit<'_> {
    /// Adds the bytes of a state that is kept.
    pub(super) fn hold(&mut self, bytes: usize) -> Check {
        self.budget.hold(bytes, self.records, self.env.options)
    }
}

/// The branches on the path to a point, as a list with shared tails; entry 0 is the start.
pub(super) struct Trail {
    entries: Vec<(u32, Branch)>,
}

impl Trail {
    pub(super) fn new() -> Self {
        Self { entries: vec![(0, Branch { slot: 0, taken: false })] }
    }

    /// Drops all branches, for paths from another entry point.
    pub(super) fn restart(&mut self) {
        self.entries.truncate(1);
    }

    pub(super) fn add(&mut self, before: u32, branch: Branch) -> u32 {
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

/// Whether a path leads through a loop: a branch comes again, and not because a function without loops is called again.
fn goes_round(env: &Env<'_>, path: &[Branch]) -> bool {
    let comes_again = |branch: &Branch| path.iter().filter(|other| other.slot == branch.slot).count() > 1;
    let goes_back = |(slot, insn): (usize, &Insn)| {
        insn.jump_target(slot)
            .is_some_and(|target| usize::try_from(target).is_ok_and(|target| target <= slot))
    };
    (env.flow.has_rounds || env.code.iter().any(goes_back)) && path.iter().any(comes_again)
}
