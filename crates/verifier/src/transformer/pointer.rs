//! Arithmetic on pointers (`adjust_ptr_min_max_vals` in the kernel).

use paceline_isa::{AluOp, Operand, Reg, Width};

use super::registers::Transformer;
use crate::checker::{Move, check_moved};
use crate::domain::number::Number;
use crate::domain::state::{PacketRange, Pointer, Target, Value};
use crate::error::Check;

impl Transformer<'_> {
    pub(super) fn alu_pointer(
        &mut self,
        width: Width,
        op: AluOp,
        dst: (Reg, Value),
        src: (Operand, Value),
    ) -> Check<Value> {
        match self.check().pointer_operation(width, op, dst, src)? {
            None if width == Width::W64 => Ok(Value::unknown()),
            None => Ok(Value::number(Number::unsigned(32))),
            Some(Move { register, pointer, by }) => {
                let moved = self.add(&pointer, &by.number, op == AluOp::Sub);
                check_moved(register, pointer.target, &moved)?;
                Ok(Value::Pointer(moved))
            }
        }
    }

    fn add(&mut self, pointer: &Pointer, number: &Number, subtract: bool) -> Pointer {
        let sign = if subtract { -1 } else { 1 };
        let fixed = number
            .as_constant()
            .and_then(|value| (value as i64).checked_mul(sign))
            .and_then(|value| i64::from(pointer.fixed).checked_add(value))
            .and_then(|sum| i32::try_from(sum).ok());
        if let Some(fixed) = fixed {
            let mut moved = Pointer { fixed, ..*pointer };
            if let Target::Packet { region, range: PacketRange::AtEnd | PacketRange::BeyondEnd } =
                pointer.target
                && fixed < pointer.fixed
            {
                // Moved back, the pointer may be before the end again.
                moved.target = Target::Packet { region, range: PacketRange::Bytes(0) };
            }
            return moved;
        }
        let op = if subtract { AluOp::Sub } else { AluOp::Add };
        let variable = pointer.variable.alu(Width::W64, op, number);
        let mut moved = Pointer { variable, ..*pointer };
        if let Target::Packet { region, range } = pointer.target {
            // A new variable part: proven bytes remain valid if the pointer moved away from the end, but a pointer at the
            // end may not be at the end any more. The kernel keeps that too, and so decides branches wrongly:
            // tests/cases/verifier/found/packet_end.case.
            moved.id = self.records.new_id();
            let keeps = subtract && number.smin() >= 0 && matches!(range, PacketRange::Bytes(_));
            let range = if keeps { range } else { PacketRange::Bytes(0) };
            moved.target = Target::Packet { region, range };
        }
        moved
    }
}
