//! Calls of functions of the program, and returns.

use paceline_isa::{Callee, Insn, Reg, RegSet};

use super::memory::describe;
use crate::cfg::ControlFlow;
use crate::domain::Number;
use crate::error::{Cause, Check, Hint, Refusal, broken, broken_with};
use crate::facts::{FunctionFact, is_tail_call};
use crate::state::{Frame, Lost, MAX_STACK, Target, Value};
use crate::walk::{Next, Root, Walk};

/// Most calls that may be active (`MAX_CALL_FRAMES`).
const MAX_FRAMES: usize = 8;

/// Stack that may be used before a call that leads to a tail call (`check_max_stack_depth_subprog`).
const MAX_STACK_BEFORE_TAIL_CALL: u32 = 256;

impl Walk<'_> {
    pub(super) fn call(&mut self, insn: &Insn, callee: Callee) -> Check<Next> {
        self.check_call_with_lock(callee)?;
        match callee {
            Callee::Helper(id) => {
                let next = self.call_helper(id)?;
                if is_tail_call(insn) { self.tail_called() } else { Ok(next) }
            }
            Callee::Subprogram(_) => {
                let target =
                    insn.subprogram_target(self.slot).and_then(|target| usize::try_from(target).ok());
                let function = target.and_then(|target| self.flow.function_starting(target));
                let Some((target, function)) = target.zip(function) else {
                    return broken(Cause::CallOutOfRange { target: target.map_or(-1, |t| t as i64) });
                };
                if self.flow.functions.get(function).is_some_and(|f| f.is_global) {
                    self.check_no_lock("the call of a global function")?;
                    self.call_global(function)?;
                    return Ok(Next::Go(self.slot + 1));
                }
                self.enter(function)?;
                Ok(Next::Go(target))
            }
            Callee::Kfunc { btf_id, .. } => self.call_kfunc(btf_id),
        }
    }

    /// A tail call that fails goes on. One that succeeds ends the program, or in a function returns to its caller, when
    /// the other program has moved the packet and returned whatever it wanted.
    fn tail_called(&mut self) -> Check<Next> {
        self.may_return(|walk| {
            walk.forget_packet();
            walk.return_number();
        })
    }

    /// An instruction goes on with the next one, or it ends the function in the state that `change` makes of this one.
    /// The program's end takes any number, and nothing is held here.
    pub(super) fn may_return(&mut self, change: impl FnOnce(&mut Self)) -> Check<Next> {
        let next = self.slot + 1;
        if self.state.depth() == 0 {
            return Ok(Next::Go(next));
        }
        let going_on = self.state.clone();
        change(self);
        let Next::Go(target) = self.leave()? else { return Ok(Next::Go(next)) };
        let waiting = Box::new(std::mem::replace(&mut self.state, going_on));
        Ok(Next::Both { next, target, waiting })
    }

    /// A frame for a call at this slot.
    pub(super) fn new_frame(&mut self, function: usize) -> Check<Frame> {
        let depth = self.state.depth() + 1;
        if depth >= MAX_FRAMES {
            return broken(Cause::CallDepth(depth + 1));
        }
        let mut frame = Frame::new(function, self.slot, depth as u8);
        frame.may_goto.id = self.new_id();
        Ok(frame)
    }

    /// Enters a static function: its code is walked again at each call, with the state of the caller.
    fn enter(&mut self, function: usize) -> Check {
        let mut frame = self.new_frame(function)?;
        for reg in RegSet::ARGUMENTS.iter() {
            frame.set(reg, self.state.get(reg));
        }
        self.forget_caller_saved();
        self.state.push(frame);
        Ok(())
    }

    /// After a call nobody knows what these registers hold.
    pub(super) fn forget_caller_saved(&mut self) {
        let frame = self.state.top_mut();
        for reg in RegSet::CALLER_SAVED.iter() {
            frame.set(reg, Value::Unset);
        }
    }

    /// All pointers into the packet are worthless once it may have moved; as numbers they may still be looked at.
    pub(super) fn forget_packet(&mut self) {
        let slot = self.slot;
        // What dynptrs point to is the packet.
        let is_packet = |value: &Value| {
            value.pointer().is_some_and(|p| {
                p.is_packet() || matches!(p.target, Target::PacketEnd | Target::Slice { .. })
            })
        };
        self.state.update(is_packet, |value| *value = Value::stale(slot, Lost::Packet));
        self.note_packet_moved();
    }

    pub(super) fn exit(&mut self) -> Check<Next> {
        if self.state.depth() > 0 {
            return self.leave();
        }
        self.check_no_lock("the end of the program")?;
        self.check_nothing_held()?;
        let result = self.read(Reg::R0)?;
        match self.root {
            Root::Timer { .. } => self.check_timer_return(&result)?,
            Root::Global(_) if result.scalar().is_none() => {
                return broken(Cause::GlobalReturn(describe(&result)));
            }
            Root::Main | Root::Global(_) => {}
        }
        Ok(Next::End)
    }

    /// What was acquired must be given back before the program ends.
    pub(super) fn check_nothing_held(&self) -> Check {
        match self.state.references.first() {
            Some(reference) => broken_with(Cause::Leak { slot: reference.slot as usize }, Hint::Release),
            None => Ok(()),
        }
    }

    fn leave(&mut self) -> Check<Next> {
        let result = self.state.get(Reg::R0);
        if result.pointer().is_some_and(|p| matches!(p.target, Target::Stack { .. })) {
            return broken(Cause::StackPointerReturned);
        }
        if self.state.top().is_callback {
            return self.leave_callback(&result);
        }
        let Some(frame) = self.state.pop() else { return Ok(Next::End) };
        self.state.set(Reg::R0, result);
        self.lose_buffers();
        Ok(Next::Go(frame.call_slot + 1))
    }

    /// The result of a helper or a global function that gives any number.
    pub(super) fn return_number(&mut self) {
        self.state.set(Reg::R0, Value::number(Number::UNKNOWN));
    }
}

