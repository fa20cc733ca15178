//! Values that are computed when they are needed, and not at all if nobody does: the way from BPF's small steps to the
//! operands and addresses that the processor has.
//!
//! Along a stretch of code without a jump into it, what each BPF register's value is made from is remembered: a number, an
//! address with a displacement, bytes in memory. Additions then become displacements, loads become memory operands,
//! loads of single bytes become one load, and a byte order is turned where a constant can be turned instead. Where paths
//! meet, registers hold their values.

mod alu;
mod branch;
mod flush;
mod memory;
mod rotate;
mod stack_stores;
mod store;
mod value;

use paceline_isa::{Callee, Insn, Reg, RegSet};

use crate::bounds_elim::may_move_packet;
use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::inline::Inline;
use crate::liveness::reads;
use crate::look_up::look_up_link;
use crate::source::{is_tail_call, known_map};

use crate::stack::Cells;
use crate::x64::Held;

pub(crate) use stack_stores::{StackStore, StackStores};
pub(crate) use store::{Kept, Stored};
pub(crate) use value::{Base, Bytes, Shifted, Value, Way};

/// The registers along the way.
#[derive(Clone, Debug)]
pub(crate) struct Deferred {
    values: [Value; 10],
    /// Registers whose value is made from what is in a register.
    made: RegSet,
    /// For values that are held, how many low bits may be other than zero.
    bits: [u8; 10],
    /// Registers that are read by the instruction or after it.
    live: RegSet,
    /// The last store to the stack, of 32 bits of something that has not changed since.
    pub(crate) stored: Option<Stored>,
    /// The stores to the stack before it.
    pub(crate) stores: StackStores,
    /// What the instruction or those after it read of the stack; `None` if that may be all.
    stack: Option<Cells>,
}

impl Default for Deferred {
    fn default() -> Self {
        Self {
            values: [Value::Dead; 10],
            made: RegSet::EMPTY,
            bits: [64; 10],
            live: RegSet::EMPTY,
            stored: None,
            stores: StackStores::default(),
            stack: None,
        }
    }
}

impl Deferred {
    #[inline]
    pub(crate) fn get(&self, reg: Reg) -> Value {
        match self.values.get(usize::from(reg.number())) {
            Some(value) => *value,
            None => Value::Sum(Base::Frame, 0),
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, reg: Reg, value: Value) {
        if let Some(place) = self.values.get_mut(usize::from(reg.number())) {
            *place = value;
            let others = self.made.minus(RegSet::of(reg));
            self.made = if value.is_made() { others.with(reg) } else { others };
        }
    }

    /// The contents of a register's native register, if they are its value.
    #[inline]
    fn held(&self, reg: Reg) -> Option<Held> {
        match self.values.get(usize::from(reg.number())) {
            Some(Value::Held(held)) => Some(*held),
            _ => None,
        }
    }

    /// Other registers whose values are made from what is in a register.
    #[inline]
    fn dependents(&self, on: Reg) -> RegSet {
        let uses = |reg: &Reg| self.values.get(usize::from(reg.number())).is_some_and(|v| v.uses(on));
        self.made.minus(RegSet::of(on)).iter().filter(uses).collect()
    }

    /// How many low bits of a value may be other than zero.
    fn bits(&self, reg: Reg) -> u8 {
        match self.get(reg) {
            Value::Held(_) => self.bits.get(usize::from(reg.number())).copied().unwrap_or(64),
            Value::Const(value) => 64 - value.leading_zeros() as u8,
            Value::Dead | Value::Sum(..) | Value::Function(_) => 64,
            Value::Bytes(bytes) => bytes.bits(),
            Value::Reversed(size, _) => 8 * size.bytes() as u8,
            Value::Shifted(shifted) => shifted.bits,
        }
    }

    /// A register's value is not read again.
    pub(crate) fn kill(&mut self, reg: Reg) {
        self.set(reg, Value::Dead);
    }

    /// A register holds its value, of so many bits.
    fn hold(&mut self, reg: Reg, held: Held, bits: u8) {
        let index = usize::from(reg.number());
        if let (Some(value), Some(place)) = (self.values.get_mut(index), self.bits.get_mut(index)) {
            (*value, *place) = (Value::Held(held), bits);
            self.made = self.made.minus(RegSet::of(reg));
        }
    }

    /// Registers that are read by the instruction or after it.
    pub(crate) fn live(&self) -> RegSet {
        self.live
    }

    /// Whether a value may be made from what is in a register: there is no way back from there then.
    fn is_root(&self, reg: Reg) -> bool {
        match self.get(reg) {
            Value::Held(_) => true,
            Value::Sum(base, _) => base.is(reg),
            Value::Dead
            | Value::Const(_)
            | Value::Bytes(_)
            | Value::Reversed(..)
            | Value::Shifted(_)
            | Value::Function(_) => false,
        }
    }
}

impl Emitter<'_> {
    /// Emits an instruction, or remembers what it computes.
    pub(crate) fn deferred(&mut self, slot: usize, insn: &Insn) -> Result<(), CompileError> {
        let after = self.liveness.after(self.source, slot, insn);
        self.deferred.live = after.union(reads(insn));
        self.deferred.stack = self.liveness.stack_before(slot);
        self.after = after;
        match *insn {
            Insn::Alu { width, op, dst, src } => {
                if after.contains(dst) {
                    self.defer_alu(width, op, dst, src);
                } else {
                    self.deferred.kill(dst);
                }
            }
            Insn::Swap { dst, .. } if !after.contains(dst) => self.deferred.kill(dst),
            Insn::Swap { order, size, dst } => self.defer_swap(order, size, dst),
            Insn::LoadImm64 { dst, value } => {
                let value = match self.constant(slot, value)? {
                    Some(value) => Value::Const(value),
                    None => Value::Function(self.function_at(slot, insn)?),
                };
                self.deferred.set(dst, value);
            }
            Insn::Load { .. } => self.defer_load(slot, insn, after)?,
            Insn::Store { .. } | Insn::StoreRelease { .. } => self.deferred_store(slot, insn, after)?,
            Insn::JumpIf { .. } => self.deferred_jump_if(slot, insn)?,
            Insn::Exit if let Some(result) = self.known_result(slot) => self.leave_with(self.code(result)),
            Insn::Jump { .. } | Insn::JumpLong { .. } if let Some(code) = self.exits_with(slot, insn) => {
                self.leave_with(code);
            }
            Insn::Jump { .. } | Insn::JumpLong { .. } | Insn::MayGoto { .. } => {
                self.flush_before_jump(slot, insn, after);
                self.make_store();
                self.insn(slot, insn)?;
            }
            Insn::Call(callee) => {
                let moves = self.packet_start().is_some() && may_move_packet(self.source, &callee);
                if moves {
                    self.flush_start();
                }
                self.deferred_call(slot, insn, after)?;
                if moves {
                    self.load_start();
                    self.reserve();
                }
            }
            _ => self.emit_materialized(slot, insn)?,
        }
        Ok(())
    }

