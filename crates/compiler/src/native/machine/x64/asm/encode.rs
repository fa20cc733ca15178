//! Encoding of prefixes, opcode, ModRM, SIB, displacement and immediate (Intel SDM, volume 2, chapter 2).

use super::assembler::Assembler;
use super::bytes::Bytes;
use super::mem::Mem;
use super::reg::{Gpr, OpSize};
use crate::native::machine::operand::Width;

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
            Mem::Reg { .. } if mem.has_rsp_index() => self.fail_operand(),
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
