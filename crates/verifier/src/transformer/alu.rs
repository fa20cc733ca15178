//! Arithmetic on numbers, and moves.

use paceline_isa::{AluOp, Operand, Reg, Size, SwapOrder, Width};

use super::registers::Transformer;
use crate::checker::check_immediate;
use crate::domain::access::bits;
use crate::domain::number::Number;
use crate::domain::state::{Link, Scalar, Value};
use crate::error::Check;

impl Transformer<'_> {
    /// Records that this instruction uses a value as a number.
    pub(super) fn note_as_number(&mut self, value: &Value) {
        self.records.facts.note_as_number(self.slot, value);
    }

    pub(super) fn alu(&mut self, width: Width, op: AluOp, dst: Reg, src: Operand) -> Check {
        if op == AluOp::Mov {
            return self.move_value(width, dst, src);
        }
        check_immediate(width, op, src)?;
        let (a, b) = (self.check().read(dst)?, self.check().operand(src)?);
        let result = match (a, b) {
            (Value::Scalar(a), Value::Scalar(b)) => {
                [Value::Scalar(a), Value::Scalar(b)].iter().for_each(|value| self.note_as_number(value));
                Value::Scalar(self.alu_scalars(width, op, &a, &b))
            }
            _ => self.alu_pointer(width, op, (dst, a), (src, b))?,
        };
        self.write(dst, result)
    }

    fn alu_scalars(&mut self, width: Width, op: AluOp, a: &Scalar, b: &Scalar) -> Scalar {
        let mark = self.records.precision.join(a.mark, b.mark);
        // Adding a constant keeps the link to equal numbers.
        let link = match (a.link, b.number.as_constant()) {
            (Some(link), Some(value)) if op == AluOp::Add => link.moved(&a.number, width, value as i64),
            _ => None,
        };
        Scalar { number: a.number.alu(width, op, &b.number), link, mark, stale_since: None }
    }

    fn move_value(&mut self, width: Width, dst: Reg, src: Operand) -> Check {
        let value = match src {
            Operand::Reg(reg) => self.linked(reg)?,
            Operand::Imm(_) => self.check().operand(src)?,
        };
        if width == Width::W32 {
            self.note_as_number(&value);
        }
        let moved = match (width, value) {
            (Width::W64, value) => value,
            (Width::W32, Value::Scalar(scalar)) => Value::Scalar(truncated(&scalar, 32)),
            (Width::W32, _) => Value::number(Number::unsigned(32)),
        };
        self.write(dst, moved)
    }

    /// The value of a register that is about to be copied: both copies get the same link, so that branches refine both.
    pub(super) fn linked(&mut self, reg: Reg) -> Check<Value> {
        let value = self.check().read(reg)?;
        if let Value::Scalar(scalar @ Scalar { link: None, .. }) = value
            && scalar.number.as_constant().is_none()
        {
            let link = Some(Link { id: self.records.new_id(), delta: 0, low: false });
            let value = Value::Scalar(Scalar { link, ..scalar });
            self.state.set(reg, value);
            return Ok(value);
        }
        Ok(value)
    }

    pub(super) fn move_extended(&mut self, width: Width, from: Size, dst: Reg, src: Reg) -> Check {
        let value = self.linked(src)?;
        self.note_as_number(&value);
        let value = match value {
            Value::Scalar(scalar) => {
                let number = scalar.number.sign_extend(bits(from));
                let fits = scalar.number.umax() < 1 << (bits(from) - 1);
                let scalar = Scalar { number, link: scalar.link.filter(|_| fits), ..scalar };
                Value::Scalar(if width == Width::W32 { truncated(&scalar, 32) } else { scalar })
            }
            // Privileged programs may read the bits of pointers.
            _ => Value::unknown(),
        };
        self.write(dst, value)
    }

    pub(super) fn negate(&mut self, width: Width, dst: Reg) -> Check {
        let value = self.check().read(dst)?;
        self.note_as_number(&value);
        self.write(dst, computed(&value, |number| number.neg(width)))
    }

    pub(super) fn swap(&mut self, order: SwapOrder, size: Size, dst: Reg) -> Check {
        let value = self.check().read(dst)?;
        self.note_as_number(&value);
        self.write(dst, computed(&value, |number| number.swap(order, size)))
    }
}

/// The result of a unary operation; a pointer becomes an unknown number.
fn computed(value: &Value, operation: impl Fn(&Number) -> Number) -> Value {
    match value {
        Value::Scalar(scalar) => {
            Value::Scalar(Scalar { mark: scalar.mark, ..Scalar::new(operation(&scalar.number)) })
        }
        _ => Value::number(operation(&Number::UNKNOWN)),
    }
}

/// The low bits of a number; the link remains if nothing was truncated.
pub(super) fn truncated(scalar: &Scalar, bits: u32) -> Scalar {
    let number = scalar.number.zero_extend(bits);
    let fits = bits >= 64 || scalar.number.umax() >> bits == 0;
    Scalar { number, link: scalar.link.filter(|_| fits), ..*scalar }
}
