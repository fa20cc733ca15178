//! The checker, and what it demands of registers.

use paceline_isa::{Insn, Operand, Reg};

use crate::domain::number::Number;
use crate::domain::state::{Frame, State, Value};
use crate::env::Env;
use crate::error::{Cause, Check, Hint, RegName, invariant, reject, reject_with};
use crate::records::Records;

/// The registers of a call's arguments.
pub(super) const ARGUMENTS: [Reg; 5] = [Reg::R1, Reg::R2, Reg::R3, Reg::R4, Reg::R5];

/// Checks one instruction against the state before it.
pub(crate) struct Checker<'a> {
    pub(crate) env: &'a Env<'a>,
    /// Slot of the instruction.
    pub(crate) slot: usize,
    pub(crate) state: &'a State,
    pub(crate) records: &'a mut Records,
}

impl<'a> Checker<'a> {
    /// The frame of a call, by its number.
    #[track_caller]
    #[inline]
    pub(crate) fn frame(&self, number: usize) -> Check<&'a Frame> {
        invariant(self.state.frame(number), "pointers point to the stacks of active calls only")
    }

    /// Reads a register, which must have been set.
    #[inline]
    pub(crate) fn read(&self, reg: Reg) -> Check<Value> {
        match self.state.get(reg) {
            Value::Unset => reject_with(Cause::NotSet(RegName(reg)), Hint::Initialize),
            value => Ok(value),
        }
    }

    /// The value of an operand; immediates are sign-extended.
    #[inline]
    pub(crate) fn operand(&self, operand: Operand) -> Check<Value> {
        match operand {
            Operand::Reg(reg) => self.read(reg),
            Operand::Imm(imm) => Ok(Value::number(Number::constant(i64::from(imm) as u64))),
        }
    }

    /// Marks a number as precise: the demand depends on it.
    pub(super) fn mark_precise(&mut self, value: &Value) {
        self.records.precision.mark_value(value);
    }
}

/// The frame pointer must not be changed.
#[inline]
pub(crate) fn check_writable(reg: Reg) -> Check {
    if reg == Reg::R10 { reject(Cause::FramePointer) } else { Ok(()) }
}

/// Instructions that no program may have.
pub(crate) fn check_supported(insn: &Insn) -> Check {
    match insn {
        Insn::AddrSpaceCast { .. } => reject(Cause::NotAllowed("a cast between address spaces")),
        Insn::CallReg(_) => reject_with(Cause::NotAllowed("a call through a register"), Hint::Optimize),
        _ => Ok(()),
    }
}
