//! Deferred values, which are computed when they are needed, or never: instruction selection from BPF's simple operations to x86's
//! memory operands and addressing modes.
//!
//! Within a basic block the composition of each BPF register's value is remembered: a constant, an address with a displacement,
//! bytes in memory. Additions become displacements, loads become memory operands, loads of single bytes are merged into one load,
//! and byte swaps move to constants where possible. At joins of control flow all live values are materialized.

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

/// State of the registers in the current block.
#[derive(Clone, Debug)]
pub(crate) struct Deferred {
    values: [Value; 10],
    /// Registers whose value depends on the contents of a native register.
    made: RegSet,
    /// For materialized values, upper bound for the number of significant bits.
    bits: [u8; 10],
    /// Registers that the instruction or later ones read.
    live: RegSet,
    /// The last 32-bit store to the stack, of a value that has not changed since.
    pub(crate) stored: Option<Stored>,
    /// The earlier stores to the stack.
    pub(crate) stores: StackStores,
    /// Stack cells that the instruction or later ones read; `None` for unknown, possibly all.
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

    /// Other registers whose values depend on the contents of a register's native register.
    #[inline]
    fn dependents(&self, on: Reg) -> RegSet {
        let uses = |reg: &Reg| self.values.get(usize::from(reg.number())).is_some_and(|v| v.uses(on));
        self.made.minus(RegSet::of(on)).iter().filter(uses).collect()
    }

    /// Upper bound for the number of significant bits of a value.
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

    /// Marks a register as dead.
    pub(crate) fn kill(&mut self, reg: Reg) {
        self.set(reg, Value::Dead);
    }

    /// Marks a register as materialized, with an upper bound for its significant bits.
    fn hold(&mut self, reg: Reg, held: Held, bits: u8) {
        let index = usize::from(reg.number());
        if let (Some(value), Some(place)) = (self.values.get_mut(index), self.bits.get_mut(index)) {
            (*value, *place) = (Value::Held(held), bits);
            self.made = self.made.minus(RegSet::of(reg));
        }
    }

    /// Registers that the instruction or later ones read.
    pub(crate) fn live(&self) -> RegSet {
        self.live
    }

    /// Whether a value may be based on the contents of a register's native register: dependencies stay acyclic.
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
    /// Emits an instruction, or defers it.
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

    /// Emits an instruction with materialized operands.
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
            // A call of a subprogram passes all argument registers, including those that this call leaves undefined, with any
            // contents.
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

    /// Before a jump target: materializes live registers.
    pub(crate) fn meet(&mut self, slot: usize) {
        let live = self.without_known_result(slot, self.liveness.before(slot));
        self.deferred.live = live;
        self.deferred.stack = self.liveness.stack_before(slot);
        self.flush(live);
        self.make_store();
    }

    /// At a jump target or a function's entry: live registers are materialized, and nothing else is known about them.
    pub(crate) fn start_block(&mut self, slot: usize) {
        self.deferred = Deferred::default();
        self.reserve();
        for reg in self.without_known_result(slot, self.liveness.before(slot)).iter() {
            self.hold(reg, 64);
        }
    }
}
