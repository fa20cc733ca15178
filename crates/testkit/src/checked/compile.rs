//! Programs to checked code.

use std::sync::Arc;

use paceline_isa::{Callee, Code, Imm64, Insn, Operand};
use paceline_maps::Map;
use paceline_spec::ProgramSpec;
use paceline_spec::helper::Helper;

use super::emitter::{Emitter, SCRATCH, gpr};
use super::error::CheckedError;
use super::links::Links;
use paceline_compiler::internal::Internal;
use paceline_compiler::native::machine::x64::Label;
use paceline_compiler::native::machine::x64::Width;
use paceline_compiler::native::machine::x64::{Alu, Fill, Mem};

/// Alignment of functions in bytes.
const ALIGNMENT: u8 = 4;

/// Compiles a program, with its maps, to checked code; its entry is the first byte.
///
/// # Errors
/// [`CheckedError`] for the first instruction that cannot be compiled.
pub(super) fn compile(
    program: &ProgramSpec,
    code: &Code,
    maps: &[Arc<Map>],
    links: Links,
) -> Result<Vec<u8>, CheckedError> {
    let mut emitter = Emitter::new((program, code), maps, links)?;
    emitter.enter();
    for (index, &(first, start)) in emitter.functions.clone().iter().enumerate() {
        let next = emitter.functions.get(index + 1).map_or(code.len(), |next| next.0);
        if index > 0 {
            emitter.asm.align(ALIGNMENT, Fill::Int3);
        }
        emitter.function(first..next, start)?;
    }
    emitter.finish_stubs();
    Ok(emitter.asm.finish()?.bytes)
}

