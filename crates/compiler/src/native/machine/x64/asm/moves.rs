use super::assembler::Assembler;
use super::bytes::Bytes;
use super::encode::{Field, Op};
use super::mem::Mem;
use super::reg::{Gpr, OpSize};
use crate::native::machine::operand::Width;

impl Assembler {
    /// `mov dst, src`
    #[inline]
    pub fn mov_rr(&mut self, size: impl Into<OpSize>, dst: Gpr, src: Gpr) {
        let size = size.into();
        self.encode_r(Op::one(0x88).sized(size), size, Field::Reg(src), dst, Bytes::NONE);
    }

    /// Sets all 64 bits of `dst`: `mov` with a zero-extended or sign-extended 32-bit immediate, or `movabs`. Preserves the flags.
    pub fn mov_ri(&mut self, dst: Gpr, imm: u64) {
        if let Ok(imm) = u32::try_from(imm) {
            self.encode_o(Op::one(0xb8), OpSize::D32, dst, Bytes::dword(imm));
        } else if let Ok(imm) = i32::try_from(imm as i64) {
            self.encode_r(Op::one(0xc7), OpSize::Q64, Field::Digit(0), dst, Bytes::dword(imm as u32));
        } else {
            self.encode_o(Op::one(0xb8), OpSize::Q64, dst, Bytes { bits: imm, len: 8 });
        }
    }

    /// `movzx dst, src`: the low `from` bits of `src`, zero-extended to 64 bits.
    pub fn movzx_rr(&mut self, from: OpSize, dst: Gpr, src: Gpr) {
        match from {
            OpSize::B8 => self.extend(0xb6, Width::D32, dst, src, src.byte_needs_rex()),
            OpSize::W16 => self.extend(0xb7, Width::D32, dst, src, false),
            OpSize::D32 | OpSize::Q64 => self.mov_rr(from, dst, src),
        }
    }

    /// `movsx dst, src`: the low `from` bits of `src`, sign-extended to `width`; `mov` if no extension is needed.
    pub fn movsx_rr(&mut self, width: Width, from: OpSize, dst: Gpr, src: Gpr) {
        match (from, width) {
            (OpSize::B8, _) => self.extend(0xbe, width, dst, src, src.byte_needs_rex()),
            (OpSize::W16, _) => self.extend(0xbf, width, dst, src, false),
            (OpSize::D32, Width::Q64) => {
                self.encode_r(Op::one(0x63), OpSize::Q64, Field::Reg(dst), src, Bytes::NONE);
            }
            (OpSize::D32 | OpSize::Q64, _) => self.mov_rr(width, dst, src),
        }
    }

    fn extend(&mut self, opcode: u8, width: Width, dst: Gpr, src: Gpr, byte_rex: bool) {
        self.encode_r_rex(Op::of(opcode), width.into(), Field::Reg(dst), src, Bytes::NONE, byte_rex);
    }

    /// Loads and zero-extends to 64 bits: `movzx` or `mov dst, [mem]`.
    #[inline]
    pub fn load(&mut self, size: OpSize, dst: Gpr, mem: Mem) {
        let (op, width) = match size {
            OpSize::B8 => (Op::of(0xb6), OpSize::D32),
            OpSize::W16 => (Op::of(0xb7), OpSize::D32),
            OpSize::D32 | OpSize::Q64 => (Op::one(0x8b), size),
        };
        self.encode_m(op, width, Field::Reg(dst), mem, Bytes::NONE);
    }

    /// Loads and sign-extends to `width`: `movsx dst, [mem]`; `mov` of `width` if no extension is needed.
    pub fn load_sx(&mut self, width: Width, from: OpSize, dst: Gpr, mem: Mem) {
        let op = match (from, width) {
            (OpSize::B8, _) => Op::of(0xbe),
            (OpSize::W16, _) => Op::of(0xbf),
            (OpSize::D32, Width::Q64) => Op::one(0x63),
            (OpSize::D32 | OpSize::Q64, _) => Op::one(0x8b),
        };
        self.encode_m(op, width.into(), Field::Reg(dst), mem, Bytes::NONE);
    }

    /// `mov [mem], src`
    #[inline]
    pub fn store(&mut self, size: OpSize, mem: Mem, src: Gpr) {
        self.encode_m(Op::one(0x88).sized(size), size, Field::Reg(src), mem, Bytes::NONE);
    }

    /// `mov [mem], imm`; the immediate is truncated to `size`, or sign-extended to 64 bits.
    pub fn store_imm(&mut self, size: OpSize, mem: Mem, imm: i32) {
        self.encode_m(Op::one(0xc6).sized(size), size, Field::Digit(0), mem, Bytes::immediate(size, imm));
    }

    /// `lea dst, [mem]`: the address of the operand; for a label use 64 bits.
    #[inline]
    pub fn lea(&mut self, width: Width, dst: Gpr, mem: Mem) {
        self.encode_m(Op::one(0x8d), width.into(), Field::Reg(dst), mem, Bytes::NONE);
    }

    /// `push reg`, 64 bits.
    #[inline]
    pub fn push(&mut self, reg: Gpr) {
        self.encode_o(Op::one(0x50), OpSize::D32, reg, Bytes::NONE);
    }

    /// `pop reg`, 64 bits.
    #[inline]
    pub fn pop(&mut self, reg: Gpr) {
        self.encode_o(Op::one(0x58), OpSize::D32, reg, Bytes::NONE);
    }

    /// `prefetcht0 [mem]`: prefetches into all cache levels.
    pub fn prefetcht0(&mut self, mem: Mem) {
        self.encode_m(Op::of(0x18), OpSize::D32, Field::Digit(1), mem, Bytes::NONE);
    }
}
