//! Conversion between an instruction and its form and operands, which correspond to a row of the table and the fields.

use super::insn::{Callee, Imm64, Insn, Operand, Reg};
use crate::table::{Form, Imm64Kind, Source};

/// The operands of an instruction, by field. Fields without an operand are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operands {
    pub(crate) dst: Reg,
    pub(crate) src: Reg,
    pub(crate) offset: i16,
    pub(crate) imm: i32,
    pub(crate) next_imm: i32,
}

impl Operands {
    pub(crate) const NONE: Self = Self { dst: Reg::R0, src: Reg::R0, offset: 0, imm: 0, next_imm: 0 };

    /// The second operand of a form, from a register or the immediate.
    const fn operand(&self, source: Source) -> Operand {
        match source {
            Source::K => Operand::Imm(self.imm),
            Source::X => Operand::Reg(self.src),
        }
    }

    fn with_operand(self, operand: Operand) -> (Source, Self) {
        match operand {
            Operand::Imm(imm) => (Source::K, Self { imm, ..self }),
            Operand::Reg(src) => (Source::X, Self { src, ..self }),
        }
    }
}

impl Form {
    /// The instruction of this form with these operands.
    pub(crate) fn with(self, o: &Operands) -> Insn {
        let Operands { dst, src, offset, imm, .. } = *o;
        match self {
            Self::Alu(width, op, source) => Insn::Alu { width, op, dst, src: o.operand(source) },
            Self::Neg(width) => Insn::Neg { width, dst },
            Self::MovSx(width, from) => Insn::MovSx { width, from, dst, src },
            Self::AddrSpaceCast => {
                let (to, from) = halves(imm);
                Insn::AddrSpaceCast { dst, src, to, from }
            }
            Self::Swap(order, size) => Insn::Swap { order, size, dst },
            Self::Load(size) => Insn::Load { size, signed: false, dst, base: src, offset },
            Self::LoadSx(size) => Insn::Load { size, signed: true, dst, base: src, offset },
            Self::Store(size, source) => Insn::Store { size, base: dst, offset, src: o.operand(source) },
            Self::Atomic(width, op) => Insn::Atomic { width, op, base: dst, offset, src },
            Self::LoadAcquire(size) => Insn::LoadAcquire { size, dst, base: src, offset },
            Self::StoreRelease(size) => Insn::StoreRelease { size, base: dst, offset, src },
            Self::LoadImm64(kind) => Insn::LoadImm64 { dst, value: kind.with(imm, o.next_imm) },
            Self::LoadPacket(size, source) => {
                let index = matches!(source, Source::X).then_some(src);
                Insn::LoadPacket { size, index, offset: imm }
            }
            Self::Jump => Insn::Jump { offset },
            Self::JumpLong => Insn::JumpLong { offset: imm },
            Self::JumpIf(width, condition, source) => {
                Insn::JumpIf { width, condition, dst, src: o.operand(source), offset }
            }
            Self::MayGoto => Insn::MayGoto { offset },
            Self::CallHelper => Insn::Call(Callee::Helper(imm)),
            Self::CallSubprogram => Insn::Call(Callee::Subprogram(imm)),
            Self::CallKfunc => Insn::Call(Callee::Kfunc { btf_id: imm, module: offset }),
            Self::CallReg => Insn::CallReg(dst),
            Self::Exit => Insn::Exit,
        }
    }
}

impl Insn {
    /// The form of the instruction, without operands.
    #[must_use]
    pub fn form(&self) -> Form {
        self.split().0
    }

