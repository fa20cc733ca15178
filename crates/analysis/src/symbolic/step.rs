//! Single instructions.

use std::rc::Rc;

use crate::solver::{Answer, Term};
use paceline_isa::{AluOp, AtomicOp, Callee, Condition, Imm64, Insn, Operand, Reg, Size, Width};
use paceline_spec::helper::Helper;

use crate::symbolic::alu;
use crate::symbolic::bounds::Assumption;
use crate::symbolic::explorer::{Explorer, Next};
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::goal::Side;
use crate::symbolic::source::Source;
use crate::symbolic::state::{Assignment, Callback, Frame, State, Taken};
use crate::symbolic::value::{Pointer, Region, Value};

/// Bytes at both ends of the address space without a region.
const NO_MEMORY: u64 = 1 << 16;

/// Numbers from there that no address comes near.
const NUMBERS: i64 = 1 << 15;

impl Explorer<'_> {
    /// Executes the instruction of a state.
    pub(crate) fn step(&mut self, state: &mut State) -> Result<Next, GiveUp> {
        let verified = self.verified;
        let slot = state.slot;
        let Some(&insn) = verified.code().get(slot) else {
            return Err(GiveUp::Instruction("a missing slot"));
        };
        let next = slot + insn.slots();
        match insn {
            Insn::Jump { .. } | Insn::JumpLong { .. } => {
                state.slot = target(&insn, slot)?;
                Ok(Next::On)
            }
            Insn::JumpIf { width, condition, dst, src, .. } => {
                self.boundaries(state, width, dst, src, condition)?;
                let condition = self.condition(state, width, condition, dst, src)?;
                self.branch(state, condition, (next, target(&insn, slot)?))
            }
            Insn::Call(callee) => self.call(state, &insn, callee, next),
            Insn::Exit => self.exit(state),
            _ => {
                self.compute(state, insn)?;
                state.slot = next;
                Ok(Next::On)
            }
        }
    }

    /// Executes an instruction after which the next one comes.
    fn compute(&mut self, state: &mut State, insn: Insn) -> Result<(), GiveUp> {
        let value = match insn {
            Insn::Alu { width, op, dst, src } => return self.alu(state, width, op, dst, src),
            Insn::Neg { width, dst } => {
                let number = self.as_number(Self::register(state, dst))?;
                (dst, Value::Number(alu::neg(&mut self.terms, width, number)))
            }
            Insn::MovSx { width, from, dst, src } => {
                let number = self.number(state, src)?;
                (dst, Value::Number(alu::sign_extend(&mut self.terms, from, width, number)))
            }
            Insn::Swap { order, size, dst } => {
                let number = self.number(state, dst)?;
                (dst, Value::Number(alu::swap(&mut self.terms, order, size, number)))
            }
            Insn::Load { size, signed, dst, base, offset } => {
                let mut value = self.load(state, base, offset, size)?;
                if signed && let Value::Number(number) = value {
                    value = Value::Number(alu::sign_extend(&mut self.terms, size, Width::W64, number));
                }
                (dst, value)
            }
            Insn::LoadAcquire { size, dst, base, offset } => (dst, self.load(state, base, offset, size)?),
            Insn::LoadImm64 { dst, value } => (dst, self.immediate(state, value, state.slot)?),
            Insn::Store { size, base, offset, src } => {
                let value = self.operand(state, src);
                return self.store(state, base, offset, size, value);
            }
            Insn::StoreRelease { size, base, offset, src } => {
                let value = Self::register(state, src);
                return self.store(state, base, offset, size, value);
            }
            Insn::Atomic { width, op, base, offset, src } => {
                return self.atomic(state, width, op, (base, offset), src);
            }
            // Its budget of rounds is larger than any path here is long.
            Insn::MayGoto { .. } => return self.round(state, Side { slot: state.slot, taken: false }),
            Insn::LoadPacket { .. } => return Err(GiveUp::Instruction("a legacy load from the packet")),
            Insn::AddrSpaceCast { .. } => return Err(GiveUp::Instruction("a cast between address spaces")),
            Insn::CallReg(_) => return Err(GiveUp::Instruction("callx")),
            // Those that go on elsewhere are not computed.
            Insn::Jump { .. } | Insn::JumpLong { .. } | Insn::JumpIf { .. } | Insn::Call(_) | Insn::Exit => {
                return Err(GiveUp::Instruction("a jump"));
            }
        };
        Self::set(state, value.0, value.1);
        Ok(())
    }

    fn call(&mut self, state: &mut State, insn: &Insn, callee: Callee, next: usize) -> Result<Next, GiveUp> {
        match callee {
            Callee::Helper(Helper::TAIL_CALL) => self.tail_call(state, next),
            Callee::Helper(id) => self.helper(state, id, next),
            Callee::Subprogram(_) => {
                let target =
                    insn.subprogram_target(state.slot).and_then(|target| usize::try_from(target).ok());
                let target = target.ok_or(GiveUp::Instruction("a call outside of the program"))?;
                self.enter(state, target, next, None);
                Ok(Next::On)
            }
            Callee::Kfunc { btf_id, .. } => {
                let kfunc = self.verified.program().kfunc(btf_id);
                Err(GiveUp::Kfunc(kfunc.map_or("a kernel function", |kfunc| kfunc.name)))
            }
        }
    }

    /// The number in a register.
    pub(crate) fn number(&self, state: &State, reg: Reg) -> Result<Term, GiveUp> {
        number_of(Self::register(state, reg))
    }

    pub(crate) fn operand(&mut self, state: &State, src: Operand) -> Value {
        match src {
            Operand::Reg(reg) => Self::register(state, reg),
            Operand::Imm(imm) => Value::Number(self.terms.constant(64, imm as u64)),
        }
    }

    fn alu(
        &mut self,
        state: &mut State,
        width: Width,
        op: AluOp,
        dst: Reg,
        src: Operand,
    ) -> Result<(), GiveUp> {
        let right = self.operand(state, src);
        let left = Self::register(state, dst);
        let result = match (op, left, right) {
            (AluOp::Mov, _, value) if width == Width::W64 => value,
            (AluOp::Mov, _, value) => {
                let number = self.as_number(value)?;
                Value::Number(alu::alu(&mut self.terms, width, AluOp::Mov, number, number))
            }
            (_, Value::Number(a), Value::Number(b)) => {
                let number = alu::alu(&mut self.terms, width, op, a, b);
                Value::Number(if op == AluOp::Mul { self.product(number) } else { number })
            }
            (AluOp::Add, Value::Pointer(pointer), Value::Number(by))
            | (AluOp::Add, Value::Number(by), Value::Pointer(pointer))
                if width == Width::W64 =>
            {
                Value::Pointer(Pointer { offset: self.terms.add(pointer.offset, by), ..pointer })
            }
            (AluOp::Sub, Value::Pointer(pointer), Value::Number(by)) if width == Width::W64 => {
                Value::Pointer(Pointer { offset: self.terms.sub(pointer.offset, by), ..pointer })
            }
            // Also of 32 bits: the low bits of a difference are those of the addresses' difference.
            (AluOp::Sub, Value::Pointer(a), Value::Pointer(b)) if a.region == b.region => {
                Value::Number(alu::alu(&mut self.terms, width, AluOp::Sub, a.offset, b.offset))
            }
            (op, left, right) => {
                let (a, b) = (self.as_number(left)?, self.as_number(right)?);
                Value::Number(alu::alu(&mut self.terms, width, op, a, b))
            }
        };
        Self::set(state, dst, result);
        Ok(())
    }

    /// A value as a number; addresses of regions are unknown.
    pub(crate) fn as_number(&mut self, value: Value) -> Result<Term, GiveUp> {
        let Value::Pointer(pointer) = value else { return number_of(value) };
        if self.twin.is_some() && pointer.region != Region::Packet {
            // Two programs have other addresses, but get one packet.
            return Err(GiveUp::Address);
        }
        let region = match pointer.region {
            Region::Context => 0,
            Region::Packet => 1,
            Region::Stack(frame) => 2 + frame,
            Region::Object(object) => 64 + object,
            // There are such values where programs are compared alone.
            Region::Fixed(_) => return Err(GiveUp::Address),
        };
        let start = self.sources.term(&mut self.terms, Source::Address(region));
        Ok(self.terms.add(start, pointer.offset))
    }

    fn immediate(&mut self, state: &mut State, value: Imm64, slot: usize) -> Result<Value, GiveUp> {
        match value {
            Imm64::Value(value) => Ok(Value::Number(self.terms.constant(64, value))),
            Imm64::MapIndex(index) => Ok(Value::Map(usize::try_from(index).unwrap_or(usize::MAX))),
            Imm64::MapValueIndex { index, offset } => {
                let map = usize::try_from(index).unwrap_or(usize::MAX);
                let region = self.only_value(state, map)?;
                let offset = self.terms.constant(64, u64::from(offset));
                Ok(Value::Pointer(Pointer { region, offset }))
            }
            Imm64::Code { offset } => {
                let start = slot as i64 + 1 + i64::from(offset);
                Ok(Value::Code(usize::try_from(start).unwrap_or(usize::MAX)))
            }
            Imm64::Variable { .. } => Err(GiveUp::Instruction("a variable of the kernel")),
            Imm64::MapFd(_) | Imm64::MapValueFd { .. } => Err(GiveUp::Instruction("a map by its descriptor")),
        }
    }

    /// The condition of a jump.
    pub(crate) fn condition(
        &mut self,
        state: &mut State,
        width: Width,
        condition: Condition,
        dst: Reg,
        src: Operand,
    ) -> Result<Term, GiveUp> {
        let (left, right) = (Self::register(state, dst), self.operand(state, src));
        match (left, right) {
            (Value::Number(a), Value::Number(b)) => Ok(alu::compare(&mut self.terms, width, condition, a, b)),
            (Value::Pointer(a), Value::Pointer(b)) if a.region == b.region && width == Width::W64 => {
                Ok(self.compare_offsets(condition, a.offset, b.offset))
            }
            // The low bits of addresses are equal where those of the offsets are.
            (Value::Pointer(a), Value::Pointer(b))
                if a.region == b.region && matches!(condition, Condition::Eq | Condition::Ne) =>
            {
                Ok(alu::compare(&mut self.terms, width, condition, a.offset, b.offset))
            }
            // No pointer is null, and compilers compare the low half alone of those that the context has: it is taken for not zero too.
            (Value::Pointer(_) | Value::Map(_), Value::Number(b)) if self.terms.value(b) == Some(0) => {
                if width == Width::W32 {
                    self.assume(Assumption::Addresses);
                }
                match condition {
                    Condition::Eq | Condition::Le | Condition::Lt | Condition::Set => {
                        Ok(self.terms.bool(false))
                    }
                    Condition::Ne | Condition::Gt | Condition::Ge => Ok(self.terms.bool(true)),
                    _ => Err(GiveUp::Address),
                }
            }
            (Value::Pointer(pointer), Value::Number(number))
                if width == Width::W64 && self.is_far(pointer, number) =>
            {
                self.assume(Assumption::Addresses);
                let is_low = self.terms.value(number).is_some_and(|number| number < NO_MEMORY);
                match condition {
                    Condition::Eq => Ok(self.terms.bool(false)),
                    Condition::Ne => Ok(self.terms.bool(true)),
                    Condition::Gt | Condition::Ge => Ok(self.terms.bool(is_low)),
                    Condition::Lt | Condition::Le => Ok(self.terms.bool(!is_low)),
                    // With signs, addresses of the kernel are negative, and others are not.
                    _ => Err(GiveUp::Address),
                }
            }
            // Also of other regions: one may begin where another one ends.
            (left, right) => {
                let (a, b) = (self.as_number(left)?, self.as_number(right)?);
                Ok(alu::compare(&mut self.terms, width, condition, a, b))
            }
        }
    }

    /// Whether a number is so low, or so high, that no address near the start of a region is: those are not in the first and last 64 KiB of the
    /// address space, where null pointers with an offset and error numbers are.
    fn is_far(&self, pointer: Pointer, number: Term) -> bool {
        let offset = self.terms.value(pointer.offset).map(u64::cast_signed);
        // Bytes before the start of a region are those of stacks and of the headroom.
        let is_near = offset.is_some_and(|offset| offset.unsigned_abs() < NO_MEMORY / 2);
        let number = self.terms.value(number).map(u64::cast_signed);
        is_near && number.is_some_and(|number| (-NUMBERS..NUMBERS).contains(&number))
    }

    /// Addresses of one region are ordered as the offsets with their signs.
    fn compare_offsets(&mut self, condition: Condition, a: Term, b: Term) -> Term {
        let condition = match condition {
            Condition::Gt => Condition::SGt,
            Condition::Ge => Condition::SGe,
            Condition::Lt => Condition::SLt,
            Condition::Le => Condition::SLe,
            other => other,
        };
        alu::compare(&mut self.terms, Width::W64, condition, a, b)
    }

    /// Takes the side of a conditional jump that the model says, and keeps the other one for later; `next` is where the path falls through
    /// to, and where it jumps to.
    fn branch(&mut self, state: &mut State, condition: Term, next: (usize, usize)) -> Result<Next, GiveUp> {
        let slot = state.slot;
        let holds = state.assignment.value(&self.terms, condition) == 1;
        if self.terms.value(condition).is_none() {
            let not = self.terms.not(condition);
            let (here, there) = if holds { (condition, not) } else { (not, condition) };
            self.other_side(state, there, Side { slot, taken: !holds }, if holds { next.0 } else { next.1 });
            state.path.push(here);
        }
        let side = Side { slot, taken: holds };
        self.take(state, side, if holds { next.1 } else { next.0 })?;
        self.reach(state, side.into());
        // Nothing that is looked for comes after it.
        Ok(if self.distance(state) == crate::symbolic::flow::FAR { Next::End } else { Next::On })
    }

    /// Moves a state to a side of a branch.
    fn take(&mut self, state: &mut State, side: Side, slot: usize) -> Result<(), GiveUp> {
        self.round(state, side)?;
        state.slot = slot;
        state.taken = Some(Rc::new(Taken { side, before: state.taken.take() }));
        Ok(())
    }

    /// Counts a round of a loop.
    fn round(&mut self, state: &mut State, side: Side) -> Result<(), GiveUp> {
        let most = self.options.rounds;
        let rounds = Rc::make_mut(&mut state.rounds).entry(side).or_default();
        *rounds += 1;
        if *rounds > 1 {
            state.cost += 1;
        }
        if *rounds > most { Err(GiveUp::Rounds) } else { Ok(()) }
    }

    /// The other side of a branch: solved at once if it is looked for, otherwise kept for later.
    fn other_side(&mut self, state: &State, condition: Term, side: Side, slot: usize) {
        if !self.open.contains(&side.into()) {
            let mut other = state.clone();
            if let Err(why) = self.take(&mut other, side, slot) {
                return self.leave(state, why);
            }
            return self.fork(&other, condition, 0);
        }
        match self.ask(&state.path, &state.assignment.model, condition) {
            Answer::Sat(model) => {
                let mut other = state.clone();
                other.path.push(condition);
                other.assignment = Assignment::new(model);
                match self.take(&mut other, side, slot) {
                    Ok(()) => {
                        self.reach(&other, side.into());
                        self.keep(other);
                    }
                    Err(why) => self.leave(state, why),
                }
            }
            Answer::Unsat => {}
            // At the jump, from which the side is reached when it is taken up.
            Answer::Unknown(_) => self.put_off_unchecked(state, condition),
        }
    }

    /// Enters a function, whose arguments are in the registers.
    pub(crate) fn enter(
        &mut self,
        state: &mut State,
        start: usize,
        return_to: usize,
        callback: Option<Callback>,
    ) {
        let saved = [6, 7, 8, 9].map(|index| state.registers[index]);
        state.frames.push(Frame {
            stack: Rc::default(),
            saved,
            return_to,
            callback,
            at: start,
            rounds: Vec::new(),
        });
        let zero = self.terms.constant(64, 0);
        let region = Region::Stack(state.frames.len() - 1);
        state.registers[10] = Value::Pointer(Pointer { region, offset: zero });
        // Rounds are counted for each call.
        let end = self.verified.functions().iter().find(|f| f.start == start).map_or(start, |f| f.end);
        Rc::make_mut(&mut state.rounds).retain(|side, _| !(start..end).contains(&side.slot));
        state.slot = start;
    }

    fn exit(&mut self, state: &mut State) -> Result<Next, GiveUp> {
        if state.frames.len() == 1 {
            self.returns(state)?;
            self.end(state);
            return self.ended(state);
        }
        if state.frames.last().is_some_and(|frame| frame.callback.is_some()) {
            return self.after_round(state);
        }
        self.leave_function(state);
        Ok(Next::On)
    }

    /// Leaves a function for its caller.
    pub(crate) fn leave_function(&mut self, state: &mut State) {
        let Some(frame) = state.frames.pop() else { return };
        for (index, value) in (6..).zip(frame.saved) {
            state.registers[index] = value;
        }
        let zero = self.terms.constant(64, 0);
        let region = Region::Stack(state.frames.len().saturating_sub(1));
        state.registers[10] = Value::Pointer(Pointer { region, offset: zero });
        clear_arguments(state);
        state.slot = frame.return_to;
    }

    fn atomic(
        &mut self,
        state: &mut State,
        width: Width,
        op: AtomicOp,
        (base, offset): (Reg, i16),
        src: Reg,
    ) -> Result<(), GiveUp> {
        let size = if width == Width::W32 { Size::W } else { Size::Dw };
        let old = number_of(self.load(state, base, offset, size)?)?;
        let operand = self.number(state, src)?;
        let (alu_op, fetches) = match op {
            AtomicOp::Add { fetch } => (AluOp::Add, fetch),
            AtomicOp::Or { fetch } => (AluOp::Or, fetch),
            AtomicOp::And { fetch } => (AluOp::And, fetch),
            AtomicOp::Xor { fetch } => (AluOp::Xor, fetch),
            AtomicOp::Xchg => (AluOp::Mov, true),
            AtomicOp::CmpXchg => {
                let expected = self.number(state, Reg::R0)?;
                let equal = alu::compare(&mut self.terms, width, Condition::Eq, old, expected);
                let new = self.terms.ite(equal, operand, old);
                self.store(state, base, offset, size, Value::Number(new))?;
                Self::set(state, Reg::R0, Value::Number(old));
                return Ok(());
            }
        };
        let new = alu::alu(&mut self.terms, width, alu_op, old, operand);
        self.store(state, base, offset, size, Value::Number(new))?;
        if fetches {
            Self::set(state, src, Value::Number(old));
        }
        Ok(())
    }
}

/// The number that a value is.
pub(crate) fn number_of(value: Value) -> Result<Term, GiveUp> {
    match value {
        Value::Number(term) => Ok(term),
        _ => Err(GiveUp::Address),
    }
}

/// Calls leave nothing in the registers of arguments.
pub(crate) fn clear_arguments(state: &mut State) {
    state.registers[1..=5].fill(Value::Unset);
}

fn target(insn: &Insn, slot: usize) -> Result<usize, GiveUp> {
    let target = insn.jump_target(slot).and_then(|target| usize::try_from(target).ok());
    target.ok_or(GiveUp::Instruction("a jump outside of the program"))
}
