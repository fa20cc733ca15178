//! A machine with a few registers whose instructions are the operations of the form, with constraints as real machines have them.

use std::collections::HashMap;

use paceline_compiler::codegen::lir::{Function as Lir, Operand, Place, Reg, RegSet, Role, Vreg};
use paceline_compiler::codegen::{Frame, Label, Machine, Ways};
use paceline_compiler::internal::Internal;
use paceline_compiler::ir::arena::Key;
use paceline_compiler::ir::random::Memory;
use paceline_compiler::ir::uses::Uses;
use paceline_compiler::ir::{
    BinaryOp, Block, Executed, Function, Inst, Interpreter, Machine as _, Module, Op as Operation, RunError,
    Terminator, Type, Value,
};
use paceline_isa::eval;

/// What registers and slots have that hold nothing.
const POISON: u64 = 0xdead_beef_dead_beef;
/// Instructions that a run may have.
const BUDGET: u64 = 2_000_000;

#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// The function's arguments are in registers from 1 on.
    Enter,
    /// Pushes an argument of the next call.
    Push(Value),
    /// An operation with these values in its operands, besides those that were pushed.
    Inst { inst: Inst, values: Vec<Value>, clobbers: RegSet, early: bool },
    /// The end of a block.
    End(Block),
}

#[derive(Clone, Debug)]
enum Code {
    Op(Op, Vec<Reg>, Vec<Label>),
    Copy(Reg, Reg),
    Spill(u32, Reg),
    Reload(Reg, u32),
    Jump(Label),
}

/// The machine: so many registers for values, and the one behind them for moves.
#[derive(Debug)]
pub(crate) struct Toy {
    count: u8,
    code: Vec<Code>,
    labels: HashMap<Label, usize>,
    /// Slots of the program's instructions, in the order of the code.
    origins: Vec<u32>,
    frame: Frame,
}

fn vreg(value: Value) -> Vreg {
    Vreg(value.index() as u32)
}

fn operand(value: Value, role: Role, place: Place) -> Operand {
    Operand { vreg: vreg(value), role, place }
}

impl Toy {
    pub(crate) fn new(count: u8) -> Self {
        Self { count, code: Vec::new(), labels: HashMap::new(), origins: Vec::new(), frame: Frame::default() }
    }

    /// Number of loads from slots.
    pub(crate) fn reloads(&self) -> usize {
        self.code.iter().filter(|code| matches!(code, Code::Reload(..))).count()
    }

    /// Slots of the program's instructions that the code is part of, in its order.
    pub(crate) fn origins(&self) -> &[u32] {
        &self.origins
    }

    /// Number of moves between registers.
    pub(crate) fn copies(&self) -> usize {
        self.code.iter().filter(|code| matches!(code, Code::Copy(..))).count()
    }

    /// Number of blocks that have code.
    pub(crate) fn blocks(&self) -> usize {
        self.code.iter().filter(|code| matches!(code, Code::Op(Op::End(_), ..))).count()
    }

    /// Number of jumps behind moves that have a place of their own.
    pub(crate) fn jumps(&self) -> usize {
        self.code.iter().filter(|code| matches!(code, Code::Jump(_))).count()
    }

