//! Byte order of loads: a value that is only compared with constants stays in network order, and the constants are swapped instead.

use super::demand::Demand;
use super::insn::{Condition, Register, Size};
use super::ir::{Op, Operand, Value};
use super::loops::is_back;

/// Byte order of a packet value in the accumulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// Native order: the filter's value.
    #[default]
    Machine,
    /// Two bytes in packet order.
    NetworkH,
    /// Four bytes in packet order.
    NetworkW,
}

impl Order {
    fn of(size: Size) -> Self {
        match size {
            Size::B => Self::Machine,
            Size::H => Self::NetworkH,
            Size::W => Self::NetworkW,
        }
    }

    /// A constant in this order.
    pub(super) fn constant(self, value: u32) -> u32 {
        match self {
            Self::Machine => value,
            Self::NetworkH => (value as u16).to_be().into(),
            Self::NetworkW => value.to_be(),
        }
    }
}

/// Whether the accumulator may be in network order, for two and for four bytes.
#[derive(Clone, Copy)]
struct Free {
    h: bool,
    w: bool,
}

impl Free {
    const YES: Self = Self { h: true, w: true };
    const NO: Self = Self { h: false, w: false };

    fn and(self, other: Self) -> Self {
        Self { h: self.h && other.h, w: self.w && other.w }
    }

    fn allows(self, order: Order) -> bool {
        match order {
            Order::Machine => true,
            Order::NetworkH => self.h,
            Order::NetworkW => self.w,
        }
    }

    fn before(self, op: Op) -> Self {
        match op {
            Op::Load(_, Value::Ancillary(word)) if word.reads_registers() => Self::NO,
            _ if matches!(op.writes(), Some(Register::A)) && !matches!(op, Op::Alu(..) | Op::Negate) => {
                Self::YES
            }
            Op::Branch { condition: Condition::Eq, operand: Operand::Constant(value), .. } => {
                // Truncating a constant of more than two bytes would change the comparison's result.
                Self { h: self.h && value <= u16::MAX.into(), ..self }
            }
            Op::Branch { condition: Condition::Set, operand: Operand::Constant(_), .. } => self,
            Op::Return(super::ir::Answer::Constant(_)) => Self::YES,
            Op::Load(..) | Op::Nothing | Op::Require(_) | Op::Jump(_) | Op::Store(Register::X, _) => self,
            _ => Self::NO,
        }
    }
}

/// Byte order of the accumulator before each instruction, and after each load; always native if predecessors of an instruction
/// disagree.
pub(super) struct Orders {
    before: Vec<Order>,
    free: Vec<Free>,
}

impl Orders {
    pub(super) fn machine(len: usize) -> Self {
        Self { before: vec![Order::Machine; len], free: vec![Free::NO; len + 1] }
    }

    /// `reached`: whether an instruction is reachable.
    pub(super) fn of(ops: &[Op], demands: &[Demand], reached: impl Fn(usize) -> bool) -> Self {
        let mut free = vec![Free::YES; ops.len() + 1];
        for (index, op) in ops.iter().enumerate().rev() {
            let free_at = |next| if is_back(index, next) { Some(&Free::NO) } else { free.get(next) };
            let after = op.successors(index).filter_map(free_at).fold(Free::YES, |a, b| a.and(*b));
            free[index] = after.before(*op);
        }
        let orders = Self { before: Vec::new(), free };
        let mut before: Vec<Option<Order>> = vec![None; ops.len()];
        for (index, op) in ops.iter().enumerate().filter(|(index, _)| reached(*index)) {
            let order = before[index].unwrap_or_default();
            let after = match op.writes() {
                Some(Register::A) => orders.loaded(index, *op, ops),
                _ => order,
            };
            for next in op.successors(index) {
                let is_live = demands.get(next).is_some_and(|demand| demand.live.has(Register::A));
                match before.get_mut(next) {
                    Some(Some(there)) if *there != after && is_live => return Self::machine(ops.len()),
                    Some(there) => *there = Some(after),
                    None => {}
                }
            }
        }
        Self { before: before.into_iter().map(Option::unwrap_or_default).collect(), ..orders }
    }

    /// Byte order of the accumulator before an instruction.
    pub(super) fn before(&self, index: usize) -> Order {
        self.before.get(index).copied().unwrap_or_default()
    }

    /// Byte order in which a load leaves a packet value in the accumulator.
    pub(super) fn loaded(&self, index: usize, op: Op, ops: &[Op]) -> Order {
        let Op::Load(Register::A, Value::Packet { size, .. } | Value::Indirect { size, .. }) = op else {
            return Order::Machine;
        };
        let order = Order::of(size);
        let is_free = op.successors(index).all(|next| {
            ops.get(next).is_none() || self.free.get(next).is_some_and(|free| free.allows(order))
        });
        if is_free { order } else { Order::Machine }
    }
}
