//! Encoding of prefixes, opcode, ModRM, SIB, displacement and immediate (Intel SDM, volume 2, chapter 2).

use super::assembler::Assembler;
use super::code::AssembleError;
use super::mem::Mem;
use super::reg::{Gpr, OpSize, Width};

/// Up to eight bytes in memory order.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    pub(super) bits: u64,
    pub(super) len: u32,
}

impl Bytes {
    pub(super) const NONE: Bytes = Bytes { bits: 0, len: 0 };

    #[inline]
    pub(super) const fn byte(value: u8) -> Bytes {
        Bytes { bits: value as u64, len: 1 }
    }

    #[inline]
    pub(super) const fn pair(first: u8, second: u8) -> Bytes {
        Bytes { bits: first as u64 | (second as u64) << 8, len: 2 }
    }

    #[inline]
    pub(super) const fn dword(value: u32) -> Bytes {
        Bytes { bits: value as u64, len: 4 }
    }

    /// The low bits of an immediate of this size; for 64 bits a 32-bit one, which is sign-extended.
    #[inline]
    pub(super) fn immediate(size: OpSize, value: i32) -> Bytes {
        match size {
            OpSize::B8 => Bytes::byte(value as u8),
            OpSize::W16 => Bytes { bits: value as u16 as u64, len: 2 },
            OpSize::D32 | OpSize::Q64 => Bytes::dword(value as u32),
        }
    }

    /// Concatenation; at most eight bytes in total.
    #[inline]
    pub(super) const fn then(self, next: Bytes) -> Bytes {
        Bytes { bits: self.bits | next.bits << (8 * self.len), len: self.len + next.len }
    }

    #[inline]
    const fn then_if(self, present: bool, value: u8) -> Bytes {
        self.then(Bytes { bits: value as u64 * present as u64, len: present as u32 })
    }
}

/// An opcode with its escape bytes.
#[derive(Clone, Copy)]
pub(super) struct Op {
    lock: bool,
    bytes: Bytes,
}

impl Op {
    pub(super) const fn one(opcode: u8) -> Op {
        Op { lock: false, bytes: Bytes::byte(opcode) }
    }

    pub(super) const fn of(opcode: u8) -> Op {
        Op { lock: false, bytes: Bytes::pair(0x0f, opcode) }
    }

    pub(super) const fn locked(self) -> Op {
        Op { lock: true, ..self }
    }

    /// Opcodes of byte forms are even, and the next opcode is that of the other sizes.
    #[inline]
    pub(super) fn sized(self, size: OpSize) -> Op {
        let wide = u64::from(size != OpSize::B8) << (8 * (self.bytes.len - 1));
        Op { bytes: Bytes { bits: self.bytes.bits | wide, ..self.bytes }, ..self }
    }

    /// Prefixes and opcode. `rex` has the bits R, X and B; `byte_rex` forces a REX prefix even if it is empty.
    #[inline]
    fn head(self, size: OpSize, rex: u8, byte_rex: bool) -> Bytes {
        let rex = u8::from(size == OpSize::Q64) << 3 | rex;
        Bytes::NONE
            .then_if(self.lock, 0xf0)
            .then_if(size == OpSize::W16, 0x66)
            .then_if(rex != 0 || byte_rex, 0x40 | rex)
            .then(self.bytes)
    }
}

/// The reg field of ModRM: a register, or an opcode extension.
#[derive(Clone, Copy)]
pub(super) enum Field {
    Reg(Gpr),
    Digit(u8),
}

impl Field {
    #[inline]
    fn low(self) -> u8 {
        match self {
            Field::Reg(reg) => reg.low(),
            Field::Digit(digit) => digit,
        }
    }

    #[inline]
    fn high(self) -> u8 {
        match self {
            Field::Reg(reg) => reg.high(),
            Field::Digit(_) => 0,
        }
    }

    #[inline]
    fn byte_needs_rex(self) -> bool {
        matches!(self, Field::Reg(reg) if reg.byte_needs_rex())
    }
}

impl Assembler {
    /// An instruction with a register operand in ModRM.rm.
    #[inline(always)]
    pub(super) fn encode_r(&mut self, op: Op, size: OpSize, field: Field, rm: Gpr, imm: Bytes) {
        let byte_rex = size == OpSize::B8 && (field.byte_needs_rex() || rm.byte_needs_rex());
        self.encode_r_rex(op, size, field, rm, imm, byte_rex);
    }

    /// The same for instructions whose operands differ in size.
    #[inline(always)]
    pub(super) fn encode_r_rex(
        &mut self,
        op: Op,
        size: OpSize,
        field: Field,
        rm: Gpr,
        imm: Bytes,
        byte_rex: bool,
    ) {
        let modrm = 0b11 << 6 | field.low() << 3 | rm.low();
        let head = op.head(size, field.high() << 2 | rm.high(), byte_rex).then(Bytes::byte(modrm));
        self.put(head, imm);
    }

    /// An instruction with a memory operand in ModRM.rm.
    #[inline(always)]
    pub(super) fn encode_m(&mut self, op: Op, size: OpSize, field: Field, mem: Mem, imm: Bytes) {
        let encoded = mem.encode(field.low());
        let byte_rex = size == OpSize::B8 && field.byte_needs_rex();
        let head = op.head(size, field.high() << 2 | encoded.rex, byte_rex).then(encoded.modrm_sib);
        match mem {
            Mem::Label(label) => self.refer(head.len, label, imm.len),
            Mem::Reg { .. } if mem.has_rsp_index() => {
                self.fail(AssembleError::RspIndex { offset: self.len() })
            }
            Mem::Reg { .. } => {}
        }
        self.put(head, encoded.disp.then(imm));
    }

    /// An instruction with a register number in its opcode.
    #[inline(always)]
    pub(super) fn encode_o(&mut self, op: Op, size: OpSize, reg: Gpr, imm: Bytes) {
        let mut head = op.head(size, reg.high(), false);
        head.bits += u64::from(reg.low()) << (8 * (head.len - 1));
        self.put(head, imm);
    }

    /// A register instruction with the three-byte VEX prefix; `second` is the operand in VEX.vvvv.
    #[inline(always)]
    pub(super) fn encode_vex(&mut self, op: Vex, width: Width, dst: Gpr, rm: Gpr, second: Gpr, imm: Bytes) {
        // R, X, B and vvvv are stored inverted.
        let first = (dst.high() ^ 1) << 7 | 1 << 6 | (rm.high() ^ 1) << 5 | op.map;
        let last = u8::from(width == Width::Q64) << 7 | (second as u8 ^ 0xf) << 3 | op.prefix;
        let modrm = 0b11 << 6 | dst.low() << 3 | rm.low();
        let head = Bytes::pair(0xc4, first).then(Bytes::pair(last, op.opcode)).then(Bytes::byte(modrm));
        self.put(head, imm);
    }
}

/// An opcode after a VEX prefix.
#[derive(Clone, Copy)]
pub(super) struct Vex {
    /// The mandatory prefix: 1 for 66, 2 for F3, 3 for F2.
    pub(super) prefix: u8,
    /// The opcode map: 2 for 0F 38, 3 for 0F 3A.
    pub(super) map: u8,
    pub(super) opcode: u8,
}
