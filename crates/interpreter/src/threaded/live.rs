//! Elimination of dead operations.
//!
//! One backward pass over all operations. At loop heads all registers are live.

use paceline_runtime::machine::SHADOW;

use super::draft::{Draft, Target};
use super::kind::{Kind, Source};
use super::packet_field::Anchor;

/// A set of registers.
type Registers = u16;

const ALL: Registers = 0x7ff;
/// Registers that calls clobber.
const CALLER_SAVED: Registers = 0x3f;
/// Registers that calls read.
const ARGUMENTS: Registers = 0x3e;

/// Effects of an operation on registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    reads: Registers,
    pub(super) writes: Registers,
    /// Whether the operation has other effects.
    acts: bool,
}

impl Effect {
    /// Whether two operations commute: neither has other effects, and neither writes what
    /// the other one reads or writes.
    pub(super) fn commutes(self, other: Self) -> bool {
        let apart = |a: Self, b: Self| a.writes & (b.reads | b.writes) == 0;
        !self.acts && !other.acts && apart(self, other) && apart(other, self)
    }
}

pub(super) fn effect(draft: &Draft) -> Effect {
    let (dst, src): (Registers, Registers) = (1 << draft.dst, 1 << draft.src);
    let operand = |source| if source == Source::Reg { src } else { 0 };
    let anchor = |anchor| if anchor == Anchor::Register { src } else { 0 };
    let gives = |reads| Effect { reads, writes: dst, acts: false };
    let acts = |reads| Effect { reads, writes: 0, acts: true };
    let calls = |reads| Effect { reads, writes: CALLER_SAVED, acts: true };
    match draft.kind {
        Kind::Nop => Effect::default(),
        Kind::Alu { op: paceline_isa::AluOp::Mov, src, .. } => gives(operand(src)),
        Kind::Alu { src, .. } => gives(dst | operand(src)),
        Kind::Neg(_) | Kind::Reverse(_) => gives(dst),
        Kind::MovSx { .. } | Kind::Sum | Kind::Load { .. } => gives(src),
        // A fence orders other accesses.
        Kind::LoadAcquire(_) => Effect { acts: true, ..gives(src) },
        Kind::LoadImm64
        | Kind::LoadFunction
        | Kind::LoadFrame(_)
        | Kind::LoadContext(_)
        | Kind::LoadHost(_)
        | Kind::Address => gives(0),
        Kind::LoadPart { anchor: from, .. } | Kind::AddressPart { anchor: from, .. } => gives(anchor(from)),
        Kind::Store { src, .. } => acts(dst | operand(src)),
        Kind::StoreHost { src, .. } => acts(operand(src)),
        Kind::StoreRelease(_) => acts(dst | src),
        // The fetched value goes to one of these; the other keeps its value.
        Kind::Atomic { .. } => acts(dst | src | 1),
        Kind::LoadPacket { indexed, .. } => {
            Effect { reads: if indexed { src } else { 0 }, writes: 1, acts: true }
        }
        Kind::JumpIf { src, .. } => acts(dst | operand(src)),
        Kind::JumpEnd { .. } => acts(src),
        Kind::Test { anchor: from, .. } => acts(anchor(from)),
        Kind::Goto
        | Kind::AllowRounds
        | Kind::MayGoto
        | Kind::Zero
        | Kind::JumpLen { .. }
        | Kind::Return(_)
        | Kind::Fused(_) => acts(0),
        Kind::LookupArray => calls(1 << 2),
        Kind::CallHelper | Kind::CallSubprogram | Kind::CallBack(_) | Kind::TailCall => calls(ARGUMENTS),
        Kind::CalledBack => calls(1),
        Kind::Exit | Kind::End => acts(1),
    }
}

/// Removes dead operations, and adds their instruction counts to others. Targets are indices of drafts.
pub(super) fn remove_dead(drafts: &mut Vec<Draft>) {
    let mut dead = dead(drafts);
    free_shadow(drafts, &mut dead);
    let mut places = Vec::with_capacity(drafts.len() + 1);
    let mut kept: Vec<Draft> = Vec::with_capacity(drafts.len());
    // Instructions of removed operations that are not counted yet, and whether one of these was a target of jumps.
    let (mut weight, mut leads) = (0, false);
    for (draft, dead) in drafts.iter().zip(dead) {
        if draft.leads && weight > 0 {
            // The counts go to the previous operation if this one is its only successor.
            match kept.last_mut().filter(|last| !leads && !last.ends_block()) {
                Some(last) => last.weight += weight,
                None => kept.push(Draft { weight, leads, ..Draft::new(Kind::Nop) }),
            }
            (weight, leads) = (0, false);
        }
        places.push(kept.len());
        if dead {
            weight += draft.weight;
            leads |= draft.leads;
        } else {
            let draft = Draft { weight: draft.weight + weight, leads: draft.leads || leads, ..*draft };
            (weight, leads) = (0, false);
            kept.push(draft);
        }
    }
    places.push(kept.len());
    for draft in &mut kept {
        if let Some(Target::Draft(target)) = &mut draft.target {
            *target = places.get(*target).copied().unwrap_or(kept_len(&places));
        }
    }
    *drafts = kept;
}

/// Lets operations read a register instead of its shadow if the overwriting load was removed.
fn free_shadow(drafts: &mut [Draft], dead: &mut [bool]) {
    for index in 0..drafts.len() {
        let Draft { dst: SHADOW, src, .. } = drafts[index] else { continue };
        if dead[index] {
            continue;
        }
        let (mut readers, mut overwritten, mut needed) = (Vec::new(), false, false);
        for (reader, draft) in drafts.iter().enumerate().skip(index + 1) {
            // No others know the value of the shadow.
            if draft.leads || draft.dst == SHADOW {
                break;
            }
            let effect = effect(draft);
            if !dead[reader] && effect.reads & 1 << SHADOW != 0 {
                needed |= overwritten;
                readers.push(reader);
            }
            overwritten |= !dead[reader] && effect.writes & 1 << src != 0;
        }
        if !needed {
            dead[index] = true;
            readers.into_iter().for_each(|reader| drafts[reader].src = src);
        }
    }
}

/// Number of drafts that were kept.
fn kept_len(places: &[usize]) -> usize {
    places.last().copied().unwrap_or(0)
}

/// Dead operations.
fn dead(drafts: &[Draft]) -> Vec<bool> {
    let mut dead = vec![false; drafts.len()];
    // Live registers at each operation.
    let mut live = vec![0; drafts.len() + 1];
    for (index, draft) in drafts.iter().enumerate().rev() {
        let mut after = if draft.falls_through() { live[index + 1] } else { 0 };
        if let Some(Target::Draft(target)) = draft.target.filter(|_| draft.jumps()) {
            after |= if target <= index { ALL } else { live.get(target).copied().unwrap_or(0) };
        }
        let Effect { reads, writes, acts } = effect(draft);
        dead[index] = !acts && writes & after == 0;
        live[index] = if dead[index] { after } else { after & !writes | reads };
    }
    dead
}
