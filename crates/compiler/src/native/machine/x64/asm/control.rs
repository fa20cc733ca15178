use super::assembler::{Assembler, Extern, GapKind, Place};
use super::bytes::Bytes;
use super::encode::{Field, Op};
use super::mem::Mem;
use super::reg::{Cond, Gpr, OpSize};
use crate::native::code::{Label, RelocationKind};

/// `nop`s of 1 to 9 bytes (Intel SDM, volume 2, NOP).
const NOPS: [&[u8]; 9] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];

/// The fewest `nop`s of `len` bytes in total.
pub(super) fn nops(mut len: usize) -> impl Iterator<Item = &'static [u8]> {
    std::iter::from_fn(move || {
        let nop = NOPS.get(len.min(NOPS.len()).checked_sub(1)?)?;
        len -= nop.len();
        Some(*nop)
    })
}

impl Assembler {
    /// `jmp label`: two bytes, five if needed, none to the next instruction.
    #[inline]
    pub fn jmp(&mut self, label: Label) {
        self.gap(GapKind::Jump(None, label));
    }

    /// `jcc label`: two bytes, six if needed, none to the next instruction.
    #[inline]
    pub fn jcc(&mut self, cond: Cond, label: Label) {
        self.gap(GapKind::Jump(Some(cond), label));
    }

    /// `jmp reg`
    pub fn jmp_r(&mut self, reg: Gpr) {
        self.encode_r(Op::one(0xff), OpSize::D32, Field::Digit(4), reg, Bytes::NONE);
    }

    /// `jmp [mem]`, to the 64-bit address in memory.
    pub fn jmp_m(&mut self, mem: Mem) {
        self.encode_m(Op::one(0xff), OpSize::D32, Field::Digit(4), mem, Bytes::NONE);
    }

    /// `jmp target`, an address outside of the code, by a [relocation](crate::native::code::Relocation).
    pub fn jmp_extern(&mut self, target: u64) {
        self.external(Bytes::byte(0xe9), RelocationKind::Jump, target);
    }

    /// `jcc target`, an address outside of the code, by a [relocation](crate::native::code::Relocation).
    pub fn jcc_extern(&mut self, cond: Cond, target: u64) {
        self.external(Bytes::pair(0x0f, 0x80 + cond as u8), RelocationKind::Jump, target);
    }

    /// `call label`
    pub fn call(&mut self, label: Label) {
        self.refer(1, label, 0);
        self.put(Bytes::byte(0xe8), Bytes::dword(0));
    }

    /// `call reg`
    pub fn call_r(&mut self, reg: Gpr) {
        self.encode_r(Op::one(0xff), OpSize::D32, Field::Digit(2), reg, Bytes::NONE);
    }

    /// `call [mem]`, to the 64-bit address in memory.
    pub fn call_m(&mut self, mem: Mem) {
        self.encode_m(Op::one(0xff), OpSize::D32, Field::Digit(2), mem, Bytes::NONE);
    }

    /// `call target`, an address outside of the code, by a [relocation](crate::native::code::Relocation).
    pub fn call_extern(&mut self, target: u64) {
        self.external(Bytes::byte(0xe8), RelocationKind::Call, target);
    }

    fn external(&mut self, opcode: Bytes, kind: RelocationKind, target: u64) {
        let here = self.here();
        let place = Place { raw: here.raw.wrapping_add(opcode.len), ..here };
        self.externs.push(Extern { place, kind, target });
        self.put(opcode, Bytes::dword(0));
    }

    /// `ret`
    #[inline]
    pub fn ret(&mut self) {
        self.put(Bytes::byte(0xc3), Bytes::NONE);
    }

    /// `nop`s of `len` bytes in total, as few as possible.
    pub fn nop(&mut self, len: usize) {
        for nop in nops(len) {
            for &byte in nop {
                self.put(Bytes::byte(byte), Bytes::NONE);
            }
        }
    }
}
