//! The walk over a program that makes a slice's steps.
//!
//! Each point is visited once, when all paths to it have been: points are visited in their order, and a slice has no jumps back.

use std::collections::BTreeMap;

use paceline_isa::{AluOp, Callee, Code, Condition, Imm64, Insn, Operand, Reg, RegSet, Size, Width};
use paceline_spec::ProgramKind;
use paceline_spec::context::FieldKind;
use paceline_spec::helper::{Arg, Helper, HelperId};

use crate::slice::distance::Distance;
use crate::slice::functions::Functions;
use crate::slice::look_ups::{LookUps, MAX_LOOK_UPS};
use crate::slice::state::State;
use crate::slice::step::{End, Key, Op, Step, Test};
use crate::slice::value::{At, Value};

/// Most points that are visited: beyond them the slice ends.
const MAX_POINTS: usize = 1024;
/// Most calls that are inlined into each other (`MAX_CALL_FRAMES`).
const MAX_DEPTH: usize = 8;

/// A place in the program: the slots of the calls that lead there, the outermost first, and its own. The order of points is that of a run
/// without jumps back: a callee's points come after the call and before the next instruction.
type Point = Vec<usize>;

/// A point where the walk goes on.
struct Pending {
    /// The innermost call.
    call: usize,
    state: State,
}

/// A call that is inlined; the first is the program's own.
struct Call {
    /// The frame of its function.
    frame: usize,
    /// Where its function returns to.
    returns: Option<Return>,
}

#[derive(Clone)]
struct Return {
    to: Point,
    /// The caller.
    call: usize,
    /// What `r6` to `r9` had, and where each is saved that the callee changes.
    registers: [(Reg, Value, Option<At>); 4],
}

/// Where a point leads.
enum Leads {
    Goto(Option<Point>),
    Branch { test: Test, taken: Option<Point>, otherwise: Option<Point> },
}

struct Trace<'a> {
    code: &'a Code,
    kind: ProgramKind,
    maps: &'a [LookUps],
    distance: Distance,
    functions: Functions,
    pending: BTreeMap<Point, Pending>,
    calls: Vec<Call>,
    frames: usize,
}

/// The steps of the slice, in the order of their points.
pub(crate) fn trace(code: &Code, kind: ProgramKind, maps: &[LookUps]) -> Vec<Step> {
    let mut trace = Trace {
        code,
        kind,
        maps,
        distance: Distance::of(code, maps),
        functions: Functions::of(code),
        pending: BTreeMap::from([(vec![0], Pending { call: 0, state: State::entry() })]),
        calls: vec![Call { frame: 0, returns: None }],
        frames: 1,
    };
    let mut visited: BTreeMap<Point, usize> = BTreeMap::new();
    let mut made: Vec<(Vec<Op>, Leads)> = Vec::new();
    while made.len() < MAX_POINTS
        && let Some((point, Pending { call, state })) = trace.pending.pop_first()
    {
        let mut ops = Vec::new();
        let leads = trace.visit(&point, call, state, &mut ops);
        visited.insert(point, made.len());
        made.push((ops, leads));
    }
    let index = |point: Option<Point>| point.and_then(|point| visited.get(&point).copied());
    let step = |(ops, leads)| {
        let end = match leads {
            Leads::Goto(point) => End::Goto(index(point)),
            Leads::Branch { test, taken, otherwise } => {
                End::Branch { test, taken: index(taken), otherwise: index(otherwise) }
            }
        };
        Step { ops, end }
    };
    made.into_iter().map(step).collect()
}

/// The point in the same function at another slot.
fn at_slot(point: &Point, slot: usize) -> Point {
    let mut point = point.clone();
    if let Some(last) = point.last_mut() {
        *last = slot;
    }
    point
}

/// What the slice does about an instruction.
enum Effect {
    /// The slice goes on behind it.
    Done,
    /// The slice ends before it.
    Ends,
}

