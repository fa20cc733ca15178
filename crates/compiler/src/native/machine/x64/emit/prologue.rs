//! Prologues and epilogues: only what a function needs.

use crate::codegen::machine::Frame;
use paceline_spec::MAX_LOOPS;

use super::X64;
use crate::internal::Internal;
use crate::native::machine::generator::Layout;
use crate::native::machine::operand::Width;
use crate::native::machine::target::Target;
use crate::native::machine::x64::asm::{Alu, Assembler, Gpr, Mem, OpSize};
use crate::native::machine::x64::regs::SCRATCH;

/// Size in bytes of the red zone below `rsp`, which functions without calls may use without adjusting `rsp` (System V ABI, section
/// 3.2.2).
const RED_ZONE: u32 = 128;

impl X64<'_> {
    /// Lays out the frame, from below: slots of the allocator, the counter of rounds, the function's stack, saved registers.
    pub(crate) fn prologue(&mut self, frame: &Frame) -> Result<(), Internal> {
        let needs = self.current.needs;
        let saved = Assembler::callee_saved(frame.written);
        let rounds = 8 * frame.slots;
        let below = rounds + 8 * u32::from(needs.rounds);
        let size = below + self.current.stack.next_multiple_of(8);
        // Below the return address and the saved registers.
        let above = 8 + 8 * saved.len() as u32;
        let total = if needs.calls { (above + size).next_multiple_of(16) } else { above + size };
        let probes = self.probes(total)?;
        let size = (total - above) as i32;
        let in_red_zone = !needs.calls && size.unsigned_abs() <= RED_ZONE;
        let (room, end) = if in_red_zone { (0, 0) } else { (size, size) };
        let slots = end - size;
        self.current.layout = Layout { saved, room, end, slots, rounds: slots + rounds.cast_signed() };
        for at in 0..self.current.layout.saved.len() {
            let gpr = Assembler::gpr(self.current.layout.saved[at])?;
            self.asm.push(gpr);
        }
        for distance in probes {
            self.asm.load(OpSize::D32, SCRATCH, Mem::at(Gpr::Rsp, -distance));
        }
        if room != 0 {
            self.asm.alu_ri(Alu::Sub, Width::Q64, Gpr::Rsp, room);
        }
        if self.current.burst.is_none() {
            self.prepare_stack();
        }
        Ok(())
    }

    /// Initializes what is in the frame at the start of a run.
    pub(crate) fn prepare_stack(&mut self) {
        self.zero_stack();
        if self.current.needs.rounds {
            let counter = Mem::at(Gpr::Rsp, self.current.layout.rounds);
            self.asm.store_imm(OpSize::Q64, counter, MAX_LOOPS as i32);
        }
    }

    fn zero_stack(&mut self) {
        let zeroed = self.zeroed();
        // Clearing a register takes 2 bytes, and saves 4 bytes in each store.
        let by_register = zeroed.len() > 1;
        if by_register {
            self.asm.alu_rr(Alu::Xor, Width::D32, SCRATCH, SCRATCH);
        }
        for offset in zeroed {
            let mem = self.stack(offset);
            if by_register {
                self.asm.store(OpSize::Q64, mem, SCRATCH);
            } else {
                self.asm.store_imm(OpSize::Q64, mem, 0);
            }
        }
    }

    /// Undoes the prologue. Clobbers the flags and preserves all registers but those that are restored.
    pub(crate) fn epilogue(&mut self) -> Result<(), Internal> {
        if self.current.layout.room != 0 {
            self.asm.alu_ri(Alu::Add, Width::Q64, Gpr::Rsp, self.current.layout.room);
        }
        for at in (0..self.current.layout.saved.len()).rev() {
            let gpr = Assembler::gpr(self.current.layout.saved[at])?;
            self.asm.pop(gpr);
        }
        Ok(())
    }
}