    fn inst(&self, function: &Function, inst: Inst, out: &mut Lir<Op>) {
        let data = function.inst(inst);
        let mut values = Vec::new();
        data.op.operands(|value, _| values.push(value));
        let all = Place::Any;
        let mut places: Vec<Place> = vec![all; values.len()];
        let mut result = all;
        let mut clobbers = RegSet::default();
        match data.op {
            Operation::Binary { op: BinaryOp::Shl | BinaryOp::Lshr | BinaryOp::Ashr, .. } => {
                // The count is in a register of its own, as on x86.
                (places[1], result) = (Place::Fixed(Reg(1)), Place::Reuse(0));
            }
            Operation::Binary { op: BinaryOp::Udiv | BinaryOp::Urem, .. } => {
                (places[0], result) = (Place::Fixed(Reg(0)), Place::Fixed(Reg(0)));
                clobbers = RegSet::default().with(Reg(2));
            }
            Operation::Binary { .. } | Operation::Neg { .. } => result = Place::Reuse(0),
            Operation::Compare { .. } | Operation::Load { .. } => result = Place::Early,
            Operation::Atomic { expected: Some(_), .. } => {
                (places[2], result) = (Place::Fixed(Reg(0)), Place::Fixed(Reg(0)));
            }
            Operation::Call { .. } => {
                // Half of the registers survive no call; arguments that have none of them are pushed.
                clobbers = (0..=self.count / 2).fold(clobbers, |all, reg| all.with(Reg(reg)));
                let fixed = usize::from(self.count / 2).min(values.len());
                for value in values.split_off(fixed) {
                    out.push(
                        Op::Push(value),
                        &[operand(value, Role::Use, all)],
                        RegSet::default(),
                        data.slot,
                    );
                }
                places = (1..).take(fixed).map(|reg| Place::Fixed(Reg(reg))).collect();
                result = Place::Fixed(Reg(0));
            }
            _ => {}
        }
        let uses = values.iter().zip(&places).map(|(value, place)| operand(*value, Role::Use, *place));
        let operands: Vec<Operand> =
            uses.chain(data.result.map(|value| operand(value, Role::Def, result))).collect();
        let early = result == Place::Early;
        out.push(Op::Inst { inst, values, clobbers, early }, &operands, clobbers, data.slot);
    }
}

impl Machine for Toy {
    type Op = Op;

    fn registers(&self) -> RegSet {
        (0..self.count).fold(RegSet::default(), |all, reg| all.with(Reg(reg)))
    }

    fn scratch(&self) -> Reg {
        Reg(self.count)
    }

    fn select(
        &mut self,
        function: &Function,
        uses: &Uses,
        block: Block,
        out: &mut Lir<Op>,
    ) -> Result<(), Internal> {
        let data = function.block(block);
        if Some(block) == function.entry() {
            let params = (1..).zip(&data.params);
            let operands: Vec<Operand> =
                params.map(|(reg, param)| operand(*param, Role::Def, Place::Fixed(Reg(reg)))).collect();
            out.push(Op::Enter, &operands, RegSet::default(), None);
        }
        let is_needed = |inst: &&Inst| {
            let data = function.inst(**inst);
            data.op.effects().stays || data.result.is_some_and(|result| uses.count(result) > 0)
        };
        data.insts.iter().filter(is_needed).for_each(|inst| self.inst(function, *inst, out));
        Ok(())
    }

    fn argument(&mut self, _: &Function, value: Value, _: &mut Lir<Op>) -> Result<Vreg, Internal> {
        Ok(vreg(value))
    }

    fn begin(&mut self, frame: &Frame) -> Result<(), Internal> {
        self.frame = *frame;
        Ok(())
    }

    fn end(
        &mut self,
        function: &Function,
        _: &Uses,
        block: Block,
        out: &mut Lir<Op>,
    ) -> Result<(), Internal> {
        let data = function.block(block);
        let operands = match &data.terminator {
            Terminator::Branch { args, .. } => args.map(|arg| operand(arg, Role::Use, Place::Any)).to_vec(),
            Terminator::Return(value) => vec![operand(*value, Role::Use, Place::Fixed(Reg(0)))],
            _ => Vec::new(),
        };
        out.push(Op::End(block), &operands, RegSet::default(), data.slot);
        Ok(())
    }

    fn emit(
        &mut self,
        op: &Op,
        origin: Option<u32>,
        assigned: &[Reg],
        ways: Ways<'_>,
    ) -> Result<(), Internal> {
        self.origins.extend(origin);
        self.code.push(Code::Op(op.clone(), assigned.to_vec(), ways.targets.to_vec()));
        Ok(())
    }

    fn copy(&mut self, to: Reg, from: Reg) -> Result<(), Internal> {
        self.code.push(Code::Copy(to, from));
        Ok(())
    }

    fn spill(&mut self, slot: u32, from: Reg) -> Result<(), Internal> {
        self.code.push(Code::Spill(slot, from));
        Ok(())
    }

    fn reload(&mut self, to: Reg, slot: u32) -> Result<(), Internal> {
        self.code.push(Code::Reload(to, slot));
        Ok(())
    }

