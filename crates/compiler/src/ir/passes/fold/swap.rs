//! Comparisons of numbers in reverse byte order: the constant is swapped, when the program is compiled, in place of the number.

use paceline_isa::{Condition, Size, SwapOrder, eval};

use super::{Fold, Numbering};
use crate::ir::entity::Value;
use crate::ir::op::{BinaryOp, Op};
use crate::ir::types::Type;

impl<N: Numbering> Fold<'_, N> {
    /// A comparison of a swapped number, or of some of its bits, that needs no swap.
    pub(super) fn unswapped(
        &mut self,
        condition: Condition,
        ty: Type,
        [a, b]: [Value; 2],
    ) -> Option<(Condition, Type, [Value; 2])> {
        // The order of bytes does not matter to these conditions.
        if !matches!(condition, Condition::Eq | Condition::Ne | Condition::Set) {
            return None;
        }
        let Some(constant) = self.as_const(b) else {
            let ((size, a), (other, b)) = (self.swapped(a)?, self.swapped(b)?);
            let is_whole = size == other && [a, b].iter().all(|arg| self.has_only(*arg, low(size)));
            return is_whole.then_some((condition, ty, [a, b]));
        };
        let (ty, size, arg, mask) = match self.op_of(a)? {
            Op::Binary { op: BinaryOp::And, args: [inner, mask], .. } => {
                // A number of fewer bits is compared as what it is.
                let (ty, inner) = match self.op_of(inner)? {
                    Op::ZeroExtend { arg } => (Type::I32, arg),
                    _ => (ty, inner),
                };
                let (size, arg) = self.swapped(inner)?;
                (ty, size, arg, self.as_const(mask)?)
            }
            _ => self.swapped(a).map(|(size, arg)| (ty, size, arg, u64::MAX))?,
        };
        if constant & !low(size) != 0 {
            return None;
        }
        let [mask, constant] = [mask, constant].map(|number| eval::swap(SwapOrder::Always, size, number));
        let a = if self.has_only(arg, mask) {
            arg
        } else {
            let mask = self.constant(ty, mask);
            self.emit(Op::Binary { op: BinaryOp::And, ty, args: [arg, mask] })
        };
        Some((condition, ty, [a, self.constant(ty, constant)]))
    }

    /// What a value is with its bytes in reverse order, and how many of them.
    fn swapped(&self, value: Value) -> Option<(Size, Value)> {
        match self.op_of(value)? {
            Op::Swap { size, arg, .. } => Some((size, arg)),
            _ => None,
        }
    }

    /// Whether a value has none but these bits.
    fn has_only(&self, value: Value, bits: u64) -> bool {
        self.range(value).bits().max() & !bits == 0
    }
}

/// The bits of a size.
fn low(size: Size) -> u64 {
    eval::zero_extend(size, u64::MAX)
}
