//! Arithmetic on pointers (`adjust_ptr_min_max_vals` in the kernel).

use paceline_isa::{AluOp, Operand, Reg, Width};
use paceline_spec::ObjectKind;

use crate::domain::number::Number;
use crate::domain::state::{PacketRange, Pointer, Scalar, Target, Value};
use crate::error::{Cause, Check, Hint, RegName, reject, reject_with};
use crate::limits::MAX_OFFSET;
use crate::walk::Walk;

impl Walk<'_> {
    pub(super) fn alu_pointer(
        &mut self,
        width: Width,
        op: AluOp,
        (dst, a): (Reg, Value),
        (src, b): (Operand, Value),
    ) -> Check<Value> {
        // Subtracting a number from a pointer gives a pointer, unless the upper half is lost.
        if op == AluOp::Sub && (b.pointer().is_some() || width == Width::W32) {
            self.note_distance(&a, &b);
        }
        let any = || Value::number(if width == Width::W64 { Number::UNKNOWN } else { Number::unsigned(32) });
        match (a, b) {
            (Value::Pointer(_), Value::Pointer(_)) if op == AluOp::Sub => Ok(any()),
            (Value::Pointer(_), Value::Pointer(_)) => reject(Cause::TwoPointers(RegName(dst), name(op))),
            (Value::Pointer(pointer), Value::Scalar(scalar)) => {
                if width == Width::W32 {
                    return if op == AluOp::Sub { Ok(any()) } else { prohibited(dst, op, &pointer) };
                }
                self.offset_pointer(dst, op, &pointer, &scalar)
            }
            (Value::Scalar(scalar), Value::Pointer(pointer)) => {
                let from = src.reg().unwrap_or(dst);
                match (width, op) {
                    (Width::W32, AluOp::Sub) => Ok(any()),
                    (Width::W64, AluOp::Sub) => reject(Cause::PointerSubtracted(RegName(dst))),
                    (Width::W64, AluOp::Add) => self.offset_pointer(from, op, &pointer, &scalar),
                    _ => prohibited(from, op, &pointer),
                }
            }
            // Both are initialized, and at least one is a pointer.
            _ => Ok(any()),
        }
    }

    fn offset_pointer(&mut self, reg: Reg, op: AluOp, pointer: &Pointer, scalar: &Scalar) -> Check<Value> {
        if pointer.nullable {
            return reject_with(Cause::NullableArithmetic(RegName(reg), pointer.target), Hint::NullCheck);
        }
        self.precision.mark_precise(scalar.mark);
        let target = pointer.target;
        match target {
            Target::PacketEnd | Target::Object(ObjectKind::Socket | ObjectKind::SockCommon) => {
                return prohibited(reg, op, pointer);
            }
            Target::Map(_) if op != AluOp::Add || scalar.number.as_constant() != Some(0) => {
                return prohibited(reg, op, pointer);
            }
            // Compilers add the negative; the kernel refuses a subtraction.
            Target::Stack { .. } if op == AluOp::Sub => return prohibited(reg, op, pointer),
            _ => {}
        }
        check_offset(reg, target, &scalar.number)?;
        let moved = match op {
            AluOp::Add => self.add(pointer, &scalar.number, false),
            AluOp::Sub => self.add(pointer, &scalar.number, true),
            _ => return prohibited(reg, op, pointer),
        };
        if i64::from(moved.fixed).abs() >= MAX_OFFSET {
            return reject(Cause::PointerOffset(RegName(reg), target, moved.fixed.to_string()));
        }
        check_offset(reg, target, &moved.variable)?;
        Ok(Value::Pointer(moved))
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
            moved.id = self.new_id();
            let keeps = subtract && number.smin() >= 0 && matches!(range, PacketRange::Bytes(_));
            let range = if keeps { range } else { PacketRange::Bytes(0) };
            moved.target = Target::Packet { region, range };
        }
        moved
    }
}

/// Every part of an offset must be within 2^29 in both directions, so that sums cannot wrap.
fn check_offset(reg: Reg, target: Target, number: &Number) -> Check {
    let within = |value: i64| value.checked_abs().is_some_and(|value| value < MAX_OFFSET);
    let is_known = number.as_constant().is_some();
    // Like the kernel, only the lower bound is checked here, the upper bound at the access.
    if within(number.smin()) {
        return Ok(());
    }
    let hint = if is_known { None } else { Some(Hint::BoundOffset) };
    let cause = Cause::PointerOffset(RegName(reg), target, number.to_string());
    match hint {
        Some(hint) => reject_with(cause, hint),
        None => reject(cause),
    }
}

fn prohibited<T>(reg: Reg, op: AluOp, pointer: &Pointer) -> Check<T> {
    reject(Cause::PointerOperation(RegName(reg), name(op), pointer.target))
}

/// Name of an operation, for messages.
const fn name(op: AluOp) -> &'static str {
    match op {
        AluOp::Add => "addition",
        AluOp::Sub => "subtraction",
        AluOp::Mul => "multiplication",
        AluOp::Div | AluOp::SDiv => "division",
        AluOp::Mod | AluOp::SMod => "remainder",
        AluOp::Or => "bitwise or",
        AluOp::And => "bitwise and",
        AluOp::Xor => "bitwise exclusive or",
        AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => "shift",
        AluOp::Mov => "move",
    }
}
