//! Instructions.

use paceline_isa::{AluOp, Insn, Operand, Reg, Size, Width};

pub(super) fn mov(dst: Reg, src: Operand) -> Insn {
    alu(Width::W64, AluOp::Mov, dst, src)
}

pub(super) fn add(dst: Reg, imm: i32) -> Insn {
    alu(Width::W64, AluOp::Add, dst, Operand::Imm(imm))
}

pub(super) fn alu(width: Width, op: AluOp, dst: Reg, src: Operand) -> Insn {
    Insn::Alu { width, op, dst, src }
}

pub(super) fn load(size: Size, dst: Reg, base: Reg, offset: i16) -> Insn {
    Insn::Load { size, signed: false, dst, base, offset }
}
