//! The uses of virtual registers by operands.

use super::point::{EARLY, Point, point};
use crate::lir::{Function, Operand, Place, Role, is_taken};

/// A use by an operand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UseAt {
    /// The position of the operand.
    pub(super) operand: u32,
    /// The point at which the instruction reads it.
    pub(super) early: Point,
    /// Whether the operand needs a register of its own. A use that is tied to a register or to a definition does not.
    pub(super) needs_register: bool,
}

/// Uses by virtual register.
#[derive(Default)]
pub(super) struct Uses {
    all: Vec<UseAt>,
    /// By virtual register: the start of its uses in `all`; at the end, the length of `all`.
    starts: Vec<u32>,
}

impl Uses {
    pub(super) fn of<O>(function: &Function<O>) -> Self {
        let is_use = |operand: &&Operand| operand.role == Role::Use;
        let mut starts = vec![0; function.vregs as usize + 1];
        function.operands.iter().filter(is_use).for_each(|used| starts[used.vreg.0 as usize] += 1);
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        let mut all = vec![UseAt::default(); end as usize];
        for (number, inst) in function.insts.iter().enumerate().rev() {
            let operands = function.operands_of(inst);
            for (at, used) in operands.iter().enumerate().rev() {
                if used.role == Role::Use {
                    let start = &mut starts[used.vreg.0 as usize];
                    *start -= 1;
                    all[*start as usize] = UseAt {
                        operand: inst.operands.start + at as u32,
                        early: point(number as u32, EARLY),
                        needs_register: used.place == Place::Any && !is_taken(operands, at),
                    };
                }
            }
        }
        Self { all, starts }
    }

    /// The uses of a virtual register, in order.
    pub(super) fn by(&self, vreg: u32) -> &[UseAt] {
        let [start, end] = [vreg, vreg + 1].map(|vreg| self.starts[vreg as usize] as usize);
        &self.all[start..end]
    }
}
