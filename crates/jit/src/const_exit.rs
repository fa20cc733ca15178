//! Constant results of a program: an exit with a known verdict needs no comparison and no register for the verdict.

use paceline_isa::{AluOp, Imm64, Insn, Operand, Reg, eval};
use paceline_verifier::FunctionFact;

use crate::source::Source;

/// Lattice value of `r0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    /// No path was seen yet (bottom).
    #[default]
    Nothing,
    Always(u64),
    /// It differs between paths, or is no constant (top).
    Different,
}

impl Known {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, known) | (known, Self::Nothing) => known,
            (a, b) if a == b => a,
            _ => Self::Different,
        }
    }
}

/// `r0` before each slot of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConstExits {
    before: Vec<Known>,
    /// Slots from which on the function only computes its result, without side effects.
    quiet: Vec<bool>,
}

impl ConstExits {
    pub(crate) fn of(source: &Source<'_>, function: &FunctionFact) -> Self {
        let mut returns = Self { before: vec![Known::Nothing; source.code.len() + 1], quiet: Vec::new() };
        returns.meet(function.start, Known::Different);
        returns.settle(source, function);
        returns.find_quiet(source, function);
        returns
    }

    /// Whether the program only computes its result from a slot on.
    pub(crate) fn is_quiet(&self, slot: usize) -> bool {
        self.quiet.get(slot).is_some_and(|quiet| *quiet)
    }

    fn find_quiet(&mut self, source: &Source<'_>, function: &FunctionFact) {
        self.quiet = vec![false; source.code.len()];
        let reached: Vec<(usize, &Insn)> = source.reached(function).collect();
        // In reverse order the successors of a slot are known, except along back edges, which count as not quiet.
        for &(slot, insn) in reached.iter().rev() {
            let fact = source.fact(slot);
            let target = insn.jump_target(slot).and_then(|target| usize::try_from(target).ok());
            let conditional = target.is_some() && insn.falls_through();
            let falls = insn.falls_through() && (!conditional || fact.may_fall_through);
            let next = falls.then_some(slot + insn.slots());
            let target = target.filter(|_| !conditional || fact.may_jump);
            let is_quiet = |next: usize| next > slot && self.is_quiet(next);
            let quiet = is_pure(insn) && next.into_iter().chain(target).all(is_quiet);
            if let Some(place) = self.quiet.get_mut(slot) {
                *place = quiet;
            }
        }
    }

    /// The constant value of `r0` before a slot.
    pub(crate) fn before(&self, slot: usize) -> Option<u64> {
        match self.before.get(slot) {
            Some(Known::Always(value)) => Some(*value),
            _ => None,
        }
    }

    /// Propagates values to a fixed point. The value of each slot changes at most twice.
    fn settle(&mut self, source: &Source<'_>, function: &FunctionFact) {
        let mut work = vec![function.start];
        while let Some(slot) = work.pop() {
            let (Some(insn), fact) = (source.code.get(slot), source.fact(slot)) else { continue };
            let before = self.before.get(slot).copied().unwrap_or_default();
            let after = transfer(insn, before);
            let target = insn.jump_target(slot).and_then(|target| usize::try_from(target).ok());
            let conditional = target.is_some() && insn.falls_through();
            let falls = insn.falls_through() && (!conditional || fact.may_fall_through);
            let next = falls.then_some(slot + insn.slots());
            let target = target.filter(|_| !conditional || fact.may_jump);
            work.extend(target.into_iter().chain(next).filter(|&slot| self.meet(slot, after)));
        }
    }

    fn meet(&mut self, slot: usize, known: Known) -> bool {
        let Some(place) = self.before.get_mut(slot) else { return false };
        let joined = place.join(known);
        std::mem::replace(place, joined) != joined
    }
}

/// Whether an instruction has no side effects.
fn is_pure(insn: &Insn) -> bool {
    match insn {
        Insn::Alu { .. }
        | Insn::Neg { .. }
        | Insn::MovSx { .. }
        | Insn::Swap { .. }
        | Insn::Load { .. }
        | Insn::LoadImm64 { .. }
        | Insn::Jump { .. }
        | Insn::JumpLong { .. }
        | Insn::JumpIf { .. }
        | Insn::Exit => true,
        Insn::LoadAcquire { .. }
        | Insn::Store { .. }
        | Insn::StoreRelease { .. }
        | Insn::Atomic { .. }
        | Insn::LoadPacket { .. }
        | Insn::Call(_)
        | Insn::CallReg(_)
        | Insn::MayGoto { .. }
        | Insn::AddrSpaceCast { .. } => false,
    }
}

fn transfer(insn: &Insn, before: Known) -> Known {
    match *insn {
        Insn::LoadImm64 { dst: Reg::R0, value: Imm64::Value(value) } => Known::Always(value),
        Insn::Alu { width, op: AluOp::Mov, dst: Reg::R0, src: Operand::Imm(imm) } => {
            Known::Always(eval::truncate(width, imm as u64))
        }
        Insn::Alu { width, op, dst: Reg::R0, src: Operand::Imm(imm) } => match before {
            Known::Always(value) => Known::Always(eval::alu(width, op, value, imm as u64)),
            other => other,
        },
        _ if insn.writes().contains(Reg::R0) || insn.is_call() || matches!(insn, Insn::LoadPacket { .. }) => {
            Known::Different
        }
        _ => before,
    }
}
