//! arm64 as a target.

use crate::codegen::lir::{Reg, RegSet};
use crate::codegen::machine::{Frame, Ways};
use paceline_spec::context::AreaUse;

use super::asm::{Assembler, Cond, Gpr, Mem, Size};
use super::emit::{Aarch64, Regs};
use super::{entry, regs};
use crate::internal::Internal;
use crate::native::code::{AssembleError, Code, Label};
use crate::native::links::Links;
use crate::native::machine::emit::Emit;
use crate::native::machine::op::Op;
use crate::native::machine::operand::Width;
use crate::native::machine::target::{ALIGNMENT, Target};

impl Target for Assembler {
    type Gpr = Gpr;
    type Cond = Cond;

    const ORDER: &'static [Gpr] = &regs::ORDER;
    const CALLER_SAVED: RegSet = regs::CALLER_SAVED;
    const ARGUMENTS: [Reg; 5] = regs::ARGUMENTS;
    const HOST: Reg = regs::HOST;
    const RESULT: Reg = regs::RESULT;
    const OLD: Option<Reg> = None;
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

    fn jump(&mut self, to: Label) {
        self.b(to);
    }

    fn jump_if(&mut self, cond: Cond, to: Label) {
        self.b_cond(cond, to);
    }

    fn invert(cond: Cond) -> Cond {
        cond.invert()
    }

    fn finish(self) -> Result<Code, AssembleError> {
        Self::finish(self)
    }

    fn enter_run(&mut self, links: &Links, calls: bool, tail_calls: bool, area: AreaUse) {
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
}

impl Emit for Assembler {
    fn prologue(generator: &mut Aarch64<'_>, frame: &Frame) -> Result<(), Internal> {
        generator.prologue(frame)
    }

    fn operation(
        generator: &mut Aarch64<'_>,
        op: Op,
        regs: Regs<'_>,
        ways: Ways<'_>,
    ) -> Result<(), Internal> {
        generator.operation(op, regs, ways)
    }

    fn copy(generator: &mut Aarch64<'_>, to: Gpr, from: Gpr) {
        generator.asm.mov(Width::Q64, to, from);
    }

    fn spill(generator: &mut Aarch64<'_>, slot: u32, from: Gpr) {
        let mem = slot_of(generator, slot);
        generator.asm.store(Size::X, from, mem);
    }

    fn reload(generator: &mut Aarch64<'_>, to: Gpr, slot: u32) {
        let mem = slot_of(generator, slot);
        generator.asm.load(Size::X, to, mem);
    }
}

/// A slot of the frame, which begins with them. Those behind the first 32 KiB take the address register.
fn slot_of(generator: &mut Aarch64<'_>, slot: u32) -> Mem {
    generator.at(Size::X, Gpr::Sp, 8 * slot.cast_signed())
}
