//! Fusion of operations.
//!
//! Fused operations keep their places and operands; the first one gets a handler that executes all. The
//! patterns are those of parsing packets:
//!
//! - a test of the packet's length and a test of a field, or of one field for two numbers: a parser's code for each header;
//! - tests of one field for several numbers, as in a `switch`: the field is loaded once;
//! - tests of two fields, as in `a && b` and `a || b`;
//! - the end of a header with a length field, and a test of the packet's length there, alone or after another address, such
//!   as that of the next-protocol field;
//! - a test of the packet's length at an address, and a test of a field there;
//! - a mask and a comparison.

use paceline_isa::{AluOp, Condition, Size, Width};

use super::draft::Draft;
use super::kind::{Fused, Kind, Source};
use super::live::effect;
use super::packet_field::Anchor;

/// Maximum number of fused operations.
const MOST: usize = 3;

/// Reorders independent operations so that fusible ones are adjacent.
pub(super) fn reorder(drafts: &mut [Draft]) {
    for index in 0..drafts.len().saturating_sub(2) {
        let [first, between, last] = [drafts[index], drafts[index + 1], drafts[index + 2]];
        let apart = !between.leads && !last.leads && pair(&[first, between]).is_none();
        if apart && pair(&[first, last]).is_some() && effect(&first).commutes(effect(&between)) {
            // A target of jumps keeps its place.
            drafts[index] = Draft { leads: first.leads, ..between };
            drafts[index + 1] = Draft { leads: false, ..first };
        }
    }
}

/// The fusion that matches at the start of these operations, and its length.
pub(super) fn fuse(drafts: &[Draft]) -> Option<(Fused, usize)> {
    // Only the first one may be a target of jumps.
    let rest = drafts.get(1..)?;
    let len = 1 + rest.iter().take_while(|draft| !draft.leads).take(MOST - 1).count();
    let drafts = &drafts[..len];
    length(drafts).or_else(|| addresses(drafts)).or_else(|| switch(drafts)).or_else(|| pair(drafts))
}

fn length(drafts: &[Draft]) -> Option<(Fused, usize)> {
    let [Draft { kind: Kind::JumpLen { shorter: true }, .. }, rest @ ..] = drafts else { return None };
    match (switch(rest), rest) {
        (Some((Fused::Switch { size, anchor: Anchor::Start, masked, three: false, last_equal }, 2)), _) => {
            Some((Fused::LenSwitch { size, masked, last_equal }, 3))
        }
        (_, [Draft { kind: Kind::Test { size, anchor: Anchor::Start, masked, equal }, .. }, ..]) => {
            Some((Fused::LenTest { size: *size, masked: *masked, equal: *equal }, 2))
        }
        _ => None,
    }
}

fn addresses(drafts: &[Draft]) -> Option<(Fused, usize)> {
    let [Draft { kind: Kind::Address, .. }, rest @ ..] = drafts else { return None };
    let Some((Fused::AddressEnd { anchor, shift }, len)) = pair(rest) else { return None };
    Some((Fused::AddressesEnd { anchor, shift }, 1 + len))
}

fn switch(drafts: &[Draft]) -> Option<(Fused, usize)> {
    let [first, second, rest @ ..] = drafts else { return None };
    let Kind::Test { size, anchor, masked, equal: true } = first.kind else { return None };
    let last_equal = alike(first, second)?;
    match rest.first().and_then(|third| alike(first, third)).filter(|_| last_equal) {
        Some(last_equal) => Some((Fused::Switch { size, anchor, masked, three: true, last_equal }, 3)),
        None => Some((Fused::Switch { size, anchor, masked, three: false, last_equal }, 2)),
    }
}

/// Whether an operation tests the same field as another one; if so, whether for equality.
fn alike(first: &Draft, other: &Draft) -> Option<bool> {
    let (
        Kind::Test { size, anchor, masked, .. },
        Kind::Test { size: other_size, anchor: other_anchor, masked: other_masked, equal },
    ) = (first.kind, other.kind)
    else {
        return None;
    };
    let same_kind = (size, anchor, masked) == (other_size, other_anchor, other_masked);
    let same_place = (first.src, first.offset, first.second) == (other.src, other.offset, other.second);
    (same_kind && same_place).then_some(equal)
}

/// Tests of a 32-bit register for `imm`. Negative numbers are sign-extended to 64 bits and never equal.
fn equality(draft: &Draft) -> Option<Condition> {
    match draft.kind {
        Kind::JumpIf { width, condition: condition @ (Condition::Eq | Condition::Ne), src: Source::Imm } => {
            Some(condition).filter(|_| width == Width::W32 || draft.imm >= 0)
        }
        _ => None,
    }
}

fn pair(drafts: &[Draft]) -> Option<(Fused, usize)> {
    let [first, second, ..] = drafts else { return None };
    let fused = match (first.kind, second.kind) {
        (Kind::AddressPart { anchor, shift }, Kind::JumpEnd { before: true }) if second.src == first.dst => {
            Fused::AddressEnd { anchor, shift }
        }
        (Kind::JumpEnd { before: true }, Kind::Test { size, anchor: Anchor::Register, masked, equal }) => {
            Fused::EndTest { size, masked, equal }
        }
        (
            Kind::Test { size, anchor, masked, equal },
            Kind::Test { size: other_size, anchor: other_anchor, masked: other_masked, equal: other_equal },
        ) if anchor == other_anchor && size != Size::W && other_size != Size::W => Fused::Tests {
            sizes: (size, other_size),
            anchor,
            masked: masked || other_masked,
            equal: (equal, other_equal),
        },
        (Kind::Alu { width: Width::W32, op: AluOp::And, src: Source::Imm }, _) if second.dst == first.dst => {
            Fused::MaskJump(equality(second)?)
        }
        _ => return None,
    };
    Some((fused, 2))
}
