//! How the path to a refusal went, and where the values on it come from.

use paceline::isa::{Insn, Operand, Reg, Width, decode_at};
use paceline::verifier::Observer;
use paceline::verifier::state::State;
use paceline::{ProgramSpec, isa};

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
        // How many calls that have returned since are being walked through.
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
