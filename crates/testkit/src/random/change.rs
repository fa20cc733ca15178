//! Accepted programs with small changes: inputs near the limits of what a verifier accepts.

use fastrand::Rng;
use paceline_isa::{AluOp, Condition, Insn, Operand, RawInsn, Size, Width, decode_at, encode_all};
use paceline_spec::ProgramSpec;

/// The program with one or two small changes; unchanged if the chosen slots allow none.
#[must_use]
pub fn changed(program: &ProgramSpec, rng: &mut Rng) -> ProgramSpec {
    let mut program = program.clone();
    let changes = if rng.u8(..4) == 0 { 2 } else { 1 };
    for _ in 0..changes {
        for _ in 0..16 {
            if change(&mut program.insns, rng) {
                break;
            }
        }
    }
    program
}

/// The program with one or two instructions replaced by similar ones: as in [`changed`], or with another width, an immediate
/// at a limit, two instructions exchanged, or one removed.
#[must_use]
pub fn near(program: &ProgramSpec, rng: &mut Rng) -> ProgramSpec {
    let mut program = program.clone();
    for _ in 0..rng.usize(1..3) {
        for _ in 0..16 {
            let slot = rng.usize(..program.insns.len().max(1));
            let done = match rng.u8(..8) {
                0 => other_width(&mut program.insns, slot),
                1 => border(&mut program.insns, slot, rng),
                2 => swap_order(&mut program.insns, slot),
                3 => leave_out(&mut program.insns, slot),
                _ => change(&mut program.insns, rng),
            };
            if done {
                break;
            }
        }
    }
    program
}

/// The instruction of one slot, if it is one slot long and may be exchanged.
fn plain_at(insns: &[RawInsn], slot: usize) -> Option<Insn> {
    let is_second_half =
        slot.checked_sub(1).and_then(|i| insns.get(i)).is_some_and(|insn| insn.opcode == 0x18);
    decode_at(insns, slot).ok().filter(|insn| insn.slots() == 1 && !is_second_half)
}

fn other_width(insns: &mut [RawInsn], slot: usize) -> bool {
    let other = |width| if width == Width::W64 { Width::W32 } else { Width::W64 };
    let replaced = match plain_at(insns, slot) {
        Some(Insn::Alu { width, op, dst, src }) => Insn::Alu { width: other(width), op, dst, src },
        Some(Insn::JumpIf { width, condition, dst, src, offset }) => {
            Insn::JumpIf { width: other(width), condition, dst, src, offset }
        }
        Some(Insn::Load { size, signed, dst, base, offset }) if size != Size::Dw => {
            Insn::Load { size, signed: !signed, dst, base, offset }
        }
        _ => return false,
    };
    let Ok(slots) = encode_all(&[replaced]) else { return false };
    insns[slot..=slot].copy_from_slice(&slots);
    true
}

fn border(insns: &mut [RawInsn], slot: usize, rng: &mut Rng) -> bool {
    let takes_immediate = matches!(
        plain_at(insns, slot),
        Some(Insn::Alu { src: Operand::Imm(_), .. } | Insn::JumpIf { src: Operand::Imm(_), .. })
    );
    if takes_immediate {
        let borders = [0, 1, -1, i32::MIN, i32::MAX, 0xff, 0x100, 0x7f, 0x80, 0xffff, 0x8000, 31, 32, 63, 64];
        insns[slot].imm = borders[rng.usize(..borders.len())];
    }
    takes_immediate
}

fn swap_order(insns: &mut [RawInsn], slot: usize) -> bool {
    let moves = |slot| plain_at(insns, slot).is_some_and(|insn| insn.falls_through() && !is_jump(&insn));
    let done = moves(slot) && moves(slot + 1) && insns[slot] != insns[slot + 1];
    if done {
        insns.swap(slot, slot + 1);
    }
    done
}

fn is_jump(insn: &Insn) -> bool {
    matches!(insn, Insn::Jump { .. } | Insn::JumpIf { .. }) || insn.is_call()
}

fn leave_out(insns: &mut [RawInsn], slot: usize) -> bool {
    let blank = RawInsn { opcode: 0x05, ..RawInsn::default() };
    let done = plain_at(insns, slot).is_some_and(|insn| insn.falls_through()) && insns[slot] != blank;
    if done {
        insns[slot] = blank;
    }
    done
}

