//! Calls of functions of the program, and returns.

use paceline_isa::{Callee, Insn, Reg, RegSet};
use paceline_spec::ObjectKind;

use super::memory::describe;
use crate::domain::number::Number;
use crate::domain::state::{Buffer, Frame, Lost, Reference, ReferenceKind, Target, Value};
use crate::error::{Cause, Check, Hint, reject, reject_with};
use crate::facts::is_tail_call;
use crate::limits::MAX_FRAMES;
use crate::walk::{Next, Root, Walk};

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
                    return reject(Cause::CallOutOfRange { target: target.map_or(-1, |t| t as i64) });
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

    /// A failed tail call falls through. A successful one ends the program; in a function it returns to the caller, after
    /// the called program may have moved the packet and returned any number.
    fn tail_called(&mut self) -> Check<Next> {
        self.may_return(|walk| {
            walk.forget_packet();
            walk.return_number();
        })
    }

    /// An instruction either falls through or returns from the function, in the state that `change` produces. A return from
    /// the program may have any number, and nothing may be held.
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
            return reject(Cause::CallDepth(depth + 1));
        }
        let mut frame = Frame::new(function, self.slot, depth as u8);
        frame.may_goto.id = self.new_id();
        Ok(frame)
    }

    /// Enters a static function: its code is walked at each call, with the caller's state.
    fn enter(&mut self, function: usize) -> Check {
        let mut frame = self.new_frame(function)?;
        for reg in RegSet::ARGUMENTS.iter() {
            frame.set(reg, self.state.get(reg));
        }
        self.forget_caller_saved();
        self.state.push(frame);
        Ok(())
    }

    /// The caller-saved registers are undefined after a call.
    pub(super) fn forget_caller_saved(&mut self) {
        let frame = self.state.top_mut();
        for reg in RegSet::CALLER_SAVED.iter() {
            frame.set(reg, Value::Unset);
        }
    }

    /// Invalidates all packet pointers, since the packet may have moved; they become numbers.
    pub(super) fn forget_packet(&mut self) {
        let slot = self.slot;
        let is_packet = |value: &Value| {
            value.pointer().is_some_and(|p| match p.target {
                Target::PacketEnd => true,
                Target::Slice { buffer: Some(Buffer::Dynptr { .. }), .. } => false,
                // Only the function's caller knows whether this slice is in the packet.
                Target::Slice { lent, .. } => lent.is_none(),
                _ => p.is_packet(),
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
                return reject(Cause::GlobalReturn(describe(&result)));
            }
            Root::Main | Root::Global(_) => self.note_as_number(&result),
        }
        Ok(Next::End)
    }

    /// All resources must be released before the program ends.
    pub(super) fn check_nothing_held(&self) -> Check {
        let Some(&Reference { slot, kind, .. }) = self.state.references.first() else { return Ok(()) };
        let hint = match kind {
            ReferenceKind::Record => Hint::ReleaseRecord,
            ReferenceKind::Iterator => Hint::DestroyIterator,
            ReferenceKind::Object(ObjectKind::Connection) => Hint::ReleaseConnection,
            ReferenceKind::Object(ObjectKind::NewConnection) => Hint::InsertConnection,
            // Sockets are the only others that are acquired.
            ReferenceKind::Object(_) => Hint::ReleaseSocket,
        };
        reject_with(Cause::Leak { kind, slot: slot as usize }, hint)
    }

    fn leave(&mut self) -> Check<Next> {
        let result = self.state.get(Reg::R0);
        if result.pointer().is_some_and(|p| matches!(p.target, Target::Stack { .. })) {
            return reject(Cause::StackPointerReturned);
        }
        if self.state.top().is_callback {
            return self.leave_callback(&result);
        }
        let Some(frame) = self.state.pop() else { return Ok(Next::End) };
        self.state.set(Reg::R0, result);
        self.lose_buffers();
        Ok(Next::Go(frame.call_slot + 1))
    }

    /// The result of a helper or global function that returns any number.
    pub(super) fn return_number(&mut self) {
        self.state.set(Reg::R0, Value::number(Number::UNKNOWN));
    }
}
