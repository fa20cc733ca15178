//! Arithmetic.

use paceline_isa::{AluOp, Operand, Reg, Size, SwapOrder, Width};

use super::emitter::{Emitter, SCRATCH, gpr};
use paceline_compiler::native::machine::x64::{Alu, Gpr, OpSize, Shift, ShiftX, Width as NativeWidth};

impl Emitter<'_> {
    pub(super) fn alu(&mut self, width: Width, op: AluOp, dst: Reg, src: Operand) {
        let gpr = gpr(dst);
        match op {
            AluOp::Mov => self.mov(width, gpr, src),
            AluOp::Add => self.simple(Alu::Add, width, gpr, src),
            AluOp::Sub => self.simple(Alu::Sub, width, gpr, src),
            AluOp::Or => self.simple(Alu::Or, width, gpr, src),
            AluOp::And => self.simple(Alu::And, width, gpr, src),
            AluOp::Xor => self.simple(Alu::Xor, width, gpr, src),
            AluOp::Mul => self.multiply(NativeWidth::of(width), gpr, src),
            AluOp::Lsh => self.shift(Shift::Shl, ShiftX::Shlx, width, gpr, src),
            AluOp::Rsh => self.shift(Shift::Shr, ShiftX::Shrx, width, gpr, src),
            AluOp::Arsh => self.shift(Shift::Sar, ShiftX::Sarx, width, gpr, src),
            AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod => {
                self.divide(op, NativeWidth::of(width), gpr, src)
            }
        }
    }

    fn mov(&mut self, width: Width, dst: Gpr, src: Operand) {
        match (src, width) {
            (Operand::Imm(imm), Width::W32) => self.set(dst, u64::from(imm as u32)),
            (Operand::Imm(imm), Width::W64) => self.set(dst, imm as u64),
            (Operand::Reg(reg), _) => {
                let src = gpr(reg);
                if src != dst || width == Width::W32 {
                    self.asm.mov_rr(NativeWidth::of(width), dst, src);
                }
            }
        }
    }

    fn simple(&mut self, op: Alu, width: Width, dst: Gpr, src: Operand) {
        let width = NativeWidth::of(width);
        match src {
            Operand::Imm(imm) => self.asm.alu_ri(op, width, dst, imm),
            Operand::Reg(reg) => {
                self.asm.alu_rr(op, width, dst, gpr(reg));
            }
        }
    }

    fn multiply(&mut self, width: NativeWidth, dst: Gpr, src: Operand) {
        match src {
            Operand::Imm(imm) => self.asm.imul_rri(width, dst, dst, imm),
            Operand::Reg(reg) => {
                self.asm.imul_rr(width, dst, gpr(reg));
            }
        }
    }

    fn shift(&mut self, op: Shift, by_register: ShiftX, width: Width, dst: Gpr, src: Operand) {
        let bits = if width == Width::W32 { 32 } else { 64 };
        let width = NativeWidth::of(width);
        match src {
            Operand::Imm(imm) => match imm as u32 % bits {
                // The upper half is still zero-extended for a count of 0.
                0 if width == NativeWidth::D32 => self.asm.mov_rr(width, dst, dst),
                0 => {}
                count => self.asm.shift_ri(op, width, dst, count as u8),
            },
            Operand::Reg(reg) => {
                let count = gpr(reg);
                if self.features.bmi2 {
                    self.asm.shiftx(by_register, width, dst, dst, count);
                } else {
                    self.shift_by_cl(op, width, dst, count);
                }
            }
        }
    }

    /// A shift by a register without BMI2: the count must be in `cl`.
    fn shift_by_cl(&mut self, op: Shift, width: NativeWidth, dst: Gpr, count: Gpr) {
        match (dst, count) {
            (_, Gpr::Rcx) => self.asm.shift_rcl(op, width, dst),
            (Gpr::Rcx, _) => {
                self.asm.mov_rr(NativeWidth::Q64, SCRATCH, Gpr::Rcx);
                self.asm.mov_rr(NativeWidth::D32, Gpr::Rcx, count);
                self.asm.shift_rcl(op, width, SCRATCH);
                self.asm.mov_rr(NativeWidth::Q64, Gpr::Rcx, SCRATCH);
            }
            _ => {
                self.asm.mov_rr(NativeWidth::Q64, SCRATCH, Gpr::Rcx);
                self.asm.mov_rr(NativeWidth::D32, Gpr::Rcx, count);
                self.asm.shift_rcl(op, width, dst);
                self.asm.mov_rr(NativeWidth::Q64, Gpr::Rcx, SCRATCH);
            }
        }
    }

    pub(super) fn move_signed(&mut self, width: Width, from: Size, dst: Reg, src: Reg) {
        self.asm.movsx_rr(NativeWidth::of(width), OpSize::of(from), gpr(dst), gpr(src));
    }

    pub(super) fn swap(&mut self, order: SwapOrder, size: Size, dst: Reg) {
        let dst = gpr(dst);
        let reverse = order != SwapOrder::ToLe;
        match size {
            Size::B | Size::H => {
                if reverse {
                    self.asm.shift_ri(Shift::Rol, OpSize::W16, dst, 8);
                }
                self.asm.movzx_rr(OpSize::W16, dst, dst);
            }
            Size::W if reverse => self.asm.bswap(NativeWidth::D32, dst),
            Size::W => self.asm.mov_rr(NativeWidth::D32, dst, dst),
            Size::Dw if reverse => self.asm.bswap(NativeWidth::Q64, dst),
            Size::Dw => {}
        }
    }
}
