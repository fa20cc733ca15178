//! The plain interpreter: one `match`, every access checked against the memory the program may touch, and a budget.
//!
//! It is the oracle of the other engines and the safe engine for programs that no verifier has seen, so it is
//! written to be read. Results that the kernel leaves to chance are defined: a stack frame is zero when its function
//! is entered.

mod call;
mod context;

use std::sync::atomic::{AtomicU64, Ordering, fence};

use paceline_isa::{AtomicOp, Callee, Imm64, Insn, Operand, Reg, Size, Width, eval};

use crate::fault::{Fault, FaultKind};
use crate::helpers::Env;
use crate::memory;
use crate::observe::Observed;
use crate::program::{Exit, Program};
use crate::region::Access;

/// Bytes of stack of each function (`MAX_BPF_STACK`).
pub(crate) const STACK_FRAME: usize = 512;
/// Most functions active at once (`MAX_CALL_FRAMES`).
pub(crate) const MAX_FRAMES: usize = 8;

/// The stack of all functions, reused from run to run. Programs reach it by address, hence the atomics.
pub(crate) type Stack = [AtomicU64; MAX_FRAMES * STACK_FRAME / 8];

/// Where a called function goes back to, and the registers it keeps for its caller.
pub(crate) struct Caller {
    pub(crate) slot: usize,
    callee_saved: [u64; 4],
}

struct Machine<'p, 'e> {
    program: &'p Program,
    registers: [u64; 11],
    slot: usize,
    callers: Vec<Caller>,
    stack_top: u64,
    env: Env<'e>,
}

/// What comes after an instruction.
enum Next {
    /// The instruction that follows.
    Follow,
    /// The one at a slot.
    Jump(usize),
    /// The program's end.
    Exit(u64),
}

