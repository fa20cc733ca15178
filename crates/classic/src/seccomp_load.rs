//! Loads of seccomp programs: words of `struct seccomp_data`.

use paceline_isa as isa;
use paceline_isa::Reg;

use super::emit::{Emitter, Registers};
use super::insn::Register;
use super::ir::Value;

/// The program makes no calls, so caller-saved registers suffice.
pub(super) const REGISTERS: Registers = Registers { a: Reg::R0, x: Reg::R2 };

pub(super) fn prologue(_: &mut Emitter) {}

pub(super) fn load(out: &mut Emitter, register: Register, value: Value) {
    if let Value::Data { offset } = value {
        let dst = out.reg(register);
        out.load(isa::Size::W, dst, Reg::R1, offset as i16);
    }
}
