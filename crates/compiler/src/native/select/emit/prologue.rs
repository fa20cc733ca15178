//! Prologues and epilogues: only what a function needs.

use crate::codegen::lir::Reg;
use crate::codegen::machine::Frame;
use paceline_spec::MAX_LOOPS;

use crate::native::select::generator::{Generator, Layout};
use crate::native::select::regs::{self, SCRATCH};
use crate::native::x64::{Alu, Gpr, Mem, OpSize, Width};

/// Size in bytes of the red zone below `rsp`, which functions without calls may use without adjusting `rsp` (System V ABI, section
/// 3.2.2).
const RED_ZONE: u32 = 128;

impl Generator<'_> {
    /// Lays out the frame, from below: slots of the allocator, the counter of rounds, the function's stack, saved registers.
    pub(super) fn prologue(&mut self, frame: &Frame) {
        let needs = self.current.needs;
        let saved: Vec<Reg> = regs::callee_saved(frame.written).collect();
        let rounds = 8 * frame.slots;
        let below = rounds + 8 * u32::from(needs.rounds);
        let size = below + self.current.stack.next_multiple_of(8);
        // Below the return address and the saved registers.
        let above = 8 + 8 * saved.len() as u32;
        let total = if needs.calls { (above + size).next_multiple_of(16) } else { above + size };
        let probes = self.probes(total);
        let size = (total - above) as i32;
        let in_red_zone = !needs.calls && size.unsigned_abs() <= RED_ZONE;
        let (room, end) = if in_red_zone { (0, 0) } else { (size, size) };
        let slots = end - size;
        self.current.layout = Layout { saved, room, end, slots, rounds: slots + rounds.cast_signed() };
        for at in 0..self.current.layout.saved.len() {
            let gpr = regs::gpr(self.current.layout.saved[at]);
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
    }

    /// Initializes what is in the frame at the start of a run.
    pub(super) fn prepare_stack(&mut self) {
        self.zero_stack();
        if self.current.needs.rounds {
            let counter = Mem::at(Gpr::Rsp, self.current.layout.rounds);
            self.asm.store_imm(OpSize::Q64, counter, MAX_LOOPS as i32);
        }
    }

    fn zero_stack(&mut self) {
        let words = self.current.stack.div_ceil(8);
        let zeroed = self.current.zeroed & u64::MAX.checked_shr(64 - words.min(64)).unwrap_or(0);
        // Clearing a register takes 2 bytes, and saves 4 bytes in each store.
        let by_register = zeroed.count_ones() > 1;
        if by_register {
            self.asm.alu_rr(Alu::Xor, Width::D32, SCRATCH, SCRATCH);
        }
        let mut left = zeroed;
        while left != 0 {
            let word = left.trailing_zeros().cast_signed();
            left &= left - 1;
            let mem = self.stack(-8 * (word + 1));
            if by_register {
                self.asm.store(OpSize::Q64, mem, SCRATCH);
            } else {
                self.asm.store_imm(OpSize::Q64, mem, 0);
            }
        }
    }

    /// Undoes the prologue. Clobbers the flags and preserves all registers but those that are restored.
    pub(super) fn epilogue(&mut self) {
        if self.current.layout.room != 0 {
            self.asm.alu_ri(Alu::Add, Width::Q64, Gpr::Rsp, self.current.layout.room);
        }
        for at in (0..self.current.layout.saved.len()).rev() {
            let gpr = regs::gpr(self.current.layout.saved[at]);
            self.asm.pop(gpr);
        }
    }
}
