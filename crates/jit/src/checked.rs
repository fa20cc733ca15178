//! Code that checks every access at run time and counts instructions: for unverified programs, and to find unsoundness of the
//! verifier.
//!
//! The runtime decides: stubs pass it `r0` to `r5` in memory, the slot and the accessed pointer. All functions use the same
//! register assignment. BPF stack frames lie outside the native stack, so that no store of a program can overwrite a return
//! address. When the runtime ends a run, the stack is unwound to the entry.

use paceline_isa::{Operand, Reg, Size};

use crate::emitter::{Emitter, Leave};
use crate::error::CompileError;
use crate::links::CheckedLinks;
use crate::plan::{CHECKED_FRAME, HOST_KEPT, SCRATCH, SCRATCH_2};
use crate::x64::{Alu, Cond, Gpr, Label, Mem, OpSize, Width};

/// Register with the address of the run's state.
const RUN: Gpr = HOST_KEPT;

/// Callee-saved registers that a run clobbers.
const KEPT: [Gpr; 6] = [Gpr::Rbx, Gpr::Rbp, Gpr::R12, Gpr::R13, Gpr::R14, Gpr::R15];

/// State shared by the code of a checked program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stubs {
    links: CheckedLinks,
    access: Label,
    execute: Label,
    leave: Label,
    exhausted: Label,
    /// The common epilogue of all functions.
    done: Label,
    /// The same after the runtime has already left the function.
    left: Label,
    failed: Label,
}

