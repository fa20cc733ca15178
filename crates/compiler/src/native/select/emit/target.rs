//! x86-64 as a target.

use crate::codegen::lir::{Reg, RegSet};
use crate::codegen::machine::{Frame, Ways};
use paceline_spec::context::Layout;

use crate::native::entry;
use crate::native::links::Links;
use crate::native::program::ALIGNMENT;
use crate::native::select::generator::Generator;
use crate::native::select::op::Op;
use crate::native::select::regs;
use crate::native::select::target::{Fixed, Target};
use crate::native::x64::{AssembleError, Assembler, Code, Fill, Gpr, Label, OpSize, Width};

impl Target for Assembler {
    const REGISTERS: RegSet = regs::ALL;
    const SCRATCH: Reg = regs::SCRATCH_REG;
    const CALLER_SAVED: RegSet = regs::CALLER_SAVED;
    const ARGUMENTS: [Reg; 5] = regs::ARGUMENTS;
    const HOST: Reg = regs::HOST;
    const RESULT: Reg = regs::RAX;
    const FIXED: Option<Fixed> =
        Some(Fixed { count: regs::RCX, quotient: regs::RAX, remainder: regs::RDX, old: regs::RAX });
    const IS_ORDERED: bool = true;
    const HAS_INDEX: bool = true;

    fn empty() -> Self {
        Self::new()
    }

    fn label(&mut self) -> Label {
        self.new_label()
    }

    fn bind(&mut self, label: Label) {
        Self::bind(self, label);
    }

    fn align(&mut self) {
        Self::align(self, ALIGNMENT, Fill::Int3);
    }

    fn mark(&mut self, slot: u32) {
        Self::mark(self, slot);
    }

    fn finish(self) -> Result<Code, AssembleError> {
        Self::finish(self)
    }

    fn enter_run(&mut self, links: &Links, calls: bool, tail_calls: bool, area: Option<&'static Layout>) {
        entry::enter_run(self, links, calls, tail_calls, area);
    }

    fn check_cpu(&mut self, links: &Links, cpus: u32, lacks_cpu: Label) {
        entry::check_cpu(self, links, cpus, lacks_cpu);
    }

    fn end_without_cpu(&mut self, links: &Links, lacks_cpu: Label) {
        entry::end_without_cpu(self, links, lacks_cpu);
    }

    fn end_burst_without_cpu(&mut self, links: &Links, lacks_cpu: Label) {
        // The first packet is the one that cannot be run. The push also aligns the stack to 16 bytes.
        self.bind(lacks_cpu);
        self.push(Gpr::Rdi);
        self.mov_rr(Width::Q64, Gpr::Rdi, Gpr::R9);
        entry::call_runtime(self, links, links.no_cpu);
        self.pop(Gpr::Rax);
        self.ret();
    }

    fn prologue(generator: &mut Generator<'_, Self>, frame: &Frame) {
        generator.prologue(frame);
    }

    fn instruction(generator: &mut Generator<'_, Self>, op: Op, assigned: &[Reg], ways: Ways<'_>) {
        generator.instruction(op, assigned, ways);
    }

    fn copy(generator: &mut Generator<'_, Self>, to: Reg, from: Reg) {
        generator.asm.mov_rr(Width::Q64, regs::gpr(to), regs::gpr(from));
    }

    fn spill(generator: &mut Generator<'_, Self>, slot: u32, from: Reg) {
        let mem = generator.slot(slot);
        generator.asm.store(OpSize::Q64, mem, regs::gpr(from));
    }

    fn reload(generator: &mut Generator<'_, Self>, to: Reg, slot: u32) {
        let mem = generator.slot(slot);
        generator.asm.load(OpSize::Q64, regs::gpr(to), mem);
    }

    fn jump(generator: &mut Generator<'_, Self>, to: Label) {
        generator.asm.jmp(to);
    }
}