    /// The inverse of [`Form::with`].
    pub(crate) fn split(&self) -> (Form, Operands) {
        let none = Operands::NONE;
        match *self {
            Self::Alu { width, op, dst, src } => {
                let (source, operands) = Operands { dst, ..none }.with_operand(src);
                (Form::Alu(width, op, source), operands)
            }
            Self::Neg { width, dst } => (Form::Neg(width), Operands { dst, ..none }),
            Self::MovSx { width, from, dst, src } => {
                (Form::MovSx(width, from), Operands { dst, src, ..none })
            }
            Self::AddrSpaceCast { dst, src, to, from } => {
                (Form::AddrSpaceCast, Operands { dst, src, imm: join(to, from), ..none })
            }
            Self::Swap { order, size, dst } => (Form::Swap(order, size), Operands { dst, ..none }),
            Self::Load { size, signed, dst, base, offset } => {
                let form = if signed { Form::LoadSx(size) } else { Form::Load(size) };
                (form, Operands { dst, src: base, offset, ..none })
            }
            Self::Store { size, base, offset, src } => {
                let (source, operands) = Operands { dst: base, offset, ..none }.with_operand(src);
                (Form::Store(size, source), operands)
            }
            Self::Atomic { width, op, base, offset, src } => {
                (Form::Atomic(width, op), Operands { dst: base, src, offset, ..none })
            }
            Self::LoadAcquire { size, dst, base, offset } => {
                (Form::LoadAcquire(size), Operands { dst, src: base, offset, ..none })
            }
            Self::StoreRelease { size, base, offset, src } => {
                (Form::StoreRelease(size), Operands { dst: base, src, offset, ..none })
            }
            Self::LoadImm64 { dst, value } => {
                let (kind, imm, next_imm) = value.split();
                (Form::LoadImm64(kind), Operands { dst, imm, next_imm, ..none })
            }
            Self::LoadPacket { size, index, offset } => {
                let source = if index.is_some() { Source::X } else { Source::K };
                let src = index.unwrap_or(Reg::R0);
                (Form::LoadPacket(size, source), Operands { src, imm: offset, ..none })
            }
            Self::Jump { offset } => (Form::Jump, Operands { offset, ..none }),
            Self::JumpLong { offset } => (Form::JumpLong, Operands { imm: offset, ..none }),
            Self::JumpIf { width, condition, dst, src, offset } => {
                let (source, operands) = Operands { dst, offset, ..none }.with_operand(src);
                (Form::JumpIf(width, condition, source), operands)
            }
            Self::MayGoto { offset } => (Form::MayGoto, Operands { offset, ..none }),
            Self::Call(Callee::Helper(imm)) => (Form::CallHelper, Operands { imm, ..none }),
            Self::Call(Callee::Subprogram(imm)) => (Form::CallSubprogram, Operands { imm, ..none }),
            Self::Call(Callee::Kfunc { btf_id, module }) => {
                (Form::CallKfunc, Operands { imm: btf_id, offset: module, ..none })
            }
            Self::CallReg(dst) => (Form::CallReg, Operands { dst, ..none }),
            Self::Exit => (Form::Exit, none),
        }
    }
}

impl Imm64Kind {
    fn with(self, imm: i32, next_imm: i32) -> Imm64 {
        let offset = next_imm.cast_unsigned();
        match self {
            Self::Value => Imm64::Value(Imm64::value(imm, next_imm)),
            Self::MapFd => Imm64::MapFd(imm),
            Self::MapValueFd => Imm64::MapValueFd { fd: imm, offset },
            Self::Variable => Imm64::Variable { btf_id: imm, btf_fd: next_imm },
            Self::Code => Imm64::Code { offset: imm },
            Self::MapIndex => Imm64::MapIndex(imm),
            Self::MapValueIndex => Imm64::MapValueIndex { index: imm, offset },
        }
    }
}

impl Imm64 {
    /// The 64-bit constant of the immediates in the first (lower half) and second slot.
    pub(crate) const fn value(imm: i32, next_imm: i32) -> u64 {
        (next_imm.cast_unsigned() as u64) << 32 | imm.cast_unsigned() as u64
    }

    fn split(self) -> (Imm64Kind, i32, i32) {
        match self {
            Self::Value(value) => (Imm64Kind::Value, value as i32, (value >> 32) as i32),
            Self::MapFd(fd) => (Imm64Kind::MapFd, fd, 0),
            Self::MapValueFd { fd, offset } => (Imm64Kind::MapValueFd, fd, offset.cast_signed()),
            Self::Variable { btf_id, btf_fd } => (Imm64Kind::Variable, btf_id, btf_fd),
            Self::Code { offset } => (Imm64Kind::Code, offset, 0),
            Self::MapIndex(index) => (Imm64Kind::MapIndex, index, 0),
            Self::MapValueIndex { index, offset } => (Imm64Kind::MapValueIndex, index, offset.cast_signed()),
        }
    }
}

/// Upper and lower half of an immediate.
pub(crate) const fn halves(imm: i32) -> (u16, u16) {
    ((imm.cast_unsigned() >> 16) as u16, imm as u16)
}

/// The inverse of [`halves`].
pub(crate) const fn join(upper: u16, lower: u16) -> i32 {
    ((upper as u32) << 16 | lower as u32).cast_signed()
}
