//! Calls of functions of the program, and returns.

use paceline_isa::{Callee, Insn, Reg, RegSet};

use super::next::{Next, Round};
use super::registers::Transformer;
use crate::domain::state::{Buffer, Frame, Lost, Target, Value};
use crate::env::is_tail_call;
use crate::error::{Check, invariant};

impl Transformer<'_> {
    pub(super) fn call(&mut self, insn: &Insn, callee: Callee) -> Check<Next> {
        self.check().check_call_with_lock(callee)?;
        match callee {
            Callee::Helper(id) => {
                let next = self.call_helper(id)?;
                if is_tail_call(insn) { self.tail_called() } else { Ok(next) }
            }
            Callee::Subprogram(_) => {
                let (target, function) = self.check().check_callee(insn)?;
                if self.env.flow.functions[function].is_global {
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
        self.may_return(|path| {
            path.forget_packet();
            path.return_number();
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
        let (target, round) = match self.leave()? {
            Next::Go(target) => (target, None),
            Next::Repeat(head) => (head, Some(Round { head, just_kept: false })),
            Next::Both { .. } | Next::End => invariant(None, "a function returns to its caller only")?,
        };
        let waiting = Box::new(std::mem::replace(self.state, going_on));
        Ok(Next::Both { next, target, waiting, round })
    }

    /// A frame for a call at this slot.
    pub(super) fn new_frame(&mut self, function: usize) -> Check<Frame> {
        let depth = self.check().check_depth()?;
        let mut frame = Frame::new(function, self.slot, depth as u8);
        frame.may_goto.id = self.records.new_id();
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
        self.check().check_end()?;
        Ok(Next::End)
    }

    fn leave(&mut self) -> Check<Next> {
        let result = self.check().check_result()?;
        if self.state.top().is_callback {
            return self.leave_callback(&result);
        }
        let frame = invariant(self.state.pop(), "a function that returns has a caller")?;
        self.state.set(Reg::R0, result);
        self.lose_buffers();
        Ok(Next::Go(frame.call_slot + 1))
    }
}
