use super::alu::Alu;
use super::alu::alu_immediate;
use super::assembler::Assembler;
use super::bytes::Bytes;
use super::encode::{Field, Op};
use super::mem::Mem;
use super::reg::{Gpr, OpSize};

impl Assembler {
    /// `xchg [mem], reg`: always atomic, without a prefix.
    pub fn xchg_mr(&mut self, size: impl Into<OpSize>, mem: Mem, reg: Gpr) {
        let size = size.into();
        self.encode_m(Op::one(0x86).sized(size), size, Field::Reg(reg), mem, Bytes::NONE);
    }

    /// `lock op [mem], src`; `cmp` is not one of them.
    pub fn lock_alu_mr(&mut self, op: Alu, size: impl Into<OpSize>, mem: Mem, src: Gpr) {
        let size = size.into();
        self.refuse_cmp(op);
        self.encode_m(Op::one(op.opcode()).sized(size).locked(), size, Field::Reg(src), mem, Bytes::NONE);
    }

    /// `lock op [mem], imm`, as [`alu_mi`](Assembler::alu_mi); `cmp` is not one of them.
    pub fn lock_alu_mi(&mut self, op: Alu, size: impl Into<OpSize>, mem: Mem, imm: i32) {
        let size = size.into();
        self.refuse_cmp(op);
        let (opcode, bytes) = alu_immediate(size, imm);
        self.encode_m(opcode.locked(), size, Field::Digit(op as u8), mem, bytes);
    }

    fn refuse_cmp(&mut self, op: Alu) {
        if op == Alu::Cmp {
            self.fail_operand();
        }
    }

    /// `lock xadd [mem], reg`: adds `reg`, which receives the old value.
    pub fn lock_xadd(&mut self, size: impl Into<OpSize>, mem: Mem, reg: Gpr) {
        let size = size.into();
        self.encode_m(Op::of(0xc0).sized(size).locked(), size, Field::Reg(reg), mem, Bytes::NONE);
    }

    /// `lock cmpxchg [mem], src`: stores `src` if memory equals rax, else loads rax. Sets the zero flag on success.
    pub fn lock_cmpxchg(&mut self, size: impl Into<OpSize>, mem: Mem, src: Gpr) {
        let size = size.into();
        self.encode_m(Op::of(0xb0).sized(size).locked(), size, Field::Reg(src), mem, Bytes::NONE);
    }

    /// `lfence`: later instructions do not start before earlier ones are complete.
    pub fn lfence(&mut self) {
        self.put(Bytes::pair(0x0f, 0xae).then(Bytes::byte(0xe8)), Bytes::NONE);
    }

    /// `pause`: a hint for spin loops.
    pub fn pause(&mut self) {
        self.put(Bytes::pair(0xf3, 0x90), Bytes::NONE);
    }
}
