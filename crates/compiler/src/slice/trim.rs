//! Removal of what no key needs, in one pass backward: all steps lead forward.

use std::collections::BTreeSet;

use paceline_isa::{Reg, RegSet};

use crate::slice::look_ups::LookUps;
use crate::slice::step::{End, Key, Next, Op, Step};
use crate::slice::value::At;

/// Registers and bytes of the stack that are read later.
#[derive(Clone, Debug, Default)]
struct Live {
    registers: RegSet,
    /// Each byte by its own place.
    bytes: BTreeSet<At>,
}

impl Live {
    fn join(&mut self, other: &Self) {
        self.registers = self.registers.union(other.registers);
        self.bytes.extend(&other.bytes);
    }

    fn read(&mut self, at: At, bytes: i32) {
        self.bytes.extend((0..bytes).map(|byte| at.plus(byte)));
    }

    /// Takes bytes out; whether one of them was live.
    fn written(&mut self, at: At, bytes: i32) -> bool {
        (0..bytes).filter(|&byte| self.bytes.remove(&at.plus(byte))).count() != 0
    }

    fn set(&mut self, reg: Reg) -> bool {
        let was_live = self.registers.contains(reg);
        self.registers = self.registers.minus(RegSet::of(reg));
        was_live
    }
}

/// A step as the ones before it see it.
#[derive(Clone, Debug, Default)]
struct Seen {
    live: Live,
    /// The step that it comes to; `None` if no look-up follows.
    goes: Next,
}

/// Removes operations whose results are not used, and branches that decide nothing. Returns whether a look-up is left.
pub(crate) fn trim(steps: &mut [Step], maps: &[LookUps]) -> bool {
    let mut seen: Vec<Seen> = vec![Seen::default(); steps.len()];
    for index in (0..steps.len()).rev() {
        let step = &mut steps[index];
        let follow = |next: Next| next.and_then(|next| seen[next].goes);
        let mut live = Live::default();
        step.end = match step.end {
            End::Goto(next) => End::Goto(follow(next)),
            End::Branch { test, taken, otherwise } => match (follow(taken), follow(otherwise)) {
                (taken, otherwise) if taken == otherwise => End::Goto(taken),
                (taken, otherwise) => {
                    live.registers = test.src.reg().map_or(RegSet::EMPTY, RegSet::of).with(test.dst);
                    End::Branch { test, taken, otherwise }
                }
            },
        };
        let after = match step.end {
            End::Goto(next) => [next, None],
            End::Branch { taken, otherwise, .. } => [taken, otherwise],
        };
        after.into_iter().flatten().for_each(|next| live.join(&seen[next].live));
        let mut kept: Vec<Op> =
            step.ops.iter().rev().filter(|op| is_needed(op, &mut live, maps)).copied().collect();
        kept.reverse();
        let looks_up = kept.iter().any(|op| matches!(op, Op::LookUp { .. }));
        let leads_on = after.iter().any(Option::is_some);
        let goes = match step.end {
            _ if !looks_up && !leads_on => None,
            End::Goto(next) if kept.is_empty() => next,
            _ => Some(index),
        };
        step.ops = kept;
        seen[index] = Seen { live, goes };
    }
    seen.first().is_some_and(|first| first.goes.is_some())
}

/// Whether an operation is needed by what comes later; notes what it needs itself.
fn is_needed(op: &Op, live: &mut Live, maps: &[LookUps]) -> bool {
    match *op {
        Op::Insn(insn) => {
            let written = insn.writes();
            let needed = written.iter().filter(|&reg| live.set(reg)).count() != 0;
            if needed {
                live.registers = live.registers.union(insn.reads());
            }
            needed
        }
        Op::Load { size, dst, at, .. } => {
            let needed = live.set(dst);
            if needed {
                live.read(at, size.bytes() as i32);
            }
            needed
        }
        Op::Store { size, at, src } => {
            let needed = live.written(at, size.bytes() as i32);
            if needed && let Some(reg) = src.reg() {
                live.registers = live.registers.with(reg);
            }
            needed
        }
        Op::LookUp { map, key } => {
            live.registers = live.registers.minus(RegSet::CALLER_SAVED);
            match (key, maps.get(map)) {
                (Key::Register, _) => live.registers = live.registers.with(Reg::R2),
                (Key::Stack(at), Some(LookUps::Ahead { key_size })) => live.read(at, key_size.cast_signed()),
                (Key::Stack(_), _) => {}
            }
            true
        }
    }
}
