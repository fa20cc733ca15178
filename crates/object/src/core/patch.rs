//! Patching of relocated instructions.

use paceline_isa::RawInsn;
use paceline_spec::Poison;

use super::answer::Answer;
use crate::error::CoreProblem;

/// Opcode of a two-slot load of a 64-bit immediate.
const LD_IMM64: u8 = 0x18;
/// Opcode of a call.
const CALL: u8 = 0x85;

/// Instruction classes (RFC 9669 section 3).
mod class {
    pub(super) const LD: u8 = 0;
    pub(super) const LDX: u8 = 1;
    pub(super) const ST: u8 = 2;
    pub(super) const STX: u8 = 3;
    pub(super) const ALU: u8 = 4;
    pub(super) const ALU64: u8 = 7;
}

const fn class_of(insn: RawInsn) -> u8 {
    insn.opcode & 7
}

/// Whether an instruction is a load or store.
pub(super) fn is_memory(insns: &[RawInsn], slot: usize) -> bool {
    insns.get(slot).is_some_and(|i| matches!(class_of(*i), class::LDX | class::ST | class::STX))
}

/// Writes a value into the instruction at a slot: the immediate of an arithmetic instruction, the offset of a load or store, or a
/// 64-bit immediate.
pub(super) fn apply(insns: &mut [RawInsn], slot: usize, answer: &Answer) -> Result<(), CoreProblem> {
    let second = slot.checked_add(1).and_then(|at| insns.get(at)).copied();
    let insn = insns.get_mut(slot).ok_or(CoreProblem::Misplaced)?;
    let value = answer.value.unwrap_or_default();
    let check = |found: u64| match answer.expected {
        Some(expected) if expected != found => Err(CoreProblem::Unexpected { found, expected }),
        _ => Ok(()),
    };
    match (class_of(*insn), second) {
        // Bit 3 (`BPF_X`) selects a register as second operand.
        (class::ALU | class::ALU64, _) if insn.opcode & 8 == 0 => {
            check(i64::from(insn.imm).cast_unsigned())?;
            insn.imm = value as u32 as i32;
        }
        (class::LDX | class::ST | class::STX, _) => {
            check(i64::from(insn.offset).cast_unsigned())?;
            insn.offset = i16::try_from(value).map_err(|_| CoreProblem::OutOfRange)?;
            if let Some((old, new)) = answer.sizes {
                resize(insn, old, new)?;
            }
        }
        (class::LD, Some(second)) if insn.opcode == LD_IMM64 && is_plain(*insn, second) => {
            check(u64::from(second.imm.cast_unsigned()) << 32 | u64::from(insn.imm.cast_unsigned()))?;
            insn.imm = value as u32 as i32;
            if let Some(second) = insns.get_mut(slot + 1) {
                second.imm = (value >> 32) as u32 as i32;
            }
        }
        _ => return Err(CoreProblem::Instruction(insn.opcode)),
    }
    Ok(())
}

/// Whether a 64-bit load has a plain constant and a valid second half.
fn is_plain(first: RawInsn, second: RawInsn) -> bool {
    first.src == 0 && first.offset == 0 && second == RawInsn { imm: second.imm, ..RawInsn::default() }
}

fn resize(insn: &mut RawInsn, old: u64, new: u64) -> Result<(), CoreProblem> {
    /// Sizes in the order of their two-bit encoding: W, H, B, DW.
    const SIZES: [u64; 4] = [4, 2, 1, 8];
    let code_of = |size| (0u8..).zip(SIZES).find(|(_, s)| *s == size).map(|(code, _)| code << 3);
    let is_old = code_of(old).is_some_and(|code| insn.opcode & 0x18 == code);
    match code_of(new) {
        Some(code) if is_old => insn.opcode = insn.opcode & !0x18 | code,
        _ => return Err(CoreProblem::Size { old, new }),
    }
    Ok(())
}

/// Replaces the instruction at a slot, including a second half, with calls of a nonexistent helper. Returns the slots.
pub(super) fn poison(insns: &mut [RawInsn], slot: usize) -> impl Iterator<Item = usize> {
    let halves = if insns.get(slot).is_some_and(|i| i.opcode == LD_IMM64) { 2 } else { 1 };
    let end = slot.saturating_add(halves).min(insns.len());
    for insn in insns.iter_mut().take(end).skip(slot) {
        *insn = RawInsn { opcode: CALL, imm: Poison::HELPER, ..RawInsn::default() };
    }
    slot..end
}
