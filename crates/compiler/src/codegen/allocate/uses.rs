//! The uses of virtual registers by operands.

use super::point::{EARLY, Point, point};
use crate::codegen::lir::{Function, Place, Role, taken};

/// In place of an operand: none.
const NONE: u32 = u32::MAX;

/// A use by an operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct UseAt {
    /// The position of the operand.
    pub(super) operand: u32,
    /// The point at which the instruction reads it.
    pub(super) early: Point,
    /// Whether the operand needs a register of its own. A use that is tied to a register or to a definition does not.
    pub(super) needs_register: bool,
}

/// Uses by virtual register.
pub(super) struct Uses {
    /// By virtual register: the first operand that reads it.
    first: Vec<u32>,
    /// By operand that reads a virtual register: the next one.
    next: Vec<u32>,
}

impl Uses {
    pub(super) fn of<O>(function: &Function<O>) -> Self {
        let mut first = vec![NONE; function.vregs as usize];
        let mut next = vec![NONE; function.operands.len()];
        for (at, (operand, next)) in function.operands.iter().zip(&mut next).enumerate().rev() {
            if operand.role == Role::Use {
                *next = std::mem::replace(&mut first[operand.vreg.0 as usize], at as u32);
            }
        }
        Self { first, next }
    }

    /// The uses of a virtual register, in order.
    pub(super) fn by<'a, O>(
        &'a self,
        vreg: u32,
        function: &'a Function<O>,
    ) -> impl Iterator<Item = UseAt> + 'a {
        let mut next = self.first[vreg as usize];
        std::iter::from_fn(move || {
            let operand = next;
            next = *self.next.get(operand as usize)?;
            let number = function.insts.partition_point(|inst| inst.operands.end <= operand);
            let inst = &function.insts[number];
            let (operands, at) = (function.operands_of(inst), (operand - inst.operands.start) as usize);
            let needs_register = operands[at].place == Place::Any && taken(operands) != Some(at);
            Some(UseAt { operand, early: point(number as u32, EARLY), needs_register })
        })
    }
}