impl Trace<'_> {
    /// Visits a point: appends the slice's operations.
    fn visit(&mut self, point: &Point, call: usize, mut state: State, ops: &mut Vec<Op>) -> Leads {
        // A slice may end anywhere.
        let Some(&slot) = point.last() else { return Leads::Goto(None) };
        let Some(&insn) = self.code.get(slot) else { return Leads::Goto(None) };
        let next = slot + insn.slots();
        match insn {
            Insn::Exit => return self.leave(call, state, ops),
            Insn::Jump { .. } | Insn::JumpLong { .. } => {
                let target = self.go(point, call, state, insn.jump_target(slot));
                return Leads::Goto(target);
            }
            Insn::JumpIf { width, condition, dst, src, .. } => {
                return self.branch(
                    point,
                    call,
                    state,
                    Test { width, condition, dst, src },
                    insn.jump_target(slot),
                );
            }
            Insn::Call(Callee::Subprogram(_)) => {
                return Leads::Goto(self.enter(point, call, &state, insn, ops));
            }
            _ => {}
        }
        match self.compute(&mut state, insn, ops) {
            Effect::Done => Leads::Goto(self.go(point, call, state, Some(next as i64))),
            Effect::Ends => Leads::Goto(None),
        }
    }

    /// Leads to a slot of the same function; nowhere if that is a jump back.
    fn go(&mut self, point: &Point, call: usize, state: State, target: Option<i64>) -> Option<Point> {
        let target = target.and_then(|target| usize::try_from(target).ok())?;
        if Some(&target) <= point.last() {
            return None;
        }
        let target = at_slot(point, target);
        self.wait(target.clone(), call, state);
        Some(target)
    }

    fn wait(&mut self, point: Point, call: usize, state: State) {
        match self.pending.get_mut(&point) {
            Some(pending) => pending.state.join(&state),
            None => drop(self.pending.insert(point, Pending { call, state })),
        }
    }

    fn branch(&mut self, point: &Point, call: usize, state: State, test: Test, target: Option<i64>) -> Leads {
        let (a, b) = (state.get(test.dst), state.operand(test.src));
        let after = point.last().map(|&slot| slot as i64 + 1);
        if a.is_held() && b.is_held() {
            let taken = self.go(point, call, state.clone(), target);
            let otherwise = self.go(point, call, state, after);
            return Leads::Branch { test, taken, otherwise };
        }
        let (jump, fall) =
            (target.map_or(0, |slot| self.distance.at(slot)), after.map_or(0, |slot| self.distance.at(slot)));
        let jumps_if_found =
            a == Value::Found && test.src == Operand::Imm(0) && test.condition == Condition::Ne;
        let jumps = jump > fall || jump == fall && jumps_if_found;
        Leads::Goto(self.go(point, call, state, if jumps { target } else { after }))
    }

    /// Inlines a call.
    fn enter(
        &mut self,
        point: &Point,
        call: usize,
        state: &State,
        insn: Insn,
        ops: &mut Vec<Op>,
    ) -> Option<Point> {
        let slot = point.last().copied()?;
        let start = insn.subprogram_target(slot).and_then(|target| usize::try_from(target).ok())?;
        if point.len() >= MAX_DEPTH {
            return None;
        }
        let (frame, saves) = (self.frames, self.frames + 1);
        self.frames += 2;
        let changed = self.functions.changed_by(start);
        let registers = [Reg::R6, Reg::R7, Reg::R8, Reg::R9].map(|reg| {
            let value = state.get(reg);
            let at = At { frame: saves, offset: -8 * (i32::from(reg.number()) - 5) };
            let saved = (changed.contains(reg) && value.is_held()).then_some(at);
            (reg, value, saved)
        });
        for (reg, _, saved) in registers {
            if let Some(at) = saved {
                ops.push(Op::Store { size: Size::Dw, at, src: Operand::Reg(reg) });
            }
        }
        let returns = Return { to: at_slot(point, slot + 1), call, registers };
        self.calls.push(Call { frame, returns: Some(returns) });
        let mut inner = state.clone();
        for reg in RegSet::CALLEE_SAVED.with(Reg::R0).iter() {
            inner.set(reg, Value::Unknown);
        }
        inner.set(Reg::R10, Value::Stack(At { frame, offset: 0 }));
        let mut entry = point.clone();
        entry.push(start);
        self.wait(entry.clone(), self.calls.len() - 1, inner);
        Some(entry)
    }

    /// Returns from the function of a call.
    fn leave(&mut self, call: usize, mut state: State, ops: &mut Vec<Op>) -> Leads {
        let Some(Return { to, call: caller, registers }) =
            self.calls.get(call).and_then(|call| call.returns.clone())
        else {
            return Leads::Goto(None);
        };
        for (reg, value, saved) in registers {
            state.set(reg, value);
            if let Some(at) = saved {
                ops.push(Op::Load { size: Size::Dw, signed: false, dst: reg, at });
            }
        }
        RegSet::ARGUMENTS.iter().for_each(|reg| state.set(reg, Value::Unknown));
        let frame = self.calls.get(caller).map_or(0, |call| call.frame);
        state.set(Reg::R10, Value::Stack(At { frame, offset: 0 }));
        self.wait(to.clone(), caller, state);
        Leads::Goto(Some(to))
    }

    /// An instruction without control flow.
    fn compute(&self, state: &mut State, insn: Insn, ops: &mut Vec<Op>) -> Effect {
        let mut emit = |is_held: bool, op: Op| {
            if is_held {
                ops.push(op);
            }
        };
        match insn {
            Insn::Alu { width, op, dst, src } => {
                let value = alu(width, op, state.get(dst), state.operand(src), src);
                state.set(dst, value);
                emit(value.is_held(), Op::Insn(insn));
            }
            Insn::Neg { dst, .. } | Insn::Swap { dst, .. } | Insn::MovSx { dst, .. } => {
                let is_number = insn.reads().iter().all(|reg| state.get(reg) == Value::Number);
                state.set(dst, if is_number { Value::Number } else { Value::Unknown });
                emit(is_number, Op::Insn(insn));
            }
            Insn::LoadImm64 { dst, value } => {
                let value = match value {
                    Imm64::Value(_) => Value::Number,
                    Imm64::MapIndex(index) => usize::try_from(index).map_or(Value::Unknown, Value::Map),
                    Imm64::MapValueIndex { .. } => Value::Global,
                    _ => Value::Unknown,
                };
                state.set(dst, value);
                emit(value.is_held(), Op::Insn(insn));
            }
            Insn::Load { size, signed, dst, base, offset } => {
                let bytes = size.bytes() as i32;
                let (value, op) = match state.get(base) {
                    Value::Stack(at) => {
                        let at = at.plus(offset.into());
                        (state.load(at, bytes), Op::Load { size, signed, dst, at })
                    }
                    Value::Context(moved) => (self.field(moved, offset, bytes), Op::Insn(insn)),
                    Value::Packet | Value::Global => (Value::Number, Op::Insn(insn)),
                    _ => (Value::Unknown, Op::Insn(insn)),
                };
                state.set(dst, value);
                emit(value.is_held(), op);
            }
            Insn::Store { size, base, offset, src } => {
                if let Value::Stack(at) = state.get(base) {
                    let at = at.plus(offset.into());
                    let is_held = state.store(at, size.bytes() as i32, state.operand(src));
                    emit(is_held, Op::Store { size, at, src });
                }
            }
            Insn::Atomic { width, base, offset, .. } => {
                if let Value::Stack(at) = state.get(base) {
                    let bytes = if width == Width::W32 { 4 } else { 8 };
                    state.store(at.plus(offset.into()), bytes, Value::Unknown);
                }
                insn.writes().iter().for_each(|reg| state.set(reg, Value::Unknown));
            }
            Insn::LoadAcquire { dst, .. } => state.set(dst, Value::Unknown),
            Insn::StoreRelease { size, base, offset, .. } => {
                if let Value::Stack(at) = state.get(base) {
                    state.store(at.plus(offset.into()), size.bytes() as i32, Value::Unknown);
                }
            }
            Insn::Call(Callee::Helper(id)) => return self.helper(state, id, ops),
            _ => return Effect::Ends,
        }
        Effect::Done
    }

    /// The value of a field of the context.
    fn field(&self, moved: i32, offset: i16, bytes: i32) -> Value {
        // default: no field is there, and the value is unknown.
        let start = u64::try_from(moved.saturating_add(offset.into())).unwrap_or(u64::MAX);
        let field = self.kind.context_field(start, u64::from(bytes.cast_unsigned()), false);
        field.map_or(Value::Unknown, |field| match field.kind {
            FieldKind::PacketData | FieldKind::PacketMeta => Value::Packet,
            FieldKind::PacketEnd => Value::PacketEnd,
            FieldKind::Number => Value::Number,
        })
    }

    fn helper(&self, state: &mut State, id: i32, ops: &mut Vec<Op>) -> Effect {
        let Some(helper) = Helper::from_imm(id) else { return Effect::Ends };
        let Some(prototype) = helper.prototype else { return Effect::Ends };
        let result = if helper.id == HelperId::MapLookupElem {
            if state.look_ups == MAX_LOOK_UPS {
                return Effect::Ends;
            }
            if let Some(look_up) = self.look_up(state) {
                ops.push(look_up);
                state.look_ups += 1;
            }
            Value::Found
        } else {
            let written = Reg::ALL.iter().skip(1).zip(prototype.args).any(|(&reg, &arg)| {
                is_written(arg) && matches!(state.get(reg), Value::Stack(_) | Value::Unknown)
            });
            let jumps = helper.id == HelperId::TailCall || helper.callback().is_some();
            if written || jumps || prototype.moves_packet {
                return Effect::Ends;
            }
            Value::Unknown
        };
        RegSet::CALLER_SAVED.iter().for_each(|reg| state.set(reg, Value::Unknown));
        state.set(Reg::R0, result);
        Effect::Done
    }

    /// A look-up in a map of interest whose key is known.
    fn look_up(&self, state: &State) -> Option<Op> {
        let Value::Map(map) = state.get(Reg::R1) else { return None };
        let LookUps::Ahead { key_size } = *self.maps.get(map)? else { return None };
        let key = match state.get(Reg::R2) {
            Value::Stack(at) => state.has(at, i32::try_from(key_size).ok()?).then_some(Key::Stack(at))?,
            Value::Packet | Value::Global => Key::Register,
            _ => return None,
        };
        Some(Op::LookUp { map, key })
    }
}

