//! Sequences of operations that have a handler for all.
//!
//! Each operation keeps its place and its operands. Only the first one is jumped to. What a part takes from the one before it goes through
//! no register, and if no one else uses it, it is in none.

use super::kind::{Kind, Reach, Source};
use super::sequence::{MOST, Sequence};
use crate::interpreter::op::{DST, SRC};

/// An operation, or its second part.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// With the number of uses of its result.
    Op(Kind, [u8; 8], u32),
    Data(u64, i32),
}

/// The longest sequence with a handler at the start of these operations, and its code; `None` if the first one has none. `is_target` says
/// which of them are jumped to.
pub(super) fn sequence_at(items: &[Item], is_target: &[bool]) -> Option<(u16, Sequence)> {
    let mut sequence = Sequence { len: 0, ..Sequence::of(Kind::Move) };
    // The part with the last result, its register, and how many uses there are besides those of later parts.
    let (mut found, mut last): (_, Option<(usize, u8, u32)>) = (None, None);
    let ops = items.iter().zip(is_target).filter_map(|(item, is_target)| match item {
        Item::Op(kind, bytes, uses) => Some((*kind, bytes, *uses, *is_target)),
        Item::Data(..) => None,
    });
    for (at, (kind, bytes, uses, is_target)) in ops.take(MOST).enumerate() {
        if at > 0 && is_target {
            break;
        }
        let taken = last.as_mut().filter(|(_, register, _)| operand(kind, bytes) == Some(*register));
        sequence = sequence.with(kind, taken.is_some());
        if let Some((part, _, uses)) = taken {
            *uses = if *uses == u32::MAX { u32::MAX } else { uses.saturating_sub(1) };
            sequence.parts[*part].keeps = *uses != 0;
        }
        let of = |sequence: Sequence| Some((sequence.code()?, sequence));
        found = of(sequence).or_else(|| of(sequence.keeping())).or(found);
        if let Some(result) = result(kind, bytes) {
            let uses = if kind == Kind::AddressSum { u32::MAX } else { uses };
            last = Some((at, result, uses));
        } else if kind.places().last() == Some(&DST) {
            // Another value may be in the register now.
            last = last.filter(|(_, register, _)| *register != bytes[usize::from(DST)]);
        }
    }
    found
}

/// The register of the operand that a part may take from the one before it.
fn operand(kind: Kind, bytes: &[u8; 8]) -> Option<u8> {
    let place = match kind {
        Kind::Load { reach: Reach::Start, .. } => return None,
        Kind::Load { .. }
        | Kind::Binary { .. }
        | Kind::Reverse(_)
        | Kind::AddressSum
        | Kind::Element
        | Kind::Store { src: Source::Reg, .. } => SRC,
        Kind::JumpIf { .. } | Kind::EndIf { .. } | Kind::JumpEnd { .. } => DST,
        _ => return None,
    };
    Some(bytes[usize::from(place)])
}

/// The register of an operation's result, if it is one that a later part may take.
fn result(kind: Kind, bytes: &[u8; 8]) -> Option<u8> {
    let has_one = matches!(
        kind,
        Kind::Binary { .. } | Kind::Reverse(_) | Kind::AddressSum | Kind::Element | Kind::Load { .. }
    );
    has_one.then_some(bytes[usize::from(DST)])
}
