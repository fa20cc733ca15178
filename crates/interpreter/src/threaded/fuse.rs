//! Which operations are executed in one go.
//!
//! They stay where they are, and the first one gets a handler that executes all. So operands need no other form, and what
//! is fused is a matter of a few patterns, all of parsing packets:
//!
//! - the length of the packet and a test of a field, or of one for two numbers: what a parser does at each header;
//! - tests of one field for several numbers, which is what becomes of a `switch`: the field is loaded once;
//! - tests of two fields, which is what becomes of `a && b` and `a || b`;
//! - the end of a header that tells its length, and whether the packet goes on behind it, alone or after another address, such
//!   as that of the field that tells what follows;
//! - whether the packet goes on behind an address, and a test of a field there;
//! - a mask and a comparison.

use paceline_isa::{AluOp, Condition, Size, Width};

use super::draft::Draft;
use super::kind::{Fused, Kind, Source};
use super::live::effect;
use super::packet_field::Anchor;

/// Most operations that are executed in one go.
const MOST: usize = 3;

/// Puts operations that others are between next to each other, where that makes no difference.
pub(super) fn reorder(drafts: &mut [Draft]) {
    for index in 0..drafts.len().saturating_sub(2) {
        let [first, between, last] = [drafts[index], drafts[index + 1], drafts[index + 2]];
        let apart = !between.leads && !last.leads && pair(&[first, between]).is_none();
        if apart && pair(&[first, last]).is_some() && effect(&first).commutes(effect(&between)) {
            // Jumps lead to the place.
            drafts[index] = Draft { leads: first.leads, ..between };
            drafts[index + 1] = Draft { leads: false, ..first };
        }
    }
}

/// What the first of these operations fuse to, and how many of them.
pub(super) fn fuse(drafts: &[Draft]) -> Option<(Fused, usize)> {
    // Others are come to only from the one before.
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

/// Whether an operation tests the same part as another one does; then, whether for equality.
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

/// Whether a register of 32 bits is or is not `imm`; a negative number is none of 64 bits that it could be.
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
