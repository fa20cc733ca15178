//! x86-64 as a target.

use crate::codegen::lir::{Place, Reg, RegSet};
use crate::codegen::machine::{Frame, Ways};
use paceline_spec::context::AreaUse;

use super::asm::{Assembler, Cond, Fill, Gpr, OpSize};
use super::emit::{Regs, X64};
use super::{entry, regs};
use crate::internal::Internal;
use crate::native::code::{AssembleError, Code, Label};
use crate::native::links::Links;
use crate::native::machine::emit::Emit;
use crate::native::machine::op::{Op, ShiftOp};
use crate::native::machine::operand::Width;
use crate::native::machine::target::{ALIGNMENT, Places, Target};
use crate::native::settings::Features;

impl Target for Assembler {
    type Gpr = Gpr;
    type Cond = Cond;

    const ORDER: &'static [Gpr] = &regs::ORDER;
    const CALLER_SAVED: RegSet = regs::CALLER_SAVED;
    const ARGUMENTS: [Reg; 5] = regs::ARGUMENTS;
    const HOST: Reg = regs::HOST;
    const RESULT: Reg = regs::RAX;
    const OLD: Option<Reg> = Some(regs::RAX);
    const IS_ORDERED: bool = true;
    const HAS_INDEX: bool = true;

    fn places(op: Op, features: Features) -> Places {
        let (any, in_first) = (Places::ANY, Places { result: Place::Reuse(0), ..Places::ANY });
        match op {
            Op::ShiftImm(ShiftOp::Rotl, ..) | Op::Shift(ShiftOp::Shl | ShiftOp::Lshr | ShiftOp::Ashr, _)
                if features.bmi2 =>
            {
                any
            }
            Op::ShiftImm(..) => in_first,
            Op::Shift(..) => Places { uses: [Place::Any, Place::Fixed(regs::RCX)], ..in_first },
            // `mulx` has one operand in the register of the upper half, and changes it not.
            Op::MulHigh(_) if features.bmi2 => Places { uses: [Place::Any, Place::Fixed(regs::RDX)], ..any },
            Op::MulHigh(_) => Places {
                uses: [Place::Any, Place::Fixed(regs::RAX)],
                result: Place::Fixed(regs::RDX),
                clobbers: RegSet::default().with(regs::RAX),
            },
            Op::Divide { remainder, .. } | Op::DivideBy { remainder, .. } => {
                let (result, other) = if remainder { (regs::RDX, regs::RAX) } else { (regs::RAX, regs::RDX) };
                Places {
                    uses: [Place::Fixed(regs::RAX), Place::Any],
                    result: Place::Fixed(result),
                    clobbers: RegSet::default().with(other),
                }
            }
            _ => any,
        }
    }

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

    fn jump(&mut self, to: Label) {
        self.jmp(to);
    }

    fn jump_if(&mut self, cond: Cond, to: Label) {
        self.jcc(cond, to);
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
    fn prologue(generator: &mut X64<'_>, frame: &Frame) -> Result<(), Internal> {
        generator.prologue(frame)
    }

    fn operation(generator: &mut X64<'_>, op: Op, regs: Regs<'_>, ways: Ways<'_>) -> Result<(), Internal> {
        generator.operation(op, regs, ways)
    }

    fn copy(generator: &mut X64<'_>, to: Gpr, from: Gpr) {
        generator.asm.mov_rr(Width::Q64, to, from);
    }

    fn spill(generator: &mut X64<'_>, slot: u32, from: Gpr) {
        let mem = generator.slot(slot);
        generator.asm.store(OpSize::Q64, mem, from);
    }

    fn reload(generator: &mut X64<'_>, to: Gpr, slot: u32) {
        let mem = generator.slot(slot);
        generator.asm.load(OpSize::Q64, to, mem);
    }
}