impl Emitter<'_> {
    /// Creates the labels of the stubs.
    pub(crate) fn prepare_checks(&mut self) -> Result<(), CompileError> {
        let links = self.links.checked.ok_or(CompileError::NotLinked)?;
        let mut label = || self.asm.new_label();
        let stubs = Stubs {
            links,
            access: label(),
            execute: label(),
            leave: label(),
            exhausted: label(),
            done: label(),
            left: label(),
            failed: label(),
        };
        self.stubs = Some(stubs);
        self.leave = Leave::Jump(stubs.done);
        Ok(())
    }

    /// The stubs, which are present in all checked code.
    fn stubs(&mut self) -> Option<Stubs> {
        if self.stubs.is_none() {
            self.internal("checked code without its stubs");
        }
        self.stubs
    }

    /// The runtime's entry: `extern "C" fn(r1, r2, &mut Run) -> r0`. All other registers start as zero.
    pub(crate) fn enter_checked(&mut self, main: Label) {
        let Some(stubs) = self.stubs() else { return };
        for gpr in KEPT {
            self.asm.push(gpr);
        }
        // The return address and six registers are 56 bytes: 8 more align the stack to 16 bytes.
        self.asm.alu_ri(Alu::Sub, Width::Q64, Gpr::Rsp, 8);
        self.asm.mov_rr(Width::Q64, RUN, Gpr::Rdx);
        self.asm.store(OpSize::Q64, Mem::at(RUN, stubs.links.run.stack_pointer), Gpr::Rsp);
        for reg in Reg::ALL.into_iter().filter(|reg| ![Reg::R1, Reg::R2, Reg::R10].contains(reg)) {
            let gpr = self.gpr(reg);
            self.set(gpr, 0);
        }
        self.asm.call(main);
        let out = self.asm.new_label();
        self.asm.bind(out);
        self.asm.alu_ri(Alu::Add, Width::Q64, Gpr::Rsp, 8);
        for gpr in KEPT.into_iter().rev() {
            self.asm.pop(gpr);
        }
        self.asm.ret();
        self.asm.bind(stubs.failed);
        self.asm.load(OpSize::Q64, Gpr::Rsp, Mem::at(RUN, stubs.links.run.stack_pointer));
        self.set(Gpr::Rax, 0);
        self.asm.jmp(out);
    }

    /// The start of a function, whose BPF stack frame the runtime has allocated.
    pub(crate) fn enter_checked_function(&mut self) {
        let Some(stubs) = self.stubs() else { return };
        self.prologue();
        self.asm.load(OpSize::Q64, CHECKED_FRAME, Mem::at(RUN, stubs.links.run.frame_pointer));
    }

    /// Emits the code that all functions share.
    pub(crate) fn finish_checks(&mut self) {
        let Some(stubs) = self.stubs() else { return };
        self.asm.bind(stubs.done);
        self.asm.call(stubs.leave);
        self.asm.bind(stubs.left);
        self.epilogue();
        self.asm.ret();
        self.stub(stubs.access, stubs.links.access);
        self.stub(stubs.execute, stubs.links.execute);
        self.stub(stubs.leave, stubs.links.leave);
        self.stub(stubs.exhausted, stubs.links.exhausted);
    }

    /// Calls the runtime with the slot in the second scratch register and a pointer in the first, which receives the result.
    fn stub(&mut self, label: Label, address: u64) {
        let Some(stubs) = self.stubs() else { return };
        let saved = |n: i32| Mem::at(RUN, stubs.links.run.registers + 8 * n);
        let registers: Vec<(i32, Gpr)> =
            (0..6).filter_map(|n| Some((i32::from(n), self.gpr(Reg::new(n)?)))).collect();
        self.asm.bind(label);
        self.asm.alu_ri(Alu::Sub, Width::Q64, Gpr::Rsp, 8);
        for &(n, gpr) in &registers {
            self.asm.store(OpSize::Q64, saved(n), gpr);
        }
        self.asm.mov_rr(Width::Q64, Gpr::Rdi, RUN);
        self.asm.mov_rr(Width::Q64, Gpr::Rsi, SCRATCH_2);
        self.asm.mov_rr(Width::Q64, Gpr::Rdx, SCRATCH);
        self.call_runtime(address);
        self.asm.mov_rr(Width::Q64, SCRATCH, Gpr::Rax);
        for &(n, gpr) in &registers {
            self.asm.load(OpSize::Q64, gpr, saved(n));
        }
        self.asm.alu_ri(Alu::Add, Width::Q64, Gpr::Rsp, 8);
        self.asm.test_rr(Width::Q64, SCRATCH, SCRATCH);
        self.asm.jcc(Cond::E, stubs.failed);
        self.asm.ret();
    }

    /// Takes one instruction from the budget.
    pub(crate) fn count(&mut self, slot: usize) {
        let Some(stubs) = self.stubs() else { return };
        let within = self.asm.new_label();
        self.asm.alu_mi(Alu::Sub, OpSize::Q64, Mem::at(RUN, stubs.links.run.budget), 1);
        self.asm.jcc(Cond::Ae, within);
        self.asm.mov_ri(SCRATCH_2, slot as u64);
        self.asm.call(stubs.exhausted);
        self.asm.bind(within);
    }

    /// Lets the runtime execute an instruction.
    pub(crate) fn execute(&mut self, slot: usize) {
        let Some(stubs) = self.stubs() else { return };
        self.asm.mov_ri(SCRATCH_2, slot as u64);
        self.asm.call(stubs.execute);
        self.asm.alu_ri(Alu::Cmp, Width::D32, SCRATCH, 1);
        self.asm.jcc(Cond::Ne, stubs.left);
    }

    /// `may_goto`, whose counter the runtime keeps.
    pub(crate) fn checked_may_goto(&mut self, slot: usize, target: Label) {
        let Some(stubs) = self.stubs() else { return };
        self.asm.mov_ri(SCRATCH_2, slot as u64);
        self.asm.call(stubs.execute);
        self.asm.alu_ri(Alu::Cmp, Width::D32, SCRATCH, 1);
        self.asm.jcc(Cond::Ne, target);
    }

    /// A helper that calls callbacks: after each call the runtime returns the next one to call, if any, and its registers.
    pub(crate) fn call_back(&mut self, slot: usize) {
        let Some(stubs) = self.stubs() else { return };
        self.execute(slot);
        let again = self.asm.new_label();
        self.asm.bind(again);
        let callback = Mem::at(RUN, stubs.links.run.callback);
        for start in self.source.callbacks() {
            let Some(entry) = self.entry_of(start) else {
                self.internal("a callback has no entry");
                continue;
            };
            let other = self.asm.new_label();
            self.asm.alu_mi(Alu::Cmp, OpSize::Q64, callback, start as i32);
            self.asm.jcc(Cond::Ne, other);
            self.asm.call(entry);
            self.asm.jmp(again);
            self.asm.bind(other);
        }
    }

    /// Passes the value of a store to the runtime, which makes stores to the context itself.
    pub(crate) fn tell_value(&mut self, src: Operand) {
        let Some(stubs) = self.stubs else { return };
        let value = Mem::at(RUN, stubs.links.run.value);
        match src {
            Operand::Imm(imm) => self.asm.store_imm(OpSize::Q64, value, imm),
            Operand::Reg(reg) => {
                let src = self.value(reg, SCRATCH);
                self.asm.store(OpSize::Q64, value, src);
            }
        }
    }

    /// Checks an access through a register.
    pub(crate) fn checked_address(&mut self, slot: usize, base: Reg) -> Mem {
        if let Some(stubs) = self.stubs {
            let pointer = self.value(base, SCRATCH);
            self.asm.mov_rr(Width::Q64, SCRATCH, pointer);
            self.asm.mov_ri(SCRATCH_2, slot as u64);
            self.asm.call(stubs.access);
        }
        Mem::at(SCRATCH, 0)
    }

    /// A load. For a context field, the runtime returns the address of its own 64-bit copy of the value.
    pub(crate) fn checked_load(&mut self, slot: usize, size: Size, signed: bool, dst: Gpr, base: Reg) {
        let Some(stubs) = self.stubs() else { return };
        let mem = self.checked_address(slot, base);
        let (plain, done) = (self.asm.new_label(), self.asm.new_label());
        self.asm.lea(Width::Q64, SCRATCH_2, Mem::at(RUN, stubs.links.run.value));
        self.asm.alu_rr(Alu::Cmp, Width::Q64, SCRATCH, SCRATCH_2);
        self.asm.jcc(Cond::Ne, plain);
        self.load_from(Size::Dw, false, dst, mem);
        self.asm.jmp(done);
        self.asm.bind(plain);
        self.load_from(size, signed, dst, mem);
        self.asm.bind(done);
    }
}
