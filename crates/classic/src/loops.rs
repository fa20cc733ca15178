//! Loops: their heads and their termination.
//!
//! At a loop's head no facts are assumed, and before a backward jump everything is live, so that the analyses need only one pass
//! over the program.

use paceline_isa::{AluOp, Condition, Insn, Operand, Reg, Size, Width};

use super::emit::{Emitter, Target};
use super::insn::{MEMORY_WORDS, Register};
use super::ir::Op;

/// Offset from the frame pointer of the counter of remaining iterations: below the words of scratch memory.
const ROUNDS: i16 = -8 * (MEMORY_WORDS as i16 + 1);

/// Whether a jump is backward.
pub(super) fn is_back(from: usize, to: usize) -> bool {
    to <= from
}

/// For each instruction, whether it is the head of a reachable loop.
pub(super) fn starts(ops: &[Op]) -> Vec<bool> {
    let mut starts = vec![false; ops.len()];
    let mut reached = vec![false; ops.len()];
    let mut waiting = vec![0];
    while let Some(index) = waiting.pop() {
        let (Some(op), Some(known)) = (ops.get(index), reached.get_mut(index)) else { continue };
        if std::mem::replace(known, true) {
            continue;
        }
        for next in op.successors(index) {
            if is_back(index, next)
                && let Some(start) = starts.get_mut(next)
            {
                *start = true;
            }
            waiting.push(next);
        }
    }
    starts
}

/// Initializes the counter of iterations for `loops` loops: two per byte of the packet and loop, whose length is in a register that
/// may be clobbered. The number is unknown to verifiers, so that iterations do not differ in their states.
pub(super) fn allow_rounds(out: &mut Emitter, len: Reg, loops: usize) {
    let rounds = i32::try_from(loops.saturating_mul(2)).unwrap_or(i32::MAX);
    out.add(len, 1);
    out.alu(Width::W64, AluOp::Mul, len, Operand::Imm(rounds));
    store(out, len);
}

/// Ends the program without a match if no iterations are left. The kernel's verifier accepts a loop only if it can prove
/// termination, which `may_goto` guarantees.
pub(super) fn count_round(out: &mut Emitter, scratch: Reg) {
    out.load(Size::Dw, scratch, Reg::R10, ROUNDS);
    out.jump_if(Width::W64, Condition::Eq, scratch, Operand::Imm(0), Target::NoMatch);
    // For an addition of a constant verifiers track the difference, which would differ between iterations.
    out.alu(Width::W64, AluOp::Sub, scratch, Operand::Imm(1));
    store(out, scratch);
    // Verifiers would track the bounds of the index register across iterations. An exclusive-or with an unknown number, applied
    // twice, preserves the value and drops the bounds.
    let index = out.reg(Register::X);
    for _ in 0..2 {
        out.alu(Width::W32, AluOp::Xor, index, Operand::Reg(scratch));
    }
    out.may_goto(Target::NoMatch);
}

fn store(out: &mut Emitter, src: Reg) {
    out.push(Insn::Store { size: Size::Dw, base: Reg::R10, offset: ROUNDS, src: Operand::Reg(src) });
}
