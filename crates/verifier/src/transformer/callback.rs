//! Helpers with callbacks: `bpf_loop`, `bpf_for_each_map_elem`; and `bpf_timer_set_callback`, whose callback runs later.
//!
//! A call is modelled as a loop with the call instruction as its head (`push_callback_call`, `prepare_func_exit` in
//! `kernel/bpf/verifier.c`): from there the helper either returns, or calls the callback, which returns to the head.

use paceline_isa::{Callee, Insn, Reg};
use paceline_spec::helper::{Callback, Helper};

use super::next::Next;
use super::registers::Transformer;
use crate::checker::Arguments;
use crate::domain::number::Number;
use crate::domain::state::{Progress, State, Value};
use crate::env::Env;
use crate::error::{Check, invariant};
use crate::records::{Records, Root};

impl Transformer<'_> {
    /// The helper returns; the branch that calls the callback once more waits.
    pub(super) fn call_back(
        &mut self,
        helper: &'static Helper,
        arguments: &Arguments,
    ) -> Check<Option<Next>> {
        let Some(callback) = helper.callback() else { return Ok(None) };
        let function = invariant(arguments.function, "a helper with a callback has it as an argument")?;
        let start = self.env.start_of(function);
        self.records.facts.callback(self.slot, start);
        self.records.facts.function_mut(function).is_callback = true;
        let next = self.slot + 1;
        let calls_again = self.check().calls_again(helper.name, callback)?;
        let waiting = if calls_again { Some(self.entered_by(callback, function, arguments)?) } else { None };
        self.state.top_mut().calling_back = None;
        self.forget_caller_saved();
        self.return_number();
        Ok(Some(match waiting {
            Some(waiting) => Next::Both { next, target: start, waiting: Box::new(waiting), round: None },
            None => Next::Go(next),
        }))
    }

    /// The entry state of the callback.
    fn entered_by(&mut self, callback: Callback, function: usize, arguments: &Arguments) -> Check<State> {
        let mut frame = self.new_frame(function)?;
        frame.is_callback = true;
        let given = self.state.get(Reg::R3);
        match callback {
            Callback::Count => {
                frame.set(Reg::R1, Value::number(Number::UNKNOWN));
                frame.set(Reg::R2, given);
            }
            Callback::Elements => {
                let map =
                    invariant(arguments.map, "a map is an argument before a callback for its elements")?;
                let element = self.element(map, self.state.get(Reg::R1));
                element.into_iter().for_each(|(reg, value)| frame.set(reg, value));
                frame.set(Reg::R4, given);
            }
        }
        let mut state = self.state.clone();
        state.push(frame);
        Ok(state)
    }

    /// A timer will call the function: it is verified as an entry point of its own.
    pub(super) fn call_later(&mut self, helper: &'static Helper, arguments: &Arguments) -> Check {
        if !helper.calls_later() {
            return Ok(());
        }
        let callback = arguments.map.zip(arguments.function);
        let (map, function) = invariant(callback, "a timer and its callback are arguments")?;
        self.records.facts.function_mut(function).is_callback = true;
        self.records.roots.add(Root::Timer { function, map });
        Ok(())
    }

    /// The callback returns to the helper: 0 continues, 1 stops.
    pub(super) fn leave_callback(&mut self, result: &Value) -> Check<Next> {
        self.check().check_callback_return(result)?;
        let frame = invariant(self.state.pop(), "a callback has a caller")?;
        self.lose_buffers();
        let calls = self.state.top_mut().calling_back.as_mut();
        invariant(calls, "a helper with a callback has a progress")?.rounds += 1;
        Ok(Next::Repeat(frame.call_slot))
    }
}

/// A new call of a helper with a callback starts a loop of its own.
pub(crate) fn start_calling_back(env: &Env<'_>, slot: usize, state: &mut State, records: &mut Records) {
    let Some(Insn::Call(Callee::Helper(id))) = env.code.get(slot) else { return };
    let helper = Helper::from_imm(*id);
    if helper.is_some_and(|h| h.callback().is_some()) && state.top().calling_back.is_none() {
        state.top_mut().calling_back = Some(Progress { id: records.new_id(), rounds: 0 });
    }
}
