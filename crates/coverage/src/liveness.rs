//! Registers whose values are read later.

use paceline_isa::{Callee, Code, Insn, Operand, Reg, RegSet};
use paceline_spec::ProgramSpec;
use paceline_spec::helper::Helper;

use crate::blocks::Block;

/// Registers that an instruction reads: of calls to known helpers only the arguments that these have.
fn reads(insn: &Insn) -> RegSet {
    const ARGUMENTS: [Reg; 5] = [Reg::R1, Reg::R2, Reg::R3, Reg::R4, Reg::R5];
    let Insn::Call(Callee::Helper(id)) = insn else { return insn.reads() };
    match Helper::from_imm(*id).and_then(|helper| helper.prototype) {
        Some(prototype) => {
            let count = prototype.args.len();
            ARGUMENTS.into_iter().take(count).fold(RegSet::EMPTY, RegSet::with)
        }
        None => insn.reads(),
    }
}

/// The live registers at the start of each block.
pub(crate) fn live_at_starts(code: &Code, blocks: &[Block]) -> Vec<RegSet> {
    let mut live = vec![RegSet::EMPTY; blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (index, block) in blocks.iter().enumerate().rev() {
            let at =
                |next: Option<usize>| next.and_then(|next| live.get(next)).copied().unwrap_or(RegSet::EMPTY);
            let mut now = at(block.target).union(at(block.next));
            for slot in (block.start..block.end).rev() {
                if let Some(insn) = code.get(slot) {
                    now = now.minus(insn.writes()).union(reads(insn));
                }
            }
            if let Some(before) = live.get_mut(index).filter(|before| **before != now) {
                *before = now;
                changed = true;
            }
        }
    }
    live
}

/// Sixteen bytes of a function's stack frame below all that it uses: the offset of the first from the frame pointer.
pub(crate) fn free_stack(spec: &ProgramSpec, code: &Code, slot: usize) -> Option<i16> {
    const FRAME: i32 = -512;
    let start = spec.function_of(slot).map_or(0, |function| function.start);
    let end = spec.functions.iter().map(|function| function.start).filter(|other| *other > start).min();
    let mut lowest = 0;
    for (slot, insn) in code.iter().filter(|(slot, _)| (start..end.unwrap_or(code.len())).contains(slot)) {
        debug_assert!(slot >= start);
        let offset = match *insn {
            Insn::Load { base: Reg::R10, offset, .. }
            | Insn::Store { base: Reg::R10, offset, .. }
            | Insn::Atomic { base: Reg::R10, offset, .. }
            | Insn::LoadAcquire { base: Reg::R10, offset, .. }
            | Insn::StoreRelease { base: Reg::R10, offset, .. } => i32::from(offset),
            // An address on the stack, or a number that could be one.
            Insn::Alu { src: Operand::Imm(imm), .. } if (FRAME..0).contains(&imm) => imm,
            _ => continue,
        };
        lowest = lowest.min(offset);
    }
    let free = (lowest & !7) - 16;
    (free >= FRAME).then_some(free as i16)
}
