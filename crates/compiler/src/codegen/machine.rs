//! What a machine does for the code generator.
//!
//! `begin` is called when registers are allocated: it gets the number of slots and the registers that are written, from which
//! prologue and frame follow. A loop over items has a block before the function's blocks and one behind them; a block that returns
//! has two targets, the function with the next item and the end of the loop. The test machine has 4 to 14 registers and runs
//! operations by the form's interpreter.

use crate::ir::uses::Uses;
use crate::ir::{Block, Value};

use crate::codegen::lir::{Function, Reg, RegSet, Vreg};
use crate::internal::Internal;

/// A place in the code that is jumped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// Where an instruction goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ways<'a> {
    /// The labels of its block's targets; none if it is not the last of its block.
    pub targets: &'a [Label],
    /// The label of what comes next in the code, which needs no jump.
    pub next: Option<Label>,
}

/// A machine that runs a function again and again over the items of a range, such as the frames of a burst. The function's code is the body
/// of a loop: an item takes the place of its arguments, and where it returns, the next item follows.
pub trait LoopMachine: Machine {
    /// Adds the instructions before the loop, their end aside, and returns the first item.
    fn enter_loop(
        &mut self,
        function: &crate::ir::Function,
        out: &mut Function<Self::Op>,
    ) -> Result<Vreg, Internal>;

    /// The virtual register of an item at the start of the function.
    fn item(
        &mut self,
        function: &crate::ir::Function,
        out: &mut Function<Self::Op>,
    ) -> Result<Vreg, Internal>;

    /// Adds what makes the next item, in a block that returns, before its [`end`](Machine::end). That has two targets: the function, if
    /// there is a next item, and the end of the loop.
    fn next_item(
        &mut self,
        function: &crate::ir::Function,
        block: Block,
        out: &mut Function<Self::Op>,
    ) -> Result<Vreg, Internal>;

    /// Adds the end of a block before the loop.
    fn end_entry(&mut self, out: &mut Function<Self::Op>);

    /// Adds the block behind the loop, by the item that it ended with.
    fn leave_loop(&mut self, item: Vreg, out: &mut Function<Self::Op>);
}

/// What the code of a function needs, once its registers are allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Number of slots.
    pub slots: u32,
    /// The registers that instructions and moves write, the scratch register aside.
    pub written: RegSet,
}

/// A machine: it selects instructions, and emits them.
///
/// An error is a bug of the machine, and ends the generation.
pub trait Machine {
    /// What an instruction does.
    type Op;

    /// The registers that values can be in.
    fn registers(&self) -> RegSet;

    /// A register that no value is ever in, for moves between slots and around in a circle.
    fn scratch(&self) -> Reg;

    /// Adds the instructions of a block but its end. The virtual register of a value has its number; the
    /// block was begun, with its parameters unless it is the entry. An operation that nobody uses and that need not stay has no
    /// instruction, and one with a single user may be part of that user's.
    fn select(
        &mut self,
        function: &crate::ir::Function,
        uses: &Uses,
        block: Block,
        out: &mut Function<Self::Op>,
    ) -> Result<(), Internal>;

    /// The virtual register that has a value at the end of a block, before [`end`](Self::end), where it is an argument of the next
    /// block: that of its number, of another value that is the same in registers, or of an instruction that is added here.
    fn argument(
        &mut self,
        function: &crate::ir::Function,
        value: Value,
        out: &mut Function<Self::Op>,
    ) -> Result<Vreg, Internal>;

    /// Adds the end of a block. If that has one target, it has no operands: moves on the way there come before it.
    fn end(
        &mut self,
        function: &crate::ir::Function,
        uses: &Uses,
        block: Block,
        out: &mut Function<Self::Op>,
    ) -> Result<(), Internal>;

    /// The virtual register that the machine has for all blocks of the function whose instructions were selected last, if it has one. What
    /// [`select`](Self::select) and [`end`](Self::end) make in blocks behind the first one that do not return reads no other one of another block,
    /// but for those of values: a loop takes these blocks over.
    fn shared(&self) -> Option<Vreg> {
        None
    }

    /// All that is emitted for a function comes after this: the place of its prologue.
    fn begin(&mut self, frame: &Frame) -> Result<(), Internal>;

    /// Emits an instruction that is part of the program's of a slot, with the registers of its operands, and where it goes if it is the
    /// last one of its block.
    fn emit(
        &mut self,
        op: &Self::Op,
        origin: Option<u32>,
        assigned: &[Reg],
        ways: Ways<'_>,
    ) -> Result<(), Internal>;

    /// Emits a move between registers.
    fn copy(&mut self, to: Reg, from: Reg) -> Result<(), Internal>;

    /// Emits a store to a slot of the frame; a slot has eight bytes.
    fn spill(&mut self, slot: u32, from: Reg) -> Result<(), Internal>;

    /// Emits a load from a slot of the frame.
    fn reload(&mut self, to: Reg, slot: u32) -> Result<(), Internal>;

    /// Emits a jump.
    fn jump(&mut self, to: Label);

    /// A label is here.
    fn bind(&mut self, label: Label);
}