impl Emitter<'_> {
    /// Emits a function with the instructions of these slots.
    fn function(&mut self, slots: std::ops::Range<usize>, start: Label) -> Result<(), CheckedError> {
        self.asm.bind(start);
        self.enter_function();
        let mut last = None;
        for slot in slots.clone() {
            let Some(insn) = self.code.get(slot) else { continue };
            if let Some(label) = self.targets.get(slot).copied().flatten() {
                self.asm.bind(label);
            }
            self.count(slot);
            self.add_to_counter(self.counters.and_then(|counters| counters.start(slot)), slot)?;
            self.insn(slot, insn)?;
            self.add_to_counter(self.counters.and_then(|counters| counters.fall(slot)), slot)?;
            last = Some((slot, insn));
        }
        if let Some((slot, _)) = last.filter(|(_, insn)| insn.falls_through()) {
            let next = self.target(slot, Some(slots.end as i64))?;
            self.asm.jmp(next);
        }
        Ok(())
    }

    /// Adds one to the counter at an offset, if there is one.
    fn add_to_counter(&mut self, counter: Option<u32>, slot: usize) -> Result<(), CheckedError> {
        let Some((offset, counters)) = counter.zip(self.counters) else { return Ok(()) };
        let (index, what) = (counters.map as i32, "counters");
        let value = self.maps.get(counters.map).and_then(value_of);
        let value = value.ok_or(CheckedError::Map { slot, index, what })?;
        self.set(SCRATCH, value.wrapping_add(u64::from(offset)));
        self.asm.lock_alu_mi(Alu::Add, Width::Q64, Mem::at(SCRATCH, 0), 1);
        Ok(())
    }

    fn insn(&mut self, slot: usize, insn: &Insn) -> Result<(), CheckedError> {
        match *insn {
            Insn::Alu { width, op, dst, src } => self.alu(width, op, dst, src),
            Insn::Neg { width, dst } => self.asm.neg(Width::of(width), gpr(dst)),
            Insn::MovSx { width, from, dst, src } => self.move_signed(width, from, dst, src),
            Insn::Swap { order, size, dst } => self.swap(order, size, dst),
            Insn::Load { size, signed, dst, base, .. } => self.load(slot, size, signed, dst, base),
            Insn::LoadAcquire { size, dst, base, .. } => self.load(slot, size, false, dst, base),
            Insn::Store { size, base, src, .. } => self.store(slot, size, base, src),
            Insn::StoreRelease { size, base, src, .. } => self.store(slot, size, base, Operand::Reg(src)),
            Insn::Atomic { width, op, base, src, .. } => {
                self.check_access(slot, base);
                self.atomic(Width::of(width), op, src);
            }
            Insn::LoadImm64 { dst, value } => {
                let value = self.constant(slot, insn, value)?;
                self.set(gpr(dst), value);
            }
            Insn::LoadPacket { index, .. } => {
                // The runtime is given `r0` to `r5` only, so the index is in a scratch register.
                if let Some(index) = index {
                    self.asm.mov_rr(Width::Q64, SCRATCH, gpr(index));
                }
                self.execute(slot);
            }
            Insn::Jump { .. } | Insn::JumpLong { .. } => {
                let target = self.target(slot, insn.jump_target(slot))?;
                self.asm.jmp(target);
            }
            Insn::JumpIf { width, condition, dst, src, .. } => {
                let target = self.target(slot, insn.jump_target(slot))?;
                self.jump_if(Width::of(width), condition, dst, src, target);
            }
            Insn::Call(Callee::Subprogram(_)) => self.call_subprogram(slot, insn)?,
            Insn::Call(Callee::Helper(id)) if calls_back(id) => self.call_back(slot),
            Insn::Call(_) => self.execute(slot),
            Insn::Exit => self.leave(),
            Insn::MayGoto { .. } => {
                let target = self.target(slot, insn.jump_target(slot))?;
                self.may_goto(slot, target);
            }
            Insn::AddrSpaceCast { .. } | Insn::CallReg(_) => {
                return Err(CheckedError::Instruction { slot, insn: *insn });
            }
        }
        Ok(())
    }

    fn call_subprogram(&mut self, slot: usize, insn: &Insn) -> Result<(), CheckedError> {
        let target =
            insn.subprogram_target(slot).ok_or(Internal("a call of no function is one of a function"))?;
        let entry = usize::try_from(target).ok().and_then(|start| self.entry_of(start));
        let entry = entry.ok_or(CheckedError::JumpTarget { slot, target })?;
        self.execute(slot);
        self.asm.call(entry);
        Ok(())
    }

    /// The value of a 64-bit immediate. That of a function is its slot, which the runtime checks when it is called.
    fn constant(&self, slot: usize, insn: &Insn, value: Imm64) -> Result<u64, CheckedError> {
        let map = |index: i32, what| {
            let found = usize::try_from(index).ok().and_then(|at| self.maps.get(at));
            found.ok_or(CheckedError::Map { slot, index, what })
        };
        Ok(match value {
            Imm64::Value(value) => value,
            Imm64::MapIndex(index) => Arc::as_ptr(map(index, "map")?) as u64,
            Imm64::MapValueIndex { index, offset } => {
                let what = "memory";
                let base = value_of(map(index, what)?).ok_or(CheckedError::Map { slot, index, what })?;
                base.wrapping_add(u64::from(offset))
            }
            Imm64::Code { .. } => {
                let target =
                    insn.subprogram_target(slot).ok_or(Internal("the address of code has no target"))?;
                target.cast_unsigned()
            }
            Imm64::MapFd(_) | Imm64::MapValueFd { .. } | Imm64::Variable { .. } => {
                return Err(CheckedError::Instruction { slot, insn: *insn });
            }
        })
    }
}

/// The address of the only value of a map, for global data.
fn value_of(map: &Arc<Map>) -> Option<u64> {
    map.for_programs().direct_value(0).ok().map(|value| value.as_ptr() as u64)
}

/// Whether a helper calls callbacks.
fn calls_back(id: i32) -> bool {
    Helper::from_imm(id).is_some_and(|helper| helper.callback().is_some())
}
