//! A slice as a program: one function with one frame for all that were inlined.

use paceline_isa::{AluOp, Callee, Code, Imm64, Insn, Operand, Reg, Width};
use paceline_spec::helper::HelperId;

use crate::slice::step::{End, Key, Next, Op, Step, Test};
use crate::slice::value::At;

/// Stack of a program in bytes (`MAX_BPF_STACK`).
const MAX_STACK: i32 = 512;

/// The frames of inlined functions in the slice's: how far below its top each begins.
struct Frames(Vec<i32>);

impl Frames {
    /// `None` if they do not fit.
    fn of(steps: &[Step]) -> Option<Self> {
        let mut depths: Vec<i32> = Vec::new();
        for at in steps.iter().flat_map(|step| &step.ops).filter_map(place) {
            depths.resize(depths.len().max(at.frame + 1), 0);
            depths[at.frame] = depths[at.frame].max(at.offset.saturating_neg());
        }
        let mut top = 0;
        let mut starts = Vec::new();
        for depth in depths {
            starts.push(top);
            top += (depth + 7) / 8 * 8;
        }
        (top <= MAX_STACK).then_some(Self(starts))
    }

    fn offset(&self, at: At) -> Option<i16> {
        i16::try_from(at.offset - self.0.get(at.frame)?).ok()
    }
}

fn place(op: &Op) -> Option<At> {
    match *op {
        Op::Load { at, .. } | Op::Store { at, .. } | Op::LookUp { key: Key::Stack(at), .. } => Some(at),
        Op::Insn(_) | Op::LookUp { key: Key::Register, .. } => None,
    }
}

/// The instructions of an operation.
fn instructions(op: &Op, frames: &Frames, out: &mut Vec<Insn>) -> Option<()> {
    match *op {
        Op::Insn(insn) => out.push(insn),
        Op::Load { size, signed, dst, at } => {
            out.push(Insn::Load { size, signed, dst, base: Reg::R10, offset: frames.offset(at)? });
        }
        Op::Store { size, at, src } => {
            out.push(Insn::Store { size, base: Reg::R10, offset: frames.offset(at)?, src });
        }
        Op::LookUp { map, key } => {
            if let Key::Stack(at) = key {
                let (width, dst) = (Width::W64, Reg::R2);
                out.push(Insn::Alu { width, op: AluOp::Mov, dst, src: Operand::Reg(Reg::R10) });
                let src = Operand::Imm(frames.offset(at)?.into());
                out.push(Insn::Alu { width, op: AluOp::Add, dst, src });
            }
            let value = Imm64::MapIndex(i32::try_from(map).ok()?);
            out.push(Insn::LoadImm64 { dst: Reg::R1, value });
            out.push(Insn::Call(Callee::Helper(HelperId::MapLookupElem.imm())));
        }
    }
    Some(())
}

/// A step that is in the program.
struct Placed {
    step: usize,
    insns: Vec<Insn>,
    /// Conditional jump, and its target.
    branch: Option<(Test, Next)>,
    /// Target of the jump behind it, which is left out if it leads to the next step.
    jump: Option<Next>,
}

impl Placed {
    fn slots(&self) -> usize {
        let insns: usize = self.insns.iter().map(Insn::slots).sum();
        insns + usize::from(self.branch.is_some()) + usize::from(self.jump.is_some())
    }
}

/// The program; `None` if its stack or a jump would be too long.
pub(crate) fn layout(steps: &[Step]) -> Option<Code> {
    let order = reached(steps);
    let kept: Vec<Step> = order.iter().map(|&index| steps[index].clone()).collect();
    let frames = Frames::of(&kept)?;
    let mut placed = Vec::new();
    for (position, (&step, kept)) in order.iter().zip(&kept).enumerate() {
        let next: Next = order.get(position + 1).copied();
        let mut insns = Vec::new();
        kept.ops.iter().try_for_each(|op| instructions(op, &frames, &mut insns))?;
        let (branch, after) = match kept.end {
            End::Goto(after) => (None, after),
            End::Branch { test, taken, otherwise } => (Some((test, taken)), otherwise),
        };
        placed.push(Placed { step, insns, branch, jump: (after != next).then_some(after) });
    }
    let mut starts = Vec::new();
    let mut slot = 0;
    for step in &placed {
        starts.push((step.step, slot));
        slot += step.slots();
    }
    let end = slot;
    let target = |next: Next| match next {
        Some(next) => starts.iter().find(|(step, _)| *step == next).map(|(_, slot)| *slot),
        None => Some(end),
    };
    let mut code = Code::default();
    for step in placed {
        step.insns.into_iter().for_each(|insn| code.push(insn));
        let offset = |from: usize, next: Next| i16::try_from(target(next)?.checked_sub(from + 1)?).ok();
        if let Some((Test { width, condition, dst, src }, taken)) = step.branch {
            let offset = offset(code.len(), taken)?;
            code.push(Insn::JumpIf { width, condition, dst, src, offset });
        }
        if let Some(next) = step.jump {
            code.push(Insn::Jump { offset: offset(code.len(), next)? });
        }
    }
    code.push(Insn::Alu { width: Width::W64, op: AluOp::Mov, dst: Reg::R0, src: Operand::Imm(0) });
    code.push(Insn::Exit);
    Some(code)
}

/// The steps that the slice comes to, in order.
fn reached(steps: &[Step]) -> Vec<usize> {
    let mut is_reached = vec![false; steps.len()];
    let mut order = Vec::new();
    // All steps lead forward.
    for (index, step) in steps.iter().enumerate() {
        if index != 0 && !is_reached[index] {
            continue;
        }
        order.push(index);
        let after = match step.end {
            End::Goto(next) => [next, None],
            End::Branch { taken, otherwise, .. } => [taken, otherwise],
        };
        after.into_iter().flatten().for_each(|next| is_reached[next] = true);
    }
    order
}
