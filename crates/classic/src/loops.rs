//! Loops: where they start, and what ends them.
//!
//! At the start of a loop nothing is known, and behind the jump back everything is needed, so that one pass over the program
//! will do for what is known and what is needed.

use paceline_isa::{AluOp, Condition, Insn, Operand, Reg, Size, Width};

use super::emit::{Emitter, Target};
use super::insn::{MEMORY_WORDS, Register};
use super::ir::Op;

/// Where the rounds that are left are counted, from the frame pointer on: below the words of scratch memory.
const ROUNDS: i16 = -8 * (MEMORY_WORDS as i16 + 1);

/// Whether a jump from here to there leads back.
pub(super) fn is_back(from: usize, to: usize) -> bool {
    to <= from
}

/// For each instruction whether a loop starts there that the program can go round.
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

/// Allows `loops` loops their rounds: each two for each byte of the packet, whose length is in a register that may change.
/// Verifiers do not know the number, so that no round differs from another for them.
pub(super) fn allow_rounds(out: &mut Emitter, len: Reg, loops: usize) {
    let rounds = i32::try_from(loops.saturating_mul(2)).unwrap_or(i32::MAX);
    out.add(len, 1);
    out.alu(Width::W64, AluOp::Mul, len, Operand::Imm(rounds));
    store(out, len);
}

/// Ends the program without a match if no rounds are left. The kernel's verifier takes a loop only if it knows what ends
/// it, which `may_goto` is.
pub(super) fn count_round(out: &mut Emitter, scratch: Reg) {
    out.load(Size::Dw, scratch, Reg::R10, ROUNDS);
    out.jump_if(Width::W64, Condition::Eq, scratch, Operand::Imm(0), Target::NoMatch);
    // Of a sum with a constant verifiers remember the distance, in which each round would differ.
    out.alu(Width::W64, AluOp::Sub, scratch, Operand::Imm(1));
    store(out, scratch);
    // Verifiers would follow the limits of the index register from round to round. What is combined with a number that they
    // do not know has none.
    let index = out.reg(Register::X);
    for _ in 0..2 {
        out.alu(Width::W32, AluOp::Xor, index, Operand::Reg(scratch));
    }
    out.may_goto(Target::NoMatch);
}

fn store(out: &mut Emitter, src: Reg) {
    out.push(Insn::Store { size: Size::Dw, base: Reg::R10, offset: ROUNDS, src: Operand::Reg(src) });
}
