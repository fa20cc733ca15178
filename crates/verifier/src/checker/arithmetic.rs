//! Arithmetic that is not allowed (`adjust_ptr_min_max_vals` in the kernel).

use paceline_isa::{AluOp, Operand, Reg, Width};
use paceline_spec::ObjectKind;

use super::registers::Checker;
use crate::domain::number::Number;
use crate::domain::state::{Pointer, Scalar, Target, Value};
use crate::error::{Cause, Check, Hint, RegName, reject, reject_with};
use crate::limits::MAX_OFFSET;

/// The pointer of a register, moved by a number.
pub(crate) struct Move {
    pub(crate) register: Reg,
    pub(crate) pointer: Pointer,
    pub(crate) by: Scalar,
}

impl Checker<'_> {
    /// An operation with at least one pointer. It moves a pointer, or gives any number.
    pub(crate) fn pointer_operation(
        &mut self,
        width: Width,
        op: AluOp,
        (dst, a): (Reg, Value),
        (src, b): (Operand, Value),
    ) -> Check<Option<Move>> {
        // Subtracting a number from a pointer gives a pointer, unless the upper half is lost.
        if op == AluOp::Sub && (b.pointer().is_some() || width == Width::W32) {
            self.records.facts.note_distance(self.slot, &a, &b);
        }
        match (a, b) {
            (Value::Pointer(_), Value::Pointer(_)) if op == AluOp::Sub => Ok(None),
            (Value::Pointer(_), Value::Pointer(_)) => reject(Cause::TwoPointers(RegName(dst), name(op))),
            (Value::Pointer(pointer), Value::Scalar(_)) if width == Width::W32 => {
                if op == AluOp::Sub {
                    Ok(None)
                } else {
                    prohibited(dst, op, &pointer)
                }
            }
            (Value::Pointer(pointer), Value::Scalar(by)) => self.check_move(dst, op, pointer, by),
            (Value::Scalar(by), Value::Pointer(pointer)) => {
                let from = src.reg().unwrap_or(dst);
                match (width, op) {
                    (Width::W32, AluOp::Sub) => Ok(None),
                    (Width::W64, AluOp::Sub) => reject(Cause::PointerSubtracted(RegName(dst))),
                    (Width::W64, AluOp::Add) => self.check_move(from, op, pointer, by),
                    _ => prohibited(from, op, &pointer),
                }
            }
            // Both are initialized, and at least one is a pointer.
            _ => Ok(None),
        }
    }

    fn check_move(&mut self, register: Reg, op: AluOp, pointer: Pointer, by: Scalar) -> Check<Option<Move>> {
        let target = pointer.target;
        if pointer.nullable {
            return reject_with(Cause::NullableArithmetic(RegName(register), target), Hint::NullCheck);
        }
        self.records.precision.mark_precise(by.mark);
        match target {
            Target::PacketEnd | Target::Object(ObjectKind::Socket | ObjectKind::SockCommon) => {
                return prohibited(register, op, &pointer);
            }
            Target::Map(_) if op != AluOp::Add || by.number.as_constant() != Some(0) => {
                return prohibited(register, op, &pointer);
            }
            // Compilers add the negative; the kernel refuses a subtraction.
            Target::Stack { .. } if op == AluOp::Sub => return prohibited(register, op, &pointer),
            _ => {}
        }
        check_offset(register, target, &by.number)?;
        match op {
            AluOp::Add | AluOp::Sub => Ok(Some(Move { register, pointer, by })),
            _ => prohibited(register, op, &pointer),
        }
    }
}

/// The offset of a pointer that was moved.
pub(crate) fn check_moved(reg: Reg, target: Target, moved: &Pointer) -> Check {
    if i64::from(moved.fixed).abs() >= MAX_OFFSET {
        return reject(Cause::PointerOffset(RegName(reg), target, moved.fixed.to_string()));
    }
    check_offset(reg, target, &moved.variable)
}

/// Divisions by zero and shifts by too much.
pub(crate) fn check_immediate(width: Width, op: AluOp, src: Operand) -> Check {
    let Operand::Imm(imm) = src else { return Ok(()) };
    let bits = if width == Width::W64 { 64 } else { 32 };
    match op {
        AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod if imm == 0 => reject(Cause::DivisionByZero),
        AluOp::Lsh | AluOp::Rsh | AluOp::Arsh if !(0..bits).contains(&imm) => reject(Cause::Shift(imm)),
        _ => Ok(()),
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
