//! The path to a refusal, and the origins of values on it.

use crate::isa;
use crate::verifier::state::State;
use paceline_isa::{Insn, Operand, Reg, Width, decode_at};
use paceline_spec::ProgramSpec;
use paceline_verifier::Observer;

const NONE: u32 = u32::MAX;

/// Remembers every instruction on the current path, as lists that paths share.
#[derive(Default)]
pub(super) struct History {
    /// Each instruction with the entry of the one before it.
    entries: Vec<(u32, u32)>,
    at: Option<u32>,
    waiting: Vec<Option<u32>>,
}

impl Observer for History {
    fn function(&mut self, _slot: usize, _state: &State) {
        *self = Self::default();
    }

    fn instruction(&mut self, slot: usize, _state: &State) {
        self.entries.push((self.at.unwrap_or(NONE), slot as u32));
        self.at = u32::try_from(self.entries.len() - 1).ok();
    }

    fn branch(&mut self, _slot: usize, _target: usize) {
        self.waiting.push(self.at);
    }

    fn resume(&mut self, _slot: usize) {
        self.at = self.waiting.pop().flatten();
    }

    /// The path was not kept.
    fn retry(&mut self, _slot: usize) {
        self.at = None;
    }
}

impl History {
    /// Slots of the path, last first.
    pub(super) fn back(&self) -> impl Iterator<Item = usize> {
        let mut at = self.at;
        std::iter::from_fn(move || {
            let &(before, slot) = self.entries.get(at? as usize)?;
            at = (before != NONE).then_some(before);
            Some(slot as usize)
        })
    }

    /// The instruction that gave a register the value it has at the last one of the path; moves are followed.
    pub(super) fn origin(&self, spec: &ProgramSpec, mut reg: Reg) -> Option<usize> {
        let mut path = self.back();
        let mut after = path.next()?;
        // Depth of calls on the backward walk that have returned already.
        let mut inside = 0_u32;
        for slot in path {
            let insn = decode_at(&spec.insns, slot).ok()?;
            let enters = insn.subprogram_target(slot).is_some_and(|target| target == after as i64);
            after = slot;
            match (insn, inside) {
                (Insn::Exit, _) => {
                    inside += 1;
                    continue;
                }
                (_, 1) if enters => inside = 0,
                (_, 1..) => {
                    inside -= u32::from(enters);
                    continue;
                }
                // The call that led into this function passed its arguments on.
                (_, 0) if enters => continue,
                _ => {}
            }
            match moved_from(&insn, reg) {
                Some(source) => reg = source,
                None if insn.writes().contains(reg) => return Some(slot),
                None => {}
            }
        }
        None
    }
}

/// The register that a plain move copies into `reg`.
fn moved_from(insn: &Insn, reg: Reg) -> Option<Reg> {
    match *insn {
        Insn::Alu { width: Width::W64, op: isa::AluOp::Mov, dst, src: Operand::Reg(src) } if dst == reg => {
            Some(src)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::ProgramKind;
    use crate::XdpAttach;
    use crate::isa::assemble;
    use crate::verifier::{Options, verify_observed};

    use super::*;

    /// The slot that gave the guilty register of a refused program its value.
    fn origin(text: &str, functions: &[usize], reg: Reg) -> Option<usize> {
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        let insns = assemble(text, &()).unwrap().encode().unwrap();
        let mut spec = ProgramSpec::new("origins", kind, insns);
        for &start in functions {
            let main = spec.functions[0].clone();
            let linkage = crate::Linkage::Static;
            spec.functions.push(crate::FunctionInfo { start, linkage, ..main });
        }
        let mut history = History::default();
        verify_observed(&spec, &[], None, &Options::default(), &mut history).unwrap_err();
        history.origin(&spec, reg)
    }

    #[test]
    fn moves_and_helpers_are_walked_over() {
        let text = "r2 = *(u32 *)(r1 + 0)
            r6 = r2
            call 7
            r3 = r6
            r0 = *(u8 *)(r3 + 0)
            exit";
        assert_eq!(origin(text, &[], Reg::R3), Some(0));
    }

    #[test]
    fn calls_take_away_what_was_in_the_arguments() {
        assert_eq!(origin("r2 = 1\ncall 7\nr0 = r2\nexit", &[], Reg::R2), Some(1));
        assert_eq!(origin("r0 = r2\nexit", &[], Reg::R2), None);
    }

    #[test]
    fn functions_that_have_returned_are_left_out() {
        let text = "r6 = *(u32 *)(r1 + 0)
            call +2
            r0 = *(u8 *)(r6 + 0)
            exit
            r6 = 1
            r0 = 2
            exit";
        assert_eq!(origin(text, &[4], Reg::R6), Some(0));
        let text = "call +3
            r1 = r0
            r0 = *(u8 *)(r1 + 0)
            exit
            r0 = 2
            exit";
        assert_eq!(origin(text, &[4], Reg::R1), Some(0), "the call gave it");
    }

    #[test]
    fn the_path_is_that_of_the_refusal() {
        let text = "r6 = *(u32 *)(r1 + 0)
            r2 = *(u32 *)(r1 + 12)
            if r2 == 0 goto +1
            goto +1
            r6 = 5
            r0 = *(u8 *)(r6 + 0)
            exit";
        assert_eq!(origin(text, &[], Reg::R6), Some(0), "the path that falls through is walked first");
    }
}