/// Runs a program with its first two arguments; `observe` looks at the machine before each instruction.
pub(crate) fn run(
    program: &Program,
    arguments: [u64; 2],
    budget: u64,
    mut env: Env<'_>,
    mut observe: impl FnMut(&Observed<'_>),
) -> Result<Exit, Fault> {
    let mut registers = [0; 11];
    registers[1..3].copy_from_slice(&arguments);
    let stack_top = env.host.stack_top();
    env.regions.stack = stack_top..stack_top;
    let mut machine = Machine { program, registers, slot: 0, callers: Vec::new(), stack_top, env };
    machine.enter_frame();
    let mut instructions = 0;
    loop {
        let slot = machine.slot;
        let fault = |kind| Fault { slot, kind };
        if instructions == budget {
            return Err(fault(FaultKind::Budget(budget)));
        }
        instructions += 1;
        observe(&Observed {
            slot,
            registers: &machine.registers,
            callers: &machine.callers,
            regions: &machine.env.regions,
            host: &*machine.env.host,
        });
        let insn = *program.code.get(slot).ok_or(fault(FaultKind::LeftProgram))?;
        match machine.execute(insn).map_err(fault)? {
            Next::Follow => machine.slot = slot + insn.slots(),
            Next::Jump(target) => machine.slot = target,
            Next::Exit(r0) => return Ok(Exit { r0, instructions }),
        }
    }
}

impl Machine<'_, '_> {
    fn get(&self, reg: Reg) -> u64 {
        self.registers[usize::from(reg.number())]
    }

    fn set(&mut self, reg: Reg, value: u64) {
        self.registers[usize::from(reg.number())] = value;
    }

    fn operand(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Reg(reg) => self.get(reg),
            Operand::Imm(imm) => imm as u64,
        }
    }

    fn execute(&mut self, insn: Insn) -> Result<Next, FaultKind> {
        match insn {
            Insn::Alu { width, op, dst, src } => {
                self.set(dst, eval::alu(width, op, self.get(dst), self.operand(src)));
            }
            Insn::Neg { width, dst } => self.set(dst, eval::neg(width, self.get(dst))),
            Insn::MovSx { width, from, dst, src } => {
                self.set(dst, eval::truncate(width, eval::sign_extend(from, self.get(src))));
            }
            Insn::Swap { order, size, dst } => self.set(dst, eval::swap(order, size, self.get(dst))),
            Insn::Load { size, signed, dst, base, offset } => {
                let value = self.load(base, offset, size)?;
                self.set(dst, if signed { eval::sign_extend(size, value) } else { value });
            }
            Insn::LoadAcquire { size, dst, base, offset } => {
                self.align(base, offset, size)?;
                let value = self.load(base, offset, size)?;
                fence(Ordering::Acquire);
                self.set(dst, value);
            }
            Insn::Store { size, base, offset, src } => self.store(base, offset, size, self.operand(src))?,
            Insn::StoreRelease { size, base, offset, src } => {
                self.align(base, offset, size)?;
                fence(Ordering::Release);
                self.store(base, offset, size, self.get(src))?;
            }
            Insn::Atomic { width, op, base, offset, src } => {
                let old = self.atomic(width, op, base, offset, src)?;
                if let Some(receiver) = insn.writes().iter().next() {
                    self.set(receiver, old);
                }
            }
            Insn::LoadImm64 { dst, value } => self.set(dst, self.imm64(value)?),
            Insn::LoadPacket { size, index, offset } => {
                let index = index.map_or(0, |reg| self.get(reg) as u32);
                match self.load_packet(i64::from(index as i32) + i64::from(offset), size) {
                    Some(value) => self.set(Reg::R0, value),
                    // It returns from the function, as the kernel's code for it does.
                    None => {
                        self.set(Reg::R0, 0);
                        return Ok(self.exit());
                    }
                }
            }
            Insn::Jump { .. } | Insn::JumpLong { .. } => return self.jump(insn.jump_target(self.slot)),
            Insn::JumpIf { width, condition, dst, src, .. } => {
                if eval::compare(width, condition, self.get(dst), self.operand(src)) {
                    return self.jump(insn.jump_target(self.slot));
                }
            }
            Insn::Call(Callee::Subprogram(_)) => return self.call_subprogram(insn),
            Insn::Call(Callee::Helper(id)) => {
                let r0 = self.call_helper(id)?;
                self.set(Reg::R0, r0);
            }
            Insn::Exit => return Ok(self.exit()),
            Insn::Call(Callee::Kfunc { btf_id, .. }) => return Err(FaultKind::NoSuchKfunc(btf_id)),
            Insn::AddrSpaceCast { .. } | Insn::MayGoto { .. } | Insn::CallReg(_) => {
                return Err(FaultKind::LeftProgram);
            }
        }
        Ok(Next::Follow)
    }

    fn jump(&self, target: Option<i64>) -> Result<Next, FaultKind> {
        target.and_then(|t| usize::try_from(t).ok()).map(Next::Jump).ok_or(FaultKind::LeftProgram)
    }

    fn address(&self, base: Reg, offset: i16) -> u64 {
        self.get(base).wrapping_add(offset as u64)
    }

    /// Lets an access pass that the program may do through a pointer.
    fn allow(&self, pointer: u64, offset: i16, len: u64, access: Access) -> Result<(), FaultKind> {
        let address = pointer.wrapping_add(offset as u64);
        if self.env.regions.allows(address, len, access) {
            return Ok(());
        }
        let near = self.env.regions.near(address, pointer);
        Err(FaultKind::OutOfBounds { access, address, len, near })
    }

    fn load(&self, base: Reg, offset: i16, size: Size) -> Result<u64, FaultKind> {
        let (address, len) = (self.address(base, offset), size.bytes() as u64);
        if let Some(offset) = self.env.regions.context_offset(address) {
            return self.load_context(offset, size);
        }
        self.allow(self.get(base), offset, len, Access::Read)?;
        // SAFETY: just allowed.
        Ok(unsafe { memory::load(address, size) })
    }

    fn store(&self, base: Reg, offset: i16, size: Size, value: u64) -> Result<(), FaultKind> {
        let (address, len) = (self.address(base, offset), size.bytes() as u64);
        if let Some(offset) = self.env.regions.context_offset(address) {
            self.context_field(offset, len, Access::Write)?;
            // SAFETY: fields that may be written are memory of the host's, which outlives the run.
            unsafe { memory::store(address, size, value) };
            return Ok(());
        }
        self.allow(self.get(base), offset, len, Access::Write)?;
        // SAFETY: just allowed.
        unsafe { memory::store(address, size, value) };
        Ok(())
    }

    fn align(&self, base: Reg, offset: i16, size: Size) -> Result<(), FaultKind> {
        let len = size.bytes() as u64;
        if self.address(base, offset).is_multiple_of(len) {
            Ok(())
        } else {
            Err(FaultKind::Misaligned { len })
        }
    }

    fn atomic(
        &mut self,
        width: Width,
        op: AtomicOp,
        base: Reg,
        offset: i16,
        src: Reg,
    ) -> Result<u64, FaultKind> {
        let size = if width == Width::W32 { Size::W } else { Size::Dw };
        self.align(base, offset, size)?;
        for access in [Access::Read, Access::Write] {
            self.allow(self.get(base), offset, size.bytes() as u64, access)?;
        }
        let address = self.address(base, offset);
        // SAFETY: just allowed for reading and writing, and aligned.
        Ok(unsafe { memory::atomic(address, width, op, self.get(src), self.get(Reg::R0)) })
    }

    fn imm64(&self, value: Imm64) -> Result<u64, FaultKind> {
        let maps = &self.program.maps;
        let map = |index: i32| usize::try_from(index).ok().and_then(|i| maps.get(i));
        match value {
            Imm64::Value(value) => Some(value),
            Imm64::MapIndex(index) => map(index).map(|map| std::sync::Arc::as_ptr(map) as u64),
            Imm64::MapValueIndex { index, offset } => {
                map(index).and_then(|map| map.direct_value(offset).ok()).map(|value| value.as_ptr() as u64)
            }
            // Functions are known by their slot; only calls that take a callback can use it.
            Imm64::Code { .. } => Insn::LoadImm64 { dst: Reg::R0, value }
                .subprogram_target(self.slot)
                .map(|target| target as u64),
            Imm64::MapFd(_) | Imm64::MapValueFd { .. } | Imm64::Variable { .. } => None,
        }
        .ok_or(FaultKind::LeftProgram)
    }
}
