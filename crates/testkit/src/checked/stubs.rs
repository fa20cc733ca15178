//! The ways between code and runtime.

use paceline_isa::Reg;

use super::emitter::{Emitter, FRAME, REGISTERS, RUN, SCRATCH, SCRATCH_2, Stubs, gpr};
use paceline_compiler::native::machine::x64::Label;
use paceline_compiler::native::machine::x64::Width;
use paceline_compiler::native::machine::x64::{Alu, Cond, Gpr, Mem, OpSize};

/// Callee-saved registers that a run overwrites.
const KEPT: [Gpr; 6] = [Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];

/// Registers that a function saves for its caller: `r10` and `r6` to `r9`.
const SAVED: [Gpr; 5] = [FRAME, Gpr::Rbx, Gpr::R13, Gpr::R14, Gpr::R15];

impl Emitter<'_> {
    /// The runtime's entry: `extern "C" fn(r1, r2, &mut Run) -> r0`. All other registers start as zero.
    pub(super) fn enter(&mut self) {
        let Stubs { links, failed, .. } = self.stubs;
        for gpr in KEPT {
            self.asm.push(gpr);
        }
        // The return address and six registers are 56 bytes: 8 more align the stack to 16 bytes.
        self.asm.alu_ri(Alu::Sub, Width::Q64, Gpr::Rsp, 8);
        self.asm.mov_rr(Width::Q64, RUN, Gpr::Rdx);
        self.asm.store(OpSize::Q64, Mem::at(RUN, links.run.stack_pointer), Gpr::Rsp);
        for reg in Reg::ALL.into_iter().filter(|reg| ![Reg::R1, Reg::R2, Reg::R10].contains(reg)) {
            self.set(gpr(reg), 0);
        }
        let out = self.asm.new_label();
        if let Some(main) = self.entry_of(0) {
            self.asm.call(main);
        }
        self.asm.bind(out);
        self.asm.alu_ri(Alu::Add, Width::Q64, Gpr::Rsp, 8);
        for gpr in KEPT.into_iter().rev() {
            self.asm.pop(gpr);
        }
        self.asm.ret();
        self.asm.bind(failed);
        self.asm.load(OpSize::Q64, Gpr::Rsp, Mem::at(RUN, links.run.stack_pointer));
        self.set(Gpr::Rax, 0);
        self.asm.jmp(out);
    }

    /// The start of a function, whose BPF stack frame the runtime has allocated. All are the same, so that jumps may cross functions.
    pub(super) fn enter_function(&mut self) {
        for gpr in SAVED {
            self.asm.push(gpr);
        }
        self.asm.load(OpSize::Q64, FRAME, Mem::at(RUN, self.stubs.links.run.frame_pointer));
    }

    /// Returns from a function.
    pub(super) fn leave(&mut self) {
        self.asm.jmp(self.stubs.done);
    }

    /// Emits the code that all functions share.
    pub(super) fn finish_stubs(&mut self) {
        let stubs = self.stubs;
        self.asm.bind(stubs.done);
        self.asm.call(stubs.leave);
        self.asm.bind(stubs.left);
        for gpr in SAVED.into_iter().rev() {
            self.asm.pop(gpr);
        }
        self.asm.ret();
        self.stub(stubs.access, stubs.links.access);
        self.stub(stubs.execute, stubs.links.execute);
        self.stub(stubs.leave, stubs.links.leave);
        self.stub(stubs.exhausted, stubs.links.exhausted);
    }

    /// Calls the runtime with the slot in the second scratch register and a pointer in the first, which receives the result.
    fn stub(&mut self, label: Label, address: u64) {
        let Stubs { links, failed, .. } = self.stubs;
        let registers = || (0..).zip(&REGISTERS[..6]);
        let saved = |at: i32| Mem::at(RUN, links.run.registers + 8 * at);
        self.asm.bind(label);
        self.asm.alu_ri(Alu::Sub, Width::Q64, Gpr::Rsp, 8);
        for (at, &gpr) in registers() {
            self.asm.store(OpSize::Q64, saved(at), gpr);
        }
        self.asm.mov_rr(Width::Q64, Gpr::Rdi, RUN);
        self.asm.mov_rr(Width::Q64, Gpr::Rsi, SCRATCH_2);
        self.asm.mov_rr(Width::Q64, Gpr::Rdx, SCRATCH);
        self.asm.mov_ri(SCRATCH_2, address);
        self.asm.call_r(SCRATCH_2);
        self.asm.mov_rr(Width::Q64, SCRATCH, Gpr::Rax);
        for (at, &gpr) in registers() {
            self.asm.load(OpSize::Q64, gpr, saved(at));
        }
        self.asm.alu_ri(Alu::Add, Width::Q64, Gpr::Rsp, 8);
        self.asm.test_rr(Width::Q64, SCRATCH, SCRATCH);
        self.asm.jcc(Cond::E, failed);
        self.asm.ret();
    }

    /// Takes one instruction from the budget.
    pub(super) fn count(&mut self, slot: usize) {
        let Stubs { links, exhausted, .. } = self.stubs;
        let within = self.asm.new_label();
        self.asm.alu_mi(Alu::Sub, OpSize::Q64, Mem::at(RUN, links.run.budget), 1);
        self.asm.jcc(Cond::Ae, within);
        self.asm.mov_ri(SCRATCH_2, slot as u64);
        self.asm.call(exhausted);
        self.asm.bind(within);
    }

    /// Lets the runtime execute an instruction.
    pub(super) fn execute(&mut self, slot: usize) {
        let Stubs { execute, left, .. } = self.stubs;
        self.asm.mov_ri(SCRATCH_2, slot as u64);
        self.asm.call(execute);
        self.asm.alu_ri(Alu::Cmp, Width::D32, SCRATCH, 1);
        self.asm.jcc(Cond::Ne, left);
    }

    /// `may_goto`, whose counter the runtime keeps.
    pub(super) fn may_goto(&mut self, slot: usize, target: Label) {
        self.asm.mov_ri(SCRATCH_2, slot as u64);
        self.asm.call(self.stubs.execute);
        self.asm.alu_ri(Alu::Cmp, Width::D32, SCRATCH, 1);
        self.asm.jcc(Cond::Ne, target);
    }

    /// A helper that calls callbacks: after each call the runtime returns the next one to call, if any, and its registers.
    pub(super) fn call_back(&mut self, slot: usize) {
        self.execute(slot);
        let again = self.asm.new_label();
        self.asm.bind(again);
        let callback = Mem::at(RUN, self.stubs.links.run.callback);
        for at in 0..self.functions.len() {
            let (start, entry) = self.functions[at];
            let other = self.asm.new_label();
            self.asm.alu_mi(Alu::Cmp, OpSize::Q64, callback, start as i32);
            self.asm.jcc(Cond::Ne, other);
            self.asm.call(entry);
            self.asm.jmp(again);
            self.asm.bind(other);
        }
    }

    /// The address of the 64-bit value of a context field.
    pub(super) fn field_value(&self) -> Mem {
        Mem::at(RUN, self.stubs.links.run.value)
    }

    /// Checks the access of an instruction through a register; its address is then in the first scratch register.
    pub(super) fn check_access(&mut self, slot: usize, base: Reg) {
        self.asm.mov_rr(Width::Q64, SCRATCH, gpr(base));
        self.asm.mov_ri(SCRATCH_2, slot as u64);
        self.asm.call(self.stubs.access);
    }
}
