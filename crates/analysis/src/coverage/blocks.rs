//! Basic blocks, and the edges between them.

use std::collections::BTreeMap;

use paceline_isa::{Callee, Code, Insn};
use paceline_spec::helper::HelperId;

/// A basic block: control enters at its first instruction only, and leaves after its last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// First slot.
    pub(crate) start: usize,
    /// Slot of its last instruction.
    pub(crate) last: usize,
    /// First slot after it.
    pub(crate) end: usize,
    /// Block that a jump at its end leads to.
    pub(crate) target: Option<usize>,
    /// Block that follows if no jump is taken.
    pub(crate) next: Option<usize>,
    /// Number of edges and calls that lead to it.
    pub(crate) entries: usize,
}

impl Block {
    /// Whether both successors are possible, so that the count of the block does not give those of its edges.
    pub(crate) fn branches(&self, code: &Code) -> bool {
        let last = code.get(self.last);
        self.next.is_some() && last.is_some_and(|insn| self.target.is_some() || may_not_return(insn))
    }
}

/// Whether the program may end at an instruction that is no exit: a tail call, or a load outside of the packet.
fn may_not_return(insn: &Insn) -> bool {
    match insn {
        Insn::Call(Callee::Helper(id)) => HelperId::TailCall.is(*id),
        Insn::LoadPacket { .. } => true,
        _ => false,
    }
}

/// The blocks of a program, by rising slots; `functions` are the first slots of its functions. `None` if a jump leads nowhere.
pub(crate) fn blocks(code: &Code, functions: &[usize]) -> Option<Vec<Block>> {
    let mut starts: BTreeMap<usize, usize> = functions.iter().map(|start| (*start, 1)).collect();
    starts.entry(0).or_insert(1);
    let target_of = |slot, insn: &Insn| insn.jump_target(slot).map(|target| usize::try_from(target).ok());
    for (slot, insn) in code.iter() {
        let after = slot + insn.slots();
        if let Some(target) = target_of(slot, insn) {
            *starts.entry(target?).or_default() += 1;
        }
        let ends = insn.jump_target(slot).is_some() || !insn.falls_through() || may_not_return(insn);
        if ends && after < code.len() {
            starts.entry(after).or_default();
        }
    }
    let firsts: Vec<usize> = starts.keys().copied().collect();
    let index = |slot: usize| firsts.binary_search(&slot).ok();
    let mut blocks = Vec::with_capacity(firsts.len());
    for (number, &start) in firsts.iter().enumerate() {
        let end = firsts.get(number + 1).copied().unwrap_or(code.len());
        let (last, insn) = (start..end).rev().find_map(|slot| Some((slot, code.get(slot)?)))?;
        let target = match target_of(last, insn) {
            Some(target) => Some(index(target?)?),
            None => None,
        };
        let next = insn.falls_through().then(|| index(end)).flatten();
        blocks.push(Block { start, last, end, target, next, entries: *starts.get(&start)? });
    }
    let followed: Vec<usize> = blocks.iter().filter_map(|block| block.next).collect();
    followed.into_iter().for_each(|next| {
        if let Some(block) = blocks.get_mut(next) {
            block.entries += 1;
        }
    });
    Some(blocks)
}

#[cfg(test)]
mod tests {
    use paceline_isa::{Condition, Operand, Reg, Width};

    use super::*;

    fn jump_if(offset: i16) -> Insn {
        let (width, condition) = (Width::W64, Condition::Eq);
        Insn::JumpIf { width, condition, dst: Reg::R1, src: Operand::Imm(0), offset }
    }

    #[test]
    fn a_loop_has_a_block_for_its_body_and_one_after_it() {
        let code: Code = [jump_if(1), jump_if(-2), Insn::Exit].into_iter().collect();
        let blocks = blocks(&code, &[0]).unwrap();
        let shape: Vec<_> = blocks.iter().map(|b| (b.start, b.target, b.next, b.entries)).collect();
        assert_eq!(shape, [(0, Some(2), Some(1), 2), (1, Some(0), Some(2), 1), (2, None, None, 2)]);
    }
}
