//! How many look-ups come after an instruction: which side of a branch on an unknown value is worth to follow.

use paceline_isa::{Callee, Code, Imm64, Insn, Reg};
use paceline_spec::helper::HelperId;

use crate::slice::look_ups::LookUps;

/// Most slots between the load of a map and the look-up in it.
const NEAR: usize = 16;

/// For each slot, the number of look-ups in maps of interest on the way from there to the end of its function, along the way with most of them.
/// Loops count once.
pub(crate) struct Distance(Vec<u32>);

impl Distance {
    pub(crate) fn of(code: &Code, maps: &[LookUps]) -> Self {
        let mut counts = Self(vec![0; code.len() + 1]);
        // Compilers put subprograms behind their callers, so that the count of a callee is known at most calls.
        for slot in (0..code.len()).rev() {
            let Some(insn) = code.get(slot) else { continue };
            let after = if insn.falls_through() { counts.at((slot + insn.slots()) as i64) } else { 0 };
            let target = insn.jump_target(slot).map_or(0, |target| counts.at(target));
            let called = insn.subprogram_target(slot).map_or(0, |target| counts.at(target));
            let own = u32::from(looks_up(code, slot, insn, maps));
            counts.0[slot] = own.saturating_add(called).saturating_add(after.max(target));
        }
        counts
    }

    pub(crate) fn at(&self, slot: i64) -> u32 {
        // default: behind the end of the code there is no look-up; this is an order of preference only.
        usize::try_from(slot).ok().and_then(|slot| self.0.get(slot).copied()).unwrap_or_default()
    }
}

/// Whether an instruction is a look-up in a map of interest, by the last map that was loaded before.
fn looks_up(code: &Code, slot: usize, insn: &Insn, maps: &[LookUps]) -> bool {
    if *insn != Insn::Call(Callee::Helper(HelperId::MapLookupElem.imm())) {
        return false;
    }
    let before = (slot.saturating_sub(NEAR)..slot).rev().filter_map(|slot| code.get(slot));
    let map = before.into_iter().find_map(|insn| match insn {
        Insn::LoadImm64 { dst: Reg::R1, value: Imm64::MapIndex(index) } => usize::try_from(*index).ok(),
        _ => None,
    });
    map.and_then(|map| maps.get(map)).is_some_and(|map| matches!(map, LookUps::Ahead { .. }))
}
