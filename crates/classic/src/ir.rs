//! What a filter does, with everything resolved: jumps to indices, negative offsets to places in the packet.

use super::ancillary::{Ancillary, LINK_LAYER_OFFSET, NETWORK_OFFSET};
use super::check::{Filter, Purpose, distance};
use super::convert::Rules;
use super::insn::{AluOp, Condition, LoadFrom, Operation, Register, Size, SockFilter, Source};

/// A value that a load gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Constant(u32),
    Length,
    Memory(u8),
    Packet {
        offset: u32,
        size: Size,
    },
    /// At `offset` from the index register, modulo 2^32: negative ones have their meaning.
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

/// Second operand.
/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Constant(u32),
    X,
}

/// What a program returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Constant(u32),
    A,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Goes on.
    Nothing,
    Load(Register, Value),
    /// Returns 0 if the packet has not so many bytes: a load whose value nobody needs.
    Require(u32),
    Store(Register, u8),
    Alu(AluOp, Operand),
    Negate,
    /// The register gets the other's value.
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
    /// Where it goes: the next, another, one of two, nowhere.
    pub(super) fn successors(self, index: usize) -> impl Iterator<Item = usize> {
        let (one, other) = match self {
            Self::Return(_) => (None, None),
            Self::Jump(target) => (Some(target), None),
            Self::Branch { then, otherwise, .. } => (Some(then), Some(otherwise)),
            _ => (Some(index + 1), None),
        };
        one.into_iter().chain(other)
    }

    /// The register that gets a new value.
    pub(super) fn writes(self) -> Option<Register> {
        match self {
            Self::Load(register, _) | Self::Transfer(register) => Some(register),
            Self::Alu(..) | Self::Negate => Some(Register::A),
            _ => None,
        }
    }
}

/// How packets lie where the program will run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Where the network header starts.
    pub(super) network_offset: u32,
    /// No packet is longer.
    pub(super) longest: u32,
    /// Whether it is no packet but a `struct seccomp_data`.
    pub(super) seccomp: bool,
    pub(super) rules: Rules,
}

/// What each instruction of a filter does.
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
            // The checker has looked at the sum.
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
        LoadFrom::Length if layout.seccomp => load(Value::Constant(super::SECCOMP_DATA_BYTES)),
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

/// A load of the packet at a sum that is known.
pub(super) fn at_sum(register: Register, index: u32, offset: u32, size: Size, layout: Layout) -> Op {
    match (offset.checked_add(index), layout.rules) {
        (None, Rules::Libpcap) => NO_MATCH,
        _ => absolute(register, offset.wrapping_add(index), size, layout),
    }
}

/// A load of the packet at an offset that is known.
fn absolute(register: Register, offset: u32, size: Size, layout: Layout) -> Op {
    match place(offset, size, layout) {
        Some(offset) => Op::Load(register, Value::Packet { offset, size }),
        None => NO_MATCH,
    }
}

/// Where an offset leads in the packet; `None` if no packet has bytes there (`bpf_skb_load_helper_convert_offset`
/// in `net/core/filter.c`).
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
