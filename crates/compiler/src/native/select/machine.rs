//! A machine of the code generator for each target.

use crate::codegen::lir::{Function as Lir, Operand, Place, Reg, RegSet, Role, Vreg};
use crate::codegen::machine::{Frame, Label, LoopMachine, Machine, Ways};
use crate::ir::uses::Uses;
use crate::ir::{Block, Function, STACK_BYTES, Value};

use super::choose::Choice;
use super::generator::Generator;
use super::op::Op;
use super::target::Target;

impl<A: Target> Machine for Generator<'_, A> {
    type Op = Op;

    fn registers(&self) -> RegSet {
        A::REGISTERS
    }

    fn scratch(&self) -> Reg {
        A::SCRATCH
    }

    fn select(&mut self, function: &Function, uses: &Uses, block: Block, out: &mut Lir<Op>) {
        Choice::new(self, function, out).block(uses, block);
    }

    fn argument(&mut self, function: &Function, value: Value, out: &mut Lir<Op>) -> Vreg {
        Choice::new(self, function, out).value(value)
    }

    fn end(&mut self, function: &Function, _: &Uses, block: Block, out: &mut Lir<Op>) {
        Choice::new(self, function, out).end(block);
    }

    fn shared(&self) -> Option<Vreg> {
        Some(self.current.host)
    }

    fn begin(&mut self, frame: &Frame) {
        if !self.full_prologue {
            return A::prologue(self, frame);
        }
        self.current.stack = STACK_BYTES.unsigned_abs();
        self.current.needs.calls = true;
        A::prologue(self, &Frame { written: A::REGISTERS, ..*frame });
    }

    fn emit(&mut self, op: &Op, origin: Option<u32>, assigned: &[Reg], ways: Ways<'_>) {
        if let Some(slot) = origin.filter(|_| origin != self.marked) {
            self.asm.mark(slot);
            self.marked = origin;
        }
        A::instruction(self, *op, assigned, ways);
    }

    fn copy(&mut self, to: Reg, from: Reg) {
        A::copy(self, to, from);
    }

    fn spill(&mut self, slot: u32, from: Reg) {
        A::spill(self, slot, from);
    }

    fn reload(&mut self, to: Reg, slot: u32) {
        A::reload(self, to, slot);
    }

    fn jump(&mut self, to: Label) {
        let label = self.label(to);
        A::jump(self, label);
    }

    fn bind(&mut self, label: Label) {
        let label = self.label(label);
        self.asm.bind(label);
    }
}

/// Bursts: the items are frames.
impl<A: Target> LoopMachine for Generator<'_, A> {
    fn enter_loop(&mut self, function: &Function, out: &mut Lir<Op>) -> Vreg {
        Choice::new(self, function, out).enter_burst()
    }

    fn item(&mut self, function: &Function, out: &mut Lir<Op>) -> Vreg {
        Choice::new(self, function, out).frame()
    }

    fn next_item(&mut self, function: &Function, block: Block, out: &mut Lir<Op>) -> Vreg {
        Choice::new(self, function, out).end_packet(block)
    }

    fn end_entry(&mut self, out: &mut Lir<Op>) {
        out.push(Op::EnterLoop, &[], RegSet::default(), None);
    }

    fn leave_loop(&mut self, item: Vreg, out: &mut Lir<Op>) {
        let frame = Operand { vreg: item, role: Role::Use, place: Place::Fixed(A::RESULT) };
        out.push(Op::Return, &[frame], RegSet::default(), None);
    }
}
