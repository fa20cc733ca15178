//! Transfer functions and rules of the instructions.

mod alu;
mod branch;
mod call;
mod callback;
mod dynptr;
mod global;
mod helper;
mod kfunc;
mod leak;
mod lock;
mod memory;
mod object;
mod pointer;
mod stack;
mod text;

use std::collections::HashSet;

use paceline_isa::{Imm64, Insn, Operand, Reg, Size};
use paceline_spec::{MapSpec, Poison};

use crate::domain::number::Number;
use crate::domain::state::{MapRef, Pointer, Target, Value};
use crate::error::{Cause, Check, Hint, Refusal, reject, reject_with};
use crate::limits::MAX_USED_MAPS;
use crate::walk::{Next, Walk};

pub(crate) use global::{Global, check_loans, entry_state};
pub(crate) use kfunc::check_license;

impl Walk<'_> {
    /// Runs one instruction on the state.
    pub(crate) fn run(&mut self, insn: &Insn) -> Check<Next> {
        let next = Next::Go(self.slot + insn.slots());
        match *insn {
            Insn::Alu { width, op, dst, src } => self.alu(width, op, dst, src)?,
            Insn::Neg { width, dst } => self.negate(width, dst)?,
            Insn::MovSx { width, from, dst, src } => self.move_extended(width, from, dst, src)?,
            Insn::Swap { order, size, dst } => self.swap(order, size, dst)?,
            Insn::LoadImm64 { dst, value } => {
                let value = self.immediate(value)?;
                self.check_function_address(&value)?;
                self.write(dst, value)?;
            }
            Insn::Load { size, signed, dst, base, offset } => {
                let value = self.load(base, offset, size, signed)?;
                self.write(dst, value)?;
            }
            Insn::Store { size, base, offset, src } => self.store(base, offset, size, src)?,
            Insn::Atomic { width, op, base, offset, src } => self.atomic(width, op, base, offset, src)?,
            Insn::LoadAcquire { size, dst, base, offset } => {
                self.check_atomic_target(base, offset, size)?;
                let value = self.load(base, offset, size, false)?;
                self.write(dst, value)?;
            }
            Insn::StoreRelease { size, base, offset, src } => {
                self.check_atomic_target(base, offset, size)?;
                self.store(base, offset, size, Operand::Reg(src))?;
            }
            Insn::Jump { .. } | Insn::JumpLong { .. } => {
                self.facts.branch(self.slot, true);
                return Ok(Next::Go(self.jump_target(insn)));
            }
            Insn::JumpIf { width, condition, dst, src, .. } => {
                let target = self.jump_target(insn);
                return self.branch(width, condition, dst, src, target);
            }
            Insn::Call(callee) => return self.call(insn, callee),
            Insn::Exit => return self.exit(),
            Insn::LoadPacket { size, index, .. } => return self.load_packet(size, index),
            Insn::AddrSpaceCast { .. } => return reject(Cause::NotAllowed("a cast between address spaces")),
            Insn::MayGoto { .. } => return Ok(self.may_goto(self.jump_target(insn))),
            Insn::CallReg(_) => {
                return reject_with(Cause::NotAllowed("a call through a register"), Hint::Optimize);
            }
        }
        Ok(next)
    }

    fn jump_target(&self, insn: &Insn) -> usize {
        // In range: the control flow check covers jump targets.
        insn.jump_target(self.slot).and_then(|target| usize::try_from(target).ok()).unwrap_or(usize::MAX)
    }

    /// The value of an operand; immediates are sign-extended.
    fn operand(&self, operand: Operand) -> Check<Value> {
        match operand {
            Operand::Reg(reg) => self.read(reg),
            Operand::Imm(imm) => Ok(Value::number(Number::constant(i64::from(imm) as u64))),
        }
    }

    /// Checks every 64-bit load, also unreachable ones, as the kernel does before the walk.
    pub(crate) fn check_immediates(&mut self) -> Result<(), Box<Refusal>> {
        let mut maps = HashSet::new();
        for (slot, insn) in self.code.iter() {
            let Insn::LoadImm64 { value, .. } = *insn else { continue };
            self.slot = slot;
            self.immediate(value).map_err(|problem| Refusal::at(slot, problem.cause))?;
            if let Imm64::MapIndex(index) | Imm64::MapValueIndex { index, .. } = value {
                maps.insert(index);
            }
            if maps.len() > MAX_USED_MAPS {
                return Err(Refusal::at(slot, Cause::TooManyMaps));
            }
        }
        Ok(())
    }

    fn immediate(&self, value: Imm64) -> Check<Value> {
        match value {
            Imm64::Value(value) => Ok(Value::number(Number::constant(value))),
            Imm64::MapIndex(index) => {
                let map = self.map_index(index)?;
                self.check_map_with_lock(map)?;
                Ok(Value::Pointer(Pointer::to(Target::Map(map))))
            }
            Imm64::MapValueIndex { index, offset } => {
                let map = self.map_index(index)?;
                self.check_map_with_lock(map)?;
                self.map_address(map, offset)
            }
            Imm64::Code { .. } => {
                let slot = self.code.get(self.slot).and_then(|insn| insn.subprogram_target(self.slot));
                let slot = slot.and_then(|slot| u32::try_from(slot).ok()).unwrap_or(u32::MAX);
                Ok(Value::Pointer(Pointer::to(Target::Code { slot })))
            }
            Imm64::MapFd(_) | Imm64::MapValueFd { .. } => {
                reject(Cause::NotAllowed("a map by file descriptor"))
            }
            Imm64::Variable { .. } => reject(Cause::NotAllowed("the address of a kernel variable")),
        }
    }

    fn map_index(&self, index: i32) -> Check<MapRef> {
        match u32::try_from(index) {
            Ok(i) if (i as usize) < self.maps.len() => Ok(MapRef { index: i, inner: false }),
            _ => reject(Cause::NoMap(index)),
        }
    }

    /// A direct value address: only arrays with one element have them.
    fn map_address(&self, map: MapRef, offset: u32) -> Check<Value> {
        match self.map(map) {
            Some(spec)
                if spec.kind.rules().is_addressable && spec.max_entries == 1 && offset < spec.value_size =>
            {
                let fixed = i32::try_from(offset).unwrap_or(i32::MAX);
                Ok(Value::Pointer(Pointer { fixed, ..Pointer::to(Target::MapValue(map)) }))
            }
            Some(spec) => reject(Cause::MapAddress(spec.name.clone(), offset)),
            None => reject(Cause::NoMap(map.index as i32)),
        }
    }

    /// The specification of a map.
    pub(crate) fn map(&self, map: MapRef) -> Option<&MapSpec> {
        let spec = self.maps.get(map.index as usize)?;
        if map.inner { spec.inner.as_deref() } else { Some(spec) }
    }

    /// Marks a number as precise, so that states that differ in it are not merged.
    fn mark_precise(&mut self, value: &Value) {
        if let Value::Scalar(scalar) = value {
            self.precision.mark_precise(scalar.mark);
        }
    }

    /// The refusal of a call that replaces an unrelocated instruction.
    fn check_poison(&self, helper: i32) -> Check {
        if helper == Poison::HELPER
            && let Some(poison) = self.program.poison_at(self.slot)
        {
            return reject(Cause::Poisoned(poison.reason.to_string()));
        }
        Ok(())
    }
}

/// Bits that an access of a size moves.
const fn bits(size: Size) -> u32 {
    size.bytes() as u32 * 8
}

/// The arguments of a call.
const ARGUMENTS: [Reg; 5] = [Reg::R1, Reg::R2, Reg::R3, Reg::R4, Reg::R5];
