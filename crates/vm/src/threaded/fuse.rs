//! Which operations are executed in one go.
//!
//! They stay where they are, and the first one gets a handler that executes all. So operands need no other form, and what
//! is fused is a matter of a few patterns: those that compilers make of parsing packets.

use paceline_isa::{AluOp, Condition, Size, Width};

use super::draft::Draft;
use super::kind::{Fused, Kind, Reach, Source};

/// Most operations that are fused.
pub(super) const MOST_FUSED: usize = 7;

/// What the first operations of a block fuse to, and how many of them.
pub(super) fn fuse(block: &[Draft]) -> Option<(Fused, usize)> {
    compose(block).or_else(|| triple(block)).or_else(|| pair(block))
}

/// The width of an instruction of this kind, and the register that it changes.
fn alu(draft: &Draft, wanted: AluOp, source: Source) -> Option<(Width, u8)> {
    match draft.kind {
        Kind::Alu { width, op, src } if op == wanted && src == source => Some((width, draft.dst)),
        _ => None,
    }
}

fn alu64(draft: &Draft, wanted: AluOp, source: Source) -> Option<u8> {
    alu(draft, wanted, source).filter(|(width, _)| *width == Width::W64).map(|(_, dst)| dst)
}

fn packet_byte(draft: &Draft) -> bool {
    draft.kind == Kind::Load { size: Size::B, signed: false, reach: Reach::Packet }
}

/// Whether a register is or is not `imm`.
fn equality(draft: &Draft) -> Option<(Width, Condition)> {
    match draft.kind {
        Kind::JumpIf { width, condition: condition @ (Condition::Eq | Condition::Ne), src: Source::Imm } => {
            Some((width, condition))
        }
        _ => None,
    }
}

/// The width makes no difference to so small numbers.
fn compose(block: &[Draft]) -> Option<(Fused, usize)> {
    let [first, second, shift, rest @ ..] = block else { return None };
    let (low, high) = (first.dst, second.dst);
    let is = |draft: Option<&Draft>, op, source| {
        draft.and_then(|draft| alu(draft, op, source)).is_some_and(|(_, dst)| dst == high)
    };
    if !packet_byte(first)
        || !packet_byte(second)
        || low == high
        || !is(Some(shift), AluOp::Lsh, Source::Imm)
        || shift.imm != 8
    {
        return None;
    }
    let masked = is(rest.first(), AluOp::And, Source::Imm);
    let rest = rest.get(usize::from(masked)..)?;
    if !is(rest.first(), AluOp::Or, Source::Reg) || rest.first()?.src != low {
        return None;
    }
    let truncated = is(rest.get(1), AluOp::And, Source::Imm);
    let rest = rest.get(1 + usize::from(truncated)..)?;
    let jump =
        rest.first().filter(|draft| draft.dst == high).and_then(equality).map(|(_, condition)| condition);
    let len = 4 + usize::from(masked) + usize::from(truncated) + usize::from(jump.is_some());
    Some((Fused::Compose { masked, truncated, jump }, len))
}

fn triple(block: &[Draft]) -> Option<(Fused, usize)> {
    let [first, second, third, ..] = block else { return None };
    let greater = Kind::JumpIf { width: Width::W64, condition: Condition::Gt, src: Source::Reg };
    if is_mov_add(first, second) && third.kind == greater && third.dst == first.dst {
        return Some((Fused::Check, 3));
    }
    let (width, dst) = alu(second, AluOp::Lsh, Source::Imm)?;
    let masks = alu(third, AluOp::And, Source::Imm) == Some((width, dst));
    (packet_byte(first) && first.dst == dst && masks).then_some((Fused::LoadShiftMask(width), 3))
}

fn is_mov_add(first: &Draft, second: &Draft) -> bool {
    let moved = alu64(first, AluOp::Mov, Source::Reg);
    moved.is_some() && alu64(second, AluOp::Add, Source::Imm) == moved
}

fn pair(block: &[Draft]) -> Option<(Fused, usize)> {
    let [first, second, ..] = block else { return None };
    let fused = match (first.kind, second.kind) {
        _ if is_mov_add(first, second) => Fused::MovAdd,
        (Kind::LoadFrame(Size::Dw), Kind::LoadFrame(Size::Dw)) => Fused::LoadFrames,
        (
            Kind::Load { size: size @ (Size::B | Size::H | Size::W), signed: false, reach: Reach::Packet },
            _,
        ) if second.dst == first.dst => {
            // What is loaded fits 32 bits; a negative number is none of 64 that it could be.
            let (width, condition) = equality(second)?;
            if width == Width::W64 && second.imm < 0 {
                return None;
            }
            Fused::LoadJump { size, condition }
        }
        (Kind::Alu { width: Width::W32, op: AluOp::And, src: Source::Imm }, _) if second.dst == first.dst => {
            let (width, condition) = equality(second)?;
            if width == Width::W64 && second.imm < 0 {
                return None;
            }
            Fused::MaskJump(condition)
        }
        (Kind::Alu { width, op: AluOp::Mov, src: Source::Imm }, Kind::End) if first.dst == 0 => {
            Fused::Return(width)
        }
        _ => {
            alu64(first, AluOp::Add, Source::Reg)?;
            alu64(second, AluOp::Add, Source::Imm)?;
            Fused::AddAdd
        }
    };
    Some((fused, 2))
}
