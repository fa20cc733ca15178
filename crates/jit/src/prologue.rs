//! Prologues and epilogues: only what a function needs.

use paceline_spec::MAX_LOOPS;

use crate::emitter::Emitter;
use crate::entry;
use crate::plan::{HOST_ARGUMENT, HOST_KEPT, SCRATCH};
use crate::x64::{Alu, Gpr, Label, OpSize, Width};

impl Emitter<'_> {
    /// A program with per-CPU arrays must not run on a CPU for which they have no values: its code assumes that they exist. Returns
    /// the label of the failure path.
    pub(crate) fn check_cpu(&mut self) -> Option<Label> {
        let cpus = self.parts.get(self.node.index()).and_then(|part| part.cpus())?;
        let lacks_cpu = self.asm.new_label();
        entry::check_cpu(&mut self.asm, self.links, cpus, lacks_cpu);
        Some(lacks_cpu)
    }

    pub(crate) fn prologue(&mut self) {
        for &gpr in &self.plan.saved {
            self.asm.push(gpr);
        }
        if self.plan.room != 0 {
            self.asm.alu_ri(Alu::Sub, Width::Q64, Gpr::Rsp, self.plan.room);
        }
        if self.plan.keeps_host {
            self.asm.mov_rr(Width::Q64, HOST_KEPT, HOST_ARGUMENT);
        }
        self.prepare_stack();
    }

    /// Initializes the function's stack.
    pub(crate) fn prepare_stack(&mut self) {
        self.zero_stack();
        if let Some(rounds_left) = self.plan.rounds_left() {
            self.asm.store_imm(OpSize::Q64, rounds_left, MAX_LOOPS as i32);
        }
    }

    fn zero_stack(&mut self) {
        let zeroed = self.plan.zeroed;
        let words = (0..64).filter(|word| zeroed & 1 << word != 0);
        // Clearing a register takes 2 bytes, and saves 4 bytes in each store.
        let by_register = zeroed.count_ones() > 1;
        if by_register {
            self.set(SCRATCH, 0);
        }
        for word in words {
            let mem = self.plan.stack(-8 * (word + 1));
            if by_register {
                self.asm.store(OpSize::Q64, mem, SCRATCH);
            } else {
                self.asm.store_imm(OpSize::Q64, mem, 0);
            }
        }
    }

    /// Undoes the prologue. Clobbers the flags; preserves `rax` and the argument registers.
    pub(crate) fn epilogue(&mut self) {
        if self.plan.room != 0 {
            self.asm.alu_ri(Alu::Add, Width::Q64, Gpr::Rsp, self.plan.room);
        }
        for &gpr in self.plan.saved.iter().rev() {
            self.asm.pop(gpr);
        }
    }
}