/// Whether the chosen slot could be changed.
fn change(insns: &mut [RawInsn], rng: &mut Rng) -> bool {
    if insns.is_empty() {
        return false;
    }
    let slot = rng.usize(..insns.len());
    let next = insns.get(slot + 1).copied();
    // The second slot of a 64-bit immediate is not an instruction.
    let is_second_half =
        slot.checked_sub(1).and_then(|i| insns.get(i)).is_some_and(|insn| insn.opcode == 0x18);
    let Ok(insn) = decode_at(insns, slot) else { return false };
    if is_second_half || insn.slots() != 1 {
        return is_second_half && nudge(&mut insns[slot].imm, rng);
    }
    let replaced = match rng.u8(..8) {
        0 => swap_operands(insn),
        1 | 2 => nudge_offset(insn, rng),
        3 => return nudge_immediate(&mut insns[slot], insn, rng),
        4 => drop_check(insn),
        5 => other_kind(insn, rng),
        6 if next.is_some_and(|next| next.opcode != 0) => {
            // The next instruction is replaced by a copy of this one, so that jump offsets stay valid.
            return copy_to_next(insns, slot, insn);
        }
        7 => return other_register(&mut insns[slot], rng),
        _ => None,
    };
    let Some(replaced) = replaced.filter(|replaced| *replaced != insn) else { return false };
    let Ok(slots) = encode_all(&[replaced]) else { return false };
    insns[slot..=slot].copy_from_slice(&slots);
    true
}

fn nudge(imm: &mut i32, rng: &mut Rng) -> bool {
    *imm = imm.wrapping_add([-8, -4, -1, 1, 1, 4, 8][rng.usize(..7)]);
    true
}

fn swap_operands(insn: Insn) -> Option<Insn> {
    match insn {
        Insn::Alu { width, op, dst, src: Operand::Reg(src) } => {
            Some(Insn::Alu { width, op, dst: src, src: Operand::Reg(dst) })
        }
        Insn::JumpIf { width, condition, dst, src: Operand::Reg(src), offset } => {
            Some(Insn::JumpIf { width, condition, dst: src, src: Operand::Reg(dst), offset })
        }
        _ => None,
    }
}

fn nudge_offset(insn: Insn, rng: &mut Rng) -> Option<Insn> {
    let by = [-8, -4, -1, 1, 1, 2, 4, 8][rng.usize(..8)];
    let mut insn = insn;
    match &mut insn {
        Insn::Load { offset, .. }
        | Insn::Store { offset, .. }
        | Insn::Atomic { offset, .. }
        | Insn::LoadAcquire { offset, .. }
        | Insn::StoreRelease { offset, .. } => *offset = offset.wrapping_add(by),
        Insn::Jump { offset } | Insn::JumpIf { offset, .. } => *offset = offset.wrapping_add(by.signum()),
        _ => return None,
    }
    Some(insn)
}

fn nudge_immediate(slot: &mut RawInsn, insn: Insn, rng: &mut Rng) -> bool {
    match insn {
        Insn::Alu { src: Operand::Imm(_), .. } | Insn::JumpIf { src: Operand::Imm(_), .. } => {
            nudge(&mut slot.imm, rng)
        }
        _ => false,
    }
}

/// A jump to the next instruction, which is a no-op.
fn drop_check(insn: Insn) -> Option<Insn> {
    matches!(insn, Insn::JumpIf { .. }).then_some(Insn::Jump { offset: 0 })
}

/// Changes the condition, size or operation.
fn other_kind(insn: Insn, rng: &mut Rng) -> Option<Insn> {
    use Condition as C;
    let mut insn = insn;
    match &mut insn {
        Insn::JumpIf { condition, .. } => {
            *condition =
                [C::Eq, C::Ne, C::Gt, C::Ge, C::Lt, C::Le, C::SGt, C::SGe, C::SLt, C::SLe][rng.usize(..10)];
        }
        Insn::Load { size, .. } | Insn::Store { size, .. } => {
            *size = [Size::B, Size::H, Size::W, Size::Dw][rng.usize(..4)];
        }
        Insn::Alu { op, .. } => {
            *op = [AluOp::Add, AluOp::Sub, AluOp::And, AluOp::Or, AluOp::Rsh, AluOp::Arsh, AluOp::Mov]
                [rng.usize(..7)];
        }
        _ => return None,
    }
    Some(insn)
}

fn copy_to_next(insns: &mut [RawInsn], slot: usize, insn: Insn) -> bool {
    let is_plain = |insn: &Insn| insn.slots() == 1 && insn.falls_through() && !insn.is_call();
    let next_is_plain = decode_at(insns, slot + 1).is_ok_and(|next| is_plain(&next));
    if !is_plain(&insn) || !next_is_plain {
        return false;
    }
    insns[slot + 1] = insns[slot];
    true
}

fn other_register(slot: &mut RawInsn, rng: &mut Rng) -> bool {
    let field = if rng.bool() { &mut slot.dst } else { &mut slot.src };
    // Fields other than registers keep their values.
    if *field == 0 {
        return false;
    }
    *field = rng.u8(..11);
    true
}