/// Checks the stack that chains of calls use together (`check_max_stack_depth`).
pub(crate) fn check_stack_depth(
    code: &paceline_isa::Code,
    flow: &ControlFlow,
    functions: &[FunctionFact],
    walked: &[Root],
) -> Result<(), Box<Refusal>> {
    let is_later =
        |function| walked.iter().any(|r| matches!(r, Root::Timer { function: f, .. } if *f == function));
    // What a timer calls has a stack to itself.
    let calls_now = |insn: &Insn, callee| insn.is_call() || !is_later(callee);
    let calls: Vec<Vec<(usize, usize)>> =
        functions.iter().map(|f| calls_of(code, flow, f, calls_now)).collect();
    let has_tail_call = reaching_tail_calls(functions, &calls);
    let mut chain = Chain { functions, calls: &calls, has_tail_call: &has_tail_call };
    let roots = flow.functions.iter().enumerate().filter(|(i, f)| *i == 0 || f.is_global || is_later(*i));
    for (root, _) in roots {
        chain.check(root, 0, 1, None)?;
    }
    Ok(())
}

struct Chain<'a> {
    functions: &'a [FunctionFact],
    calls: &'a [Vec<(usize, usize)>],
    has_tail_call: &'a [bool],
}

impl Chain<'_> {
    fn check(
        &mut self,
        function: usize,
        before: u32,
        frames: usize,
        call: Option<usize>,
    ) -> Result<(), Box<Refusal>> {
        let Some(fact) = self.functions.get(function) else { return Ok(()) };
        let slot = call.unwrap_or(fact.start);
        let refuse = |cause, hint| Err(Box::new(Refusal { hint, ..*Refusal::at(slot, cause) }));
        if frames > 1 && before >= MAX_STACK_BEFORE_TAIL_CALL && self.has_tail_call[function] {
            return refuse(Cause::TailCallStack(before), Some(Hint::StackTooDeep));
        }
        let bytes = before + fact.stack.next_multiple_of(16);
        if bytes > MAX_STACK {
            return refuse(Cause::StackDepth { frames, bytes }, Some(Hint::StackTooDeep));
        }
        if frames > MAX_FRAMES {
            return refuse(Cause::CallDepth(frames), None);
        }
        let Some(calls) = self.calls.get(function) else { return Ok(()) };
        calls.iter().try_for_each(|&(slot, callee)| self.check(callee, bytes, frames + 1, Some(slot)))
    }
}

/// The functions that a function calls, with the slots of the calls; each callee once.
fn calls_of(
    code: &paceline_isa::Code,
    flow: &ControlFlow,
    function: &FunctionFact,
    calls_now: impl Fn(&Insn, usize) -> bool,
) -> Vec<(usize, usize)> {
    let mut calls: Vec<(usize, usize)> = Vec::new();
    for slot in function.start..function.end {
        let Some(insn) = code.get(slot) else { continue };
        let target = insn.subprogram_target(slot).and_then(|target| usize::try_from(target).ok());
        if let Some(callee) = target.and_then(|target| flow.function_starting(target))
            && calls_now(insn, callee)
            && calls.iter().all(|&(_, known)| known != callee)
        {
            calls.push((slot, callee));
        }
    }
    calls
}

/// For each function whether it or something it calls has a tail call.
fn reaching_tail_calls(functions: &[FunctionFact], calls: &[Vec<(usize, usize)>]) -> Vec<bool> {
    let mut reaching: Vec<bool> = functions.iter().map(|f| f.tail_calls).collect();
    // Each round carries it one call further out; no chain is longer than the number of functions.
    for _ in 0..functions.len() {
        for (function, callees) in calls.iter().enumerate() {
            if callees.iter().any(|&(_, callee)| reaching[callee]) {
                reaching[function] = true;
            }
        }
    }
    reaching
}