    fn jump(&mut self, to: Label) {
        self.code.push(Code::Jump(to));
    }

    fn bind(&mut self, label: Label) {
        self.labels.insert(label, self.code.len());
    }
}

/// A run of the code of a module's main program.
struct Run<'a> {
    toy: &'a Toy,
    function: &'a Function,
    regs: [u64; 32],
    slots: Vec<u64>,
    /// Arguments that were pushed.
    pushed: Vec<(Value, u64)>,
}

/// Runs the code of a module's main program.
pub(crate) fn run(
    toy: &Toy,
    slots: u32,
    module: &Module,
    memory: &mut Memory,
    context: u64,
) -> Result<u64, RunError<u64>> {
    let (_, function) = module.functions.iter().next().ok_or(RunError::Invalid)?;
    let stack = memory.enter(function, None)?;
    let (regs, slots) = ([POISON; 32], vec![POISON; slots as usize]);
    let mut run = Run { toy, function, regs, slots, pushed: Vec::new() };
    run.regs[1] = context;
    let result = run.all(&mut Interpreter::new(module, memory, BUDGET), stack)?;
    memory.leave(result);
    Ok(result)
}

impl Run<'_> {
    fn get(&self, reg: Reg) -> u64 {
        self.regs[usize::from(reg.0)]
    }

    fn all(&mut self, interpreter: &mut Interpreter<'_, Memory>, stack: u64) -> Result<u64, RunError<u64>> {
        let toy = self.toy;
        let mut at = 0;
        for _ in 0..BUDGET {
            let code = toy.code.get(at).ok_or(RunError::Invalid)?;
            at += 1;
            match code {
                Code::Copy(to, from) => self.regs[usize::from(to.0)] = self.get(*from),
                Code::Spill(slot, from) => self.slots[*slot as usize] = self.get(*from),
                Code::Reload(to, slot) => self.regs[usize::from(to.0)] = self.slots[*slot as usize],
                Code::Jump(label) => at = toy.labels[label],
                Code::Op(Op::Enter, ..) => {}
                Code::Op(Op::Push(value), assigned, _) => self.pushed.push((*value, self.get(assigned[0]))),
                Code::Op(Op::Inst { inst, values, clobbers, early }, assigned, _) => {
                    if let Some(written) = assigned.get(values.len()).filter(|_| *early) {
                        self.regs[usize::from(written.0)] = POISON;
                    }
                    let mut given = std::mem::take(&mut self.pushed);
                    given.extend(values.iter().zip(assigned).map(|(value, reg)| (*value, self.get(*reg))));
                    let find = |value: Value| {
                        given.iter().find(|(known, _)| *known == value).map(|(_, number)| *number)
                    };
                    let executed = interpreter.execute(self.function, *inst, stack, find)?;
                    clobbers.iter().for_each(|reg| self.regs[usize::from(reg.0)] = POISON);
                    match executed {
                        Executed::Return(result) => return Ok(result),
                        Executed::Nothing => {}
                        Executed::Value(result) => {
                            let is_small = self.function.inst(*inst).op.result() == Some(Type::I32);
                            assert!(!is_small || result <= u32::MAX.into(), "an i32 has zeros above");
                            let reg = assigned.get(values.len()).ok_or(RunError::Invalid)?;
                            self.regs[usize::from(reg.0)] = result;
                        }
                    }
                }
                Code::Op(Op::End(block), assigned, targets) => {
                    let next = match &self.function.block(*block).terminator {
                        Terminator::Return(_) => return Ok(self.get(assigned[0])),
                        Terminator::Jump(_) => 0,
                        Terminator::Branch { condition, ty, .. } => {
                            let (a, b) = (self.get(assigned[0]), self.get(assigned[1]));
                            usize::from(!eval::compare(ty.width(), *condition, a, b))
                        }
                        Terminator::MayGoto(_) => usize::from(!interpreter.machine().may_goto()?),
                        Terminator::Stop | Terminator::Unset => return Err(RunError::Invalid),
                    };
                    at = toy.labels[&targets[next]];
                }
            }
        }
        Err(RunError::Budget)
    }
}
