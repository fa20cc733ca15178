//! Backward analysis: live values, and the packet length that the rest of a program requires.
//!
//! A length check covers all bytes without which the program returns 0 on every path from there; values that are only compared with
//! constants stay in network order.

use super::insn::{AluOp, Register};
use super::ir::{Answer, Op, Operand, Value};
use super::loops::is_back;

/// A set of registers and words of scratch memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Live(u32);

impl Live {
    /// The set of all registers and words.
    const ALL: Self = Self(u32::MAX >> 14);

    const A: u32 = 1 << 16;
    const X: u32 = 1 << 17;

    fn bit(register: Register) -> u32 {
        match register {
            Register::A => Self::A,
            Register::X => Self::X,
        }
    }

    pub(super) fn has(self, register: Register) -> bool {
        self.0 & Self::bit(register) != 0
    }

    fn has_word(self, word: u8) -> bool {
        self.0 & 1 << word != 0
    }

    /// The live set before an instruction, from the set after it.
    fn before(self, op: Op) -> Self {
        let Self(after) = self;
        let kept = after & !op.writes().map_or(0, Self::bit);
        let operand = |operand| if operand == Operand::X { Self::X } else { 0 };
        Self(match op {
            Op::Load(_, Value::Memory(word)) => kept | 1 << word,
            Op::Load(_, Value::Indirect { .. }) => kept | Self::X,
            Op::Load(_, Value::Ancillary(word)) if word.reads_registers() => kept | Self::A | Self::X,
            Op::Store(register, word) => after & !(1 << word) | Self::bit(register),
            Op::Alu(_, source) => kept | Self::A | operand(source),
            Op::Negate => kept | Self::A,
            Op::Transfer(Register::A) => kept | Self::X,
            Op::Transfer(Register::X) => kept | Self::A,
            Op::Branch { operand: source, .. } => after | Self::A | operand(source),
            Op::Return(Answer::A) => Self::A,
            Op::Load(..) | Op::Nothing | Op::Require(_) | Op::Jump(_) | Op::Return(_) => kept,
        })
    }
}

/// Packet length in bytes below which the program returns 0 on every path. One check of this length replaces those of the following
/// loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bytes {
    /// Length from the start of the packet.
    pub(super) packet: u32,
    /// Length from the address that the current index register leads to.
    pub(super) indexed: u32,
}

impl Bytes {
    /// For a program that always returns 0.
    const RETURNS_ZERO: Self = Self { packet: u32::MAX, indexed: u32::MAX };
    const NONE: Self = Self { packet: 0, indexed: 0 };

    fn meet(self, other: Self) -> Self {
        Self { packet: self.packet.min(other.packet), indexed: self.indexed.min(other.indexed) }
    }

    fn before(self, op: Op) -> Self {
        let packet = |end: u32| Self { packet: self.packet.max(end), ..self };
        let after = match op {
            Op::Return(Answer::Constant(0)) => return Self::RETURNS_ZERO,
            Op::Return(_) => return Self::NONE,
            Op::Load(_, Value::Packet { offset, size }) => packet(offset + size.bytes()),
            Op::Load(_, Value::HeaderLength { offset }) => packet(offset + 1),
            Op::Require(end) => packet(end),
            Op::Load(_, Value::Indirect { offset, size }) if offset < 1 << 16 => {
                Self { indexed: self.indexed.max(offset + size.bytes()), ..self }
            }
            _ => self,
        };
        if op.writes() == Some(Register::X) && self != Self::RETURNS_ZERO {
            Self { indexed: 0, ..after }
        } else {
            after
        }
    }
}

/// Requirements before and after an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) live: Live,
    pub(super) live_after: Live,
    pub(super) bytes: Bytes,
}

/// Removes dead code, and returns the requirements of the rest.
pub(super) fn demand(ops: &mut [Op]) -> Vec<Demand> {
    let nothing = Demand { live: Live::default(), live_after: Live::default(), bytes: Bytes::RETURNS_ZERO };
    let mut demands = vec![nothing; ops.len()];
    for (index, op) in ops.iter_mut().enumerate().rev() {
        let mut live = Live::default();
        let mut bytes = Bytes::RETURNS_ZERO;
        for next in op.successors(index) {
            let (wanted, needed) = match demands.get(next) {
                _ if is_back(index, next) => (Live::ALL, Bytes::NONE),
                Some(next) => (next.live, next.bytes),
                None => continue,
            };
            live.0 |= wanted.0;
            bytes = bytes.meet(needed);
        }
        *op = without_need(*op, live);
        demands[index] = Demand { live: live.before(*op), live_after: live, bytes: bytes.before(*op) };
    }
    demands
}

/// The remainder of an instruction with a dead result. Packet loads and divisions can still end the program.
fn without_need(op: Op, live: Live) -> Op {
    match op {
        Op::Store(_, word) if !live.has_word(word) => Op::Nothing,
        _ if op.writes().is_none_or(|register| live.has(register)) => op,
        Op::Load(_, Value::Packet { offset, size }) => Op::Require(offset + size.bytes()),
        Op::Load(_, Value::HeaderLength { offset }) => Op::Require(offset + 1),
        Op::Load(_, Value::Indirect { .. }) => op,
        Op::Alu(op @ (AluOp::Div | AluOp::Mod), Operand::X) => Op::Alu(op, Operand::X),
        _ => Op::Nothing,
    }
}