    /// Emits an instruction with its operands in registers.
    pub(crate) fn emit_materialized(&mut self, slot: usize, insn: &Insn) -> Result<(), CompileError> {
        let touches_memory = matches!(insn, Insn::Atomic { .. } | Insn::LoadAcquire { .. } | Insn::Call(_));
        if touches_memory {
            self.flush_memory();
            self.end_store();
            self.deferred.stores = StackStores::default();
        }
        for reg in reads(insn).iter() {
            self.materialize(reg);
        }
        for reg in insn.writes().iter() {
            self.before_write(reg);
        }
        for reg in reads(insn).iter() {
            self.expect_held(reg);
        }
        self.insn(slot, insn)?;
        for reg in insn.writes().iter() {
            self.hold(reg, 64);
        }
        Ok(())
    }

    fn deferred_call(&mut self, slot: usize, insn: &Insn, after: RegSet) -> Result<(), CompileError> {
        if let Insn::Call(Callee::Helper(id)) = *insn
            && let Some(inline) = Inline::of(self.source, self.links, slot, id)
        {
            // A call of a function takes all arguments, perhaps some that this call leaves undefined: whatever they hold.
            for reg in insn.writes().minus(reads(insn)).iter() {
                self.hold(reg, 64);
            }
            if after.contains(Reg::R0) {
                return self.inline(slot, insn, inline);
            }
            self.deferred.kill(Reg::R0);
            return Ok(());
        }
        if let Some(entry) = self.loop_callback(slot, insn) {
            return self.count_rounds(insn, entry);
        }
        if let Insn::Call(Callee::Helper(id)) = *insn
            && let Some(link) = look_up_link(self.source, self.links, slot, id)
        {
            self.call_look_up(slot, insn, link);
            return Ok(());
        }
        match self.deferred.get(Reg::R3) {
            Value::Const(index) if is_tail_call(insn) && known_map(self.source, slot).is_some() => {
                self.flush_memory();
                self.end_store();
                self.deferred.stores = StackStores::default();
                self.materialize(Reg::R1);
                for reg in RegSet::CALLER_SAVED.iter() {
                    self.before_write(reg);
                }
                self.expect_held(Reg::R1);
                self.tail_call_at(slot, Some(index as u32))?;
                for reg in RegSet::CALLER_SAVED.iter() {
                    self.hold(reg, 64);
                }
                Ok(())
            }
            _ => self.emit_materialized(slot, insn),
        }
    }

    /// Before a place that jumps lead to: registers get their values.
    pub(crate) fn meet(&mut self, slot: usize) {
        let live = self.without_known_result(slot, self.liveness.before(slot));
        self.deferred.live = live;
        self.deferred.stack = self.liveness.stack_before(slot);
        self.flush(live);
        self.make_store();
    }

    /// At a place that jumps lead to, or where a function starts: registers hold the values that are read from here on, and
    /// nothing else is known of them.
    pub(crate) fn start_block(&mut self, slot: usize) {
        self.deferred = Deferred::default();
        self.reserve();
        for reg in self.without_known_result(slot, self.liveness.before(slot)).iter() {
            self.hold(reg, 64);
        }
    }
}
