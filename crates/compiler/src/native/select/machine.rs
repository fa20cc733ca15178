//! Machines of the code generator.

use crate::codegen::lir::{Function as Lir, Operand, Place, Reg, RegSet, Role, Vreg};
use crate::codegen::machine::{Frame, Label, LoopMachine, Machine, Ways};
use crate::ir::uses::Uses;
use crate::ir::{Block, Function, STACK_BYTES, Value};

use super::choose::Choice;
use crate::internal::Internal;
use crate::native::machine::emit::{Emit, Operands};
use crate::native::machine::generator::Generator;
use crate::native::machine::op::Op;

impl<A: Emit> Machine for Generator<'_, A> {
    type Op = Op;

    fn registers(&self) -> RegSet {
        A::REGISTERS
    }

    fn scratch(&self) -> Reg {
        A::SCRATCH
    }

    fn select(
        &mut self,
        function: &Function,
        uses: &Uses,
        block: Block,
        out: &mut Lir<Op>,
    ) -> Result<(), Internal> {
        Choice::new(self, function, out).block(uses, block)
    }

    fn argument(&mut self, function: &Function, value: Value, out: &mut Lir<Op>) -> Result<Vreg, Internal> {
        Choice::new(self, function, out).value(value)
    }

    fn end(
        &mut self,
        function: &Function,
        _: &Uses,
        block: Block,
        out: &mut Lir<Op>,
    ) -> Result<(), Internal> {
        Choice::new(self, function, out).end(block)
    }

    fn shared(&self) -> Option<Vreg> {
        self.current.host
    }

    fn begin(&mut self, frame: &Frame) -> Result<(), Internal> {
        if !self.full_prologue {
            return A::prologue(self, frame);
        }
        self.current.stack = STACK_BYTES.unsigned_abs();
        self.current.needs.calls = true;
        A::prologue(self, &Frame { written: A::REGISTERS, ..*frame })
    }

    fn emit(
        &mut self,
        op: &Op,
        origin: Option<u32>,
        assigned: &[Reg],
        ways: Ways<'_>,
    ) -> Result<(), Internal> {
        if let Some(slot) = origin.filter(|_| origin != self.marked) {
            self.asm.mark(slot);
            self.marked = origin;
        }
        A::operation(self, *op, Operands::new(assigned), ways)
    }

    fn copy(&mut self, to: Reg, from: Reg) -> Result<(), Internal> {
        A::copy(self, A::gpr(to)?, A::gpr(from)?);
        Ok(())
    }

    fn spill(&mut self, slot: u32, from: Reg) -> Result<(), Internal> {
        A::spill(self, slot, A::gpr(from)?);
        Ok(())
    }

    fn reload(&mut self, to: Reg, slot: u32) -> Result<(), Internal> {
        A::reload(self, A::gpr(to)?, slot);
        Ok(())
    }

    fn jump(&mut self, to: Label) {
        let label = self.label(to);
        self.asm.jump(label);
    }

    fn bind(&mut self, label: Label) {
        let label = self.label(label);
        self.asm.bind(label);
    }
}

/// Bursts: the items are frames.
impl<A: Emit> LoopMachine for Generator<'_, A> {
    fn enter_loop(&mut self, function: &Function, out: &mut Lir<Op>) -> Result<Vreg, Internal> {
        Choice::new(self, function, out).enter_burst()
    }

    fn item(&mut self, function: &Function, out: &mut Lir<Op>) -> Result<Vreg, Internal> {
        Choice::new(self, function, out).frame()
    }

    fn next_item(&mut self, function: &Function, block: Block, out: &mut Lir<Op>) -> Result<Vreg, Internal> {
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
