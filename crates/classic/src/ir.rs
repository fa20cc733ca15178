//! Intermediate representation of a filter: jumps resolved to indices, negative offsets to packet offsets.

use super::ancillary::{Ancillary, LINK_LAYER_OFFSET, NETWORK_OFFSET};
use super::check::{Filter, Purpose, distance};
use super::insn::{AluOp, Condition, LoadFrom, Operation, Register, Size, SockFilter, Source};
use super::options::Rules;
use super::seccomp::SECCOMP_DATA_BYTES;

/// A value that a load returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Constant(u32),
    Length,
    Memory(u8),
    Packet {
        offset: u32,
        size: Size,
    },
    /// At `offset` plus the index register, modulo 2^32: negative sums have their special meaning.
    Indirect {
        offset: u32,
        size: Size,
    },
    HeaderLength {
        offset: u32,
    },
    Ancillary(Ancillary),
    /// A word of `struct seccomp_data`.
    Data {
        offset: u32,
    },
}

/// Second operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Constant(u32),
    X,
}

/// Result of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Constant(u32),
    A,
}

/// Operation of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// No operation.
    Nothing,
    Load(Register, Value),
    /// Returns 0 if the packet is shorter than this, in bytes: a load with a dead result.
    Require(u32),
    Store(Register, u8),
    Alu(AluOp, Operand),
    Negate,
    /// Copies the other register to this one.
    Transfer(Register),
    Jump(usize),
    Branch {
        condition: Condition,
        operand: Operand,
        then: usize,
        otherwise: usize,
    },
    Return(Answer),
}

impl Op {
    /// Successors: the next instruction, a jump target, both targets of a branch, or none.
    pub(super) fn successors(self, index: usize) -> impl Iterator<Item = usize> {
        let (one, other) = match self {
            Self::Return(_) => (None, None),
            Self::Jump(target) => (Some(target), None),
            Self::Branch { then, otherwise, .. } => (Some(then), Some(otherwise)),
            _ => (Some(index + 1), None),
        };
        one.into_iter().chain(other)
    }

    /// The register that is written.
    pub(super) fn writes(self) -> Option<Register> {
        match self {
            Self::Load(register, _) | Self::Transfer(register) => Some(register),
            Self::Alu(..) | Self::Negate => Some(Register::A),
            _ => None,
        }
    }
}

/// Layout of the packets that the program will process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Offset of the network header in bytes.
    pub(super) network_offset: u32,
    /// Maximum packet length in bytes.
    pub(super) longest: u32,
    /// Whether the data is a `struct seccomp_data` instead of a packet.
    pub(super) seccomp: bool,
    pub(super) rules: Rules,
}

/// Operations of a filter's instructions.
pub(super) fn resolve(filter: &Filter, layout: Layout) -> Vec<Op> {
    let resolve = |(index, (insn, operation))| resolve_insn(index, insn, operation, filter.purpose(), layout);
    filter.operations().enumerate().map(resolve).collect()
}

fn resolve_insn(
    index: usize,
    insn: SockFilter,
    operation: Operation,
    purpose: Purpose,
    layout: Layout,
) -> Op {
    let SockFilter { jt, jf, k, .. } = insn;
    let operand = |source| if source == Source::X { Operand::X } else { Operand::Constant(k) };
    match operation {
        Operation::Load(register, from) => resolve_load(register, from, k, layout),
        Operation::Store(register) => Op::Store(register, k as u8),
        Operation::Alu(op, source) => Op::Alu(op, operand(source)),
        Operation::Negate => Op::Negate,
        Operation::Jump => {
            // The checker has bounded the sum.
            let target = index as i64 + 1 + distance(k, purpose);
            Op::Jump(usize::try_from(target).unwrap_or_default())
        }
        Operation::JumpIf(condition, source) => Op::Branch {
            condition,
            operand: operand(source),
            then: index + 1 + usize::from(jt),
            otherwise: index + 1 + usize::from(jf),
        },
        Operation::Return => Op::Return(Answer::Constant(k)),
        Operation::ReturnA => Op::Return(Answer::A),
        Operation::Tax => Op::Transfer(Register::X),
        Operation::Txa => Op::Transfer(Register::A),
    }
}

fn resolve_load(register: Register, from: LoadFrom, k: u32, layout: Layout) -> Op {
    let load = |value| Op::Load(register, value);
    match from {
        LoadFrom::Immediate => load(Value::Constant(k)),
        LoadFrom::Length if layout.seccomp => load(Value::Constant(SECCOMP_DATA_BYTES)),
        LoadFrom::Length => load(Value::Length),
        LoadFrom::Memory => load(Value::Memory(k as u8)),
        LoadFrom::Absolute(_) if layout.seccomp => load(Value::Data { offset: k }),
        LoadFrom::Absolute(size) if layout.rules == Rules::Libpcap => absolute(register, k, size, layout),
        LoadFrom::Absolute(size) => match Ancillary::at(k) {
            Some(Ancillary::XorX) => Op::Alu(AluOp::Xor, Operand::X),
            Some(word) => load(Value::Ancillary(word)),
            None => absolute(register, k, size, layout),
        },
        LoadFrom::Indirect(size) if layout.rules == Rules::Libpcap && place(k, size, layout).is_none() => {
            NO_MATCH
        }
        LoadFrom::Indirect(size) => load(Value::Indirect { offset: k, size }),
        LoadFrom::HeaderLength => match place(k, Size::B, layout) {
            Some(offset) => load(Value::HeaderLength { offset }),
            None => NO_MATCH,
        },
    }
}

const NO_MATCH: Op = Op::Return(Answer::Constant(0));

/// A packet load at the sum of an offset and a known index register.
pub(super) fn at_sum(register: Register, index: u32, offset: u32, size: Size, layout: Layout) -> Op {
    match (offset.checked_add(index), layout.rules) {
        (None, Rules::Libpcap) => NO_MATCH,
        _ => absolute(register, offset.wrapping_add(index), size, layout),
    }
}

/// A packet load at a known offset.
fn absolute(register: Register, offset: u32, size: Size, layout: Layout) -> Op {
    match place(offset, size, layout) {
        Some(offset) => Op::Load(register, Value::Packet { offset, size }),
        None => NO_MATCH,
    }
}

/// Packet offset for a possibly negative offset; `None` if no packet has bytes there (`bpf_skb_load_helper_convert_offset` in
/// `net/core/filter.c`).
fn place(offset: u32, size: Size, layout: Layout) -> Option<u32> {
    const NEGATIVE: u32 = 1 << 31;
    let place = match offset {
        NEGATIVE.. if layout.rules == Rules::Libpcap => return None,
        NETWORK_OFFSET.. => offset - NETWORK_OFFSET + layout.network_offset,
        LINK_LAYER_OFFSET.. => offset - LINK_LAYER_OFFSET,
        NEGATIVE.. => return None,
        _ => offset,
    };
    (u64::from(place) + u64::from(size.bytes()) <= u64::from(layout.longest)).then_some(place)
}
