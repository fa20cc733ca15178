//! arm64 as a target.

use crate::codegen::lir::{Reg, RegSet};
use crate::codegen::machine::{Frame, Ways};
use paceline_spec::context::Layout;

use super::{Arm64, entry, regs};
use crate::native::arm64::{Assembler, Gpr, Mem, Size};
use crate::native::links::Links;
use crate::native::program::ALIGNMENT;
use crate::native::select::op::Op;
use crate::native::select::target::{Fixed, Target};
use crate::native::x64::{AssembleError, Code, Label, Width};

impl Target for Assembler {
    const REGISTERS: RegSet = regs::ALL;
    const SCRATCH: Reg = regs::SCRATCH_REG;
    const CALLER_SAVED: RegSet = regs::CALLER_SAVED;
    const ARGUMENTS: [Reg; 5] = regs::ARGUMENTS;
    const HOST: Reg = regs::HOST;
    const RESULT: Reg = regs::RESULT;
    const FIXED: Option<Fixed> = None;
    const IS_ORDERED: bool = false;
    // Addresses with an index have no displacement, which most accesses need.
    const HAS_INDEX: bool = false;

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
        Self::align(self, ALIGNMENT);
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
        entry::end_burst_without_cpu(self, links, lacks_cpu);
    }

    fn prologue(generator: &mut Arm64<'_>, frame: &Frame) {
        generator.enter_function(frame);
    }

    fn instruction(generator: &mut Arm64<'_>, op: Op, assigned: &[Reg], ways: Ways<'_>) {
        generator.one(op, assigned, ways);
    }

    fn copy(generator: &mut Arm64<'_>, to: Reg, from: Reg) {
        generator.asm.mov(Width::Q64, regs::gpr(to), regs::gpr(from));
    }

    fn spill(generator: &mut Arm64<'_>, slot: u32, from: Reg) {
        let mem = slot_of(generator, slot);
        generator.asm.store(Size::X, regs::gpr(from), mem);
    }

    fn reload(generator: &mut Arm64<'_>, to: Reg, slot: u32) {
        let mem = slot_of(generator, slot);
        generator.asm.load(Size::X, regs::gpr(to), mem);
    }

    fn jump(generator: &mut Arm64<'_>, to: Label) {
        generator.asm.b(to);
    }
}

/// A slot of the frame, which begins with them. Those behind the first 32 KiB take the address register.
fn slot_of(generator: &mut Arm64<'_>, slot: u32) -> Mem {
    generator.at(Size::X, Gpr::Sp, 8 * slot.cast_signed())
}
