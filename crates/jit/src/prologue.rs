//! Prologues and epilogues: only what a function needs.

use paceline_spec::MAX_LOOPS;
use paceline_spec::context::Layout;

use crate::emitter::Emitter;
use crate::plan::{HOST_ARGUMENT, HOST_KEPT, SCRATCH};
use crate::x64::{Alu, Cond, Gpr, Label, Mem, OpSize, Width};

/// Whether members of the packet's own area have nonzero initial values.
fn has_entries(layout: &Layout) -> bool {
    layout.entries().next().is_some()
}

impl Emitter<'_> {
    /// At the entry for packets: initializes the state of a run, as far as the run can observe it.
    pub(crate) fn enter_run(&mut self, calls: bool, tail_calls: bool, area: Option<&'static Layout>) {
        if calls || tail_calls {
            self.asm.store(OpSize::Q64, Mem::at(HOST_ARGUMENT, self.links.host.frame), Gpr::Rdi);
        }
        let calls = area.is_some_and(has_entries);
        if calls {
            // Three pushes align the stack to 16 bytes for the call.
            [HOST_ARGUMENT, Gpr::Rdi, Gpr::Rdi].into_iter().for_each(|gpr| self.asm.push(gpr));
        }
        self.set_up_run(HOST_ARGUMENT, Gpr::Rdi, tail_calls, area);
        if calls {
            [Gpr::Rdi, Gpr::Rdi, HOST_ARGUMENT].into_iter().for_each(|gpr| self.asm.pop(gpr));
        }
    }

    /// Initializes the state of a run. A nonzero area is initialized by a call, which clobbers the caller-saved registers.
    pub(crate) fn set_up_run(
        &mut self,
        host: Gpr,
        frame: Gpr,
        tail_calls: bool,
        area: Option<&'static Layout>,
    ) {
        let offsets = self.links.host;
        if tail_calls {
            self.asm.store_imm(OpSize::D32, Mem::at(host, offsets.tail_calls), 0);
        }
        let Some(layout) = area else { return };
        if has_entries(layout) {
            self.asm.mov_rr(Width::Q64, Gpr::Rsi, frame);
            self.asm.mov_rr(Width::Q64, Gpr::Rdi, host);
            self.asm.mov_ri(Gpr::Rdx, std::ptr::from_ref(layout).expose_provenance() as u64);
            self.call_runtime(self.links.enter);
            return;
        }
        for word in layout.area.clone() {
            self.asm.store_imm(OpSize::Q64, Mem::at(host, offsets.area + 8 * i32::from(word)), 0);
        }
    }

    /// A program with per-CPU arrays must not run on a CPU for which they have no values: its code assumes that they exist. Returns
    /// the label of the failure path.
    pub(crate) fn check_cpu(&mut self) -> Option<Label> {
        let cpus = self.parts.get(self.node.index()).and_then(|part| part.cpus())?;
        let lacks_cpu = self.asm.new_label();
        let cpu = Mem::at(HOST_ARGUMENT, self.links.host.cpu);
        self.asm.alu_mi(Alu::Cmp, OpSize::Q64, cpu, i32::try_from(cpus).unwrap_or(i32::MAX));
        self.asm.jcc(Cond::Ae, lacks_cpu);
        Some(lacks_cpu)
    }

    /// Ends the run of a program whose arrays have no values for the host's CPU.
    pub(crate) fn end_without_cpu(&mut self, lacks_cpu: Label) {
        self.asm.bind(lacks_cpu);
        self.asm.mov_rr(Width::Q64, Gpr::Rdi, HOST_ARGUMENT);
        if self.links.near {
            self.asm.jmp_extern(self.links.no_cpu);
        } else {
            self.asm.mov_ri(SCRATCH, self.links.no_cpu);
            self.asm.jmp_r(SCRATCH);
        }
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
