use super::alu::Alu;
use super::alu::alu_immediate;
use super::assembler::Assembler;
use super::bytes::Bytes;
use super::encode::{Field, Op};
use super::mem::Mem;
use super::reg::{Gpr, OpSize};

impl Assembler {
    /// `xchg left, right`
    pub fn xchg_rr(&mut self, size: impl Into<OpSize>, left: Gpr, right: Gpr) {
        let size = size.into();
        // With rax a form without ModRM exists; rax with itself would encode `nop`, which does not zero-extend at 32 bits.
        match (left, right) {
            (Gpr::Rax, other) | (other, Gpr::Rax) if size != OpSize::B8 && left != right => {
                self.encode_o(Op::one(0x90), size, other, Bytes::NONE);
            }
            _ => self.encode_r(Op::one(0x86).sized(size), size, Field::Reg(right), left, Bytes::NONE),
        }
    }

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

    /// `lock inc [mem]`. Preserves the carry flag.
    pub fn lock_inc_m(&mut self, size: impl Into<OpSize>, mem: Mem) {
        let size = size.into();
        self.encode_m(Op::one(0xfe).sized(size).locked(), size, Field::Digit(0), mem, Bytes::NONE);
    }

    /// `lock dec [mem]`. Preserves the carry flag.
    pub fn lock_dec_m(&mut self, size: impl Into<OpSize>, mem: Mem) {
        let size = size.into();
        self.encode_m(Op::one(0xfe).sized(size).locked(), size, Field::Digit(1), mem, Bytes::NONE);
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

    /// `mfence`: orders loads and stores.
    pub fn mfence(&mut self) {
        self.put(Bytes::pair(0x0f, 0xae).then(Bytes::byte(0xf0)), Bytes::NONE);
    }

    /// `pause`: a hint for spin loops.
    pub fn pause(&mut self) {
        self.put(Bytes::pair(0xf3, 0x90), Bytes::NONE);
    }
}
