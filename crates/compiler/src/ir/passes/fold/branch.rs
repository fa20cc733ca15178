//! Conditions: comparisons and branches that are decided, or simpler than they are written.

use paceline_isa::Condition;

use super::{Change, Fold, Numbering};
use crate::ir::entity::Value;
use crate::ir::function::Terminator;
use crate::ir::op::Op;
use crate::ir::ranges::decide;
use crate::ir::types::Type;

impl<N: Numbering> Fold<'_, N> {
    pub(super) fn compare(&mut self, condition: Condition, ty: Type, args: [Value; 2]) -> Option<Change> {
        if let Some(holds) = self.decided(condition, ty, args) {
            return Some(Change::Op(Op::constant(Type::I32, holds.into())));
        }
        let (condition, ty, args) = self.simpler(condition, ty, args)?;
        Some(Change::Op(Op::Compare { condition, ty, args }))
    }

    /// A simpler end of a block.
    pub(super) fn branch(&mut self, terminator: &Terminator) -> Option<Terminator> {
        let Terminator::Branch { condition, ty, args, targets } = terminator else { return None };
        let [taken, other] = targets;
        if taken == other {
            return Some(Terminator::Jump(taken.clone()));
        }
        if let Some(holds) = self.decided(*condition, *ty, *args) {
            return Some(Terminator::Jump(if holds { taken } else { other }.clone()));
        }
        if let Some((condition, ty, args)) = self.of_compare(*condition, *args) {
            return Some(Terminator::Branch { condition, ty, args, targets: targets.clone() });
        }
        let (condition, ty, args) = self.simpler(*condition, *ty, *args)?;
        Some(Terminator::Branch { condition, ty, args, targets: targets.clone() })
    }

    fn decided(&self, condition: Condition, ty: Type, [a, b]: [Value; 2]) -> Option<bool> {
        if a == b {
            return match condition {
                Condition::Eq | Condition::Ge | Condition::Le | Condition::SGe | Condition::SLe => Some(true),
                Condition::Ne | Condition::Gt | Condition::Lt | Condition::SGt | Condition::SLt => {
                    Some(false)
                }
                Condition::Set => decide(condition, ty, self.range(a), self.range(b)),
            };
        }
        // Any number may be equal to another one, or not.
        let is_unknown = |value: Value| self.ranges.known(value).is_none();
        if is_unknown(a) && (matches!(condition, Condition::Eq | Condition::Ne) || is_unknown(b)) {
            return None;
        }
        decide(condition, ty, self.range(a), self.range(b))
    }

    /// A branch on the result of a comparison is a branch on its condition, where that has an opposite if it is needed.
    fn of_compare(&self, condition: Condition, [a, b]: [Value; 2]) -> Option<(Condition, Type, [Value; 2])> {
        let Op::Compare { condition: inner, ty, args } = self.op_of(a)? else { return None };
        match (condition, self.as_const(b)?) {
            (Condition::Ne, 0) | (Condition::Eq, 1) => Some((inner, ty, args)),
            (Condition::Eq, 0) | (Condition::Ne, 1) => Some((inner.opposite()?, ty, args)),
            _ => None,
        }
    }

    fn simpler(
        &mut self,
        condition: Condition,
        ty: Type,
        [a, b]: [Value; 2],
    ) -> Option<(Condition, Type, [Value; 2])> {
        if self.as_const(a).is_some() && self.as_const(b).is_none() {
            return Some((condition.exchanged(), ty, [b, a]));
        }
        if let Some(simpler) = self.unswapped(condition, ty, [a, b]) {
            return Some(simpler);
        }
        // Zero-extended operands are compared as what they are.
        let Some(Op::ZeroExtend { arg: low }) = self.op_of(a) else { return None };
        let is_signed =
            matches!(condition, Condition::SGt | Condition::SGe | Condition::SLt | Condition::SLe);
        if is_signed {
            return None;
        }
        match self.op_of(b)? {
            Op::ZeroExtend { arg } => Some((condition, Type::I32, [low, arg])),
            Op::Const { value, .. } if u32::try_from(value).is_ok() => {
                let constant = self.constant(Type::I32, value);
                Some((condition, Type::I32, [low, constant]))
            }
            _ => None,
        }
    }
}