/// Whether a helper writes to an argument's memory.
fn is_written(arg: Arg) -> bool {
    !matches!(
        arg,
        Arg::Scalar
            | Arg::Unchecked
            | Arg::Context
            | Arg::Map
            | Arg::MapKey
            | Arg::MapValue
            | Arg::ReadMem
            | Arg::ReadMemOrNull
            | Arg::ReadBytes(_)
            | Arg::Text
            | Arg::Size
            | Arg::SizeOrZero
            | Arg::RecordSize
            | Arg::SpinLock
            | Arg::HeldSpinLock
    )
}

/// The result of an operation.
fn alu(width: Width, op: AluOp, a: Value, b: Value, src: Operand) -> Value {
    use Value::{Context, Global, Number, Packet, PacketEnd, Stack, Unknown};
    let moved = |by: i32| if op == AluOp::Sub { by.checked_neg() } else { Some(by) };
    match (op, width, a, b) {
        (AluOp::Mov, Width::W64, _, value) => value,
        (AluOp::Mov, Width::W32, _, Number) | (_, _, Number, Number) => Number,
        (AluOp::Add | AluOp::Sub, Width::W64, Stack(_) | Context(_), Number) => match (a, src) {
            (Stack(at), Operand::Imm(by)) => moved(by).and_then(|by| at.moved(by)).map_or(Unknown, Stack),
            (Context(at), Operand::Imm(by)) => moved(by).map_or(Unknown, |by| Context(at.saturating_add(by))),
            _ => Unknown,
        },
        (AluOp::Add | AluOp::Sub, Width::W64, Packet | Global, Number) => a,
        (AluOp::Add, Width::W64, Number, Packet | Global) => b,
        (AluOp::Sub, Width::W64, Packet | PacketEnd, Packet | PacketEnd) => Number,
        _ => Unknown,
    }
}
