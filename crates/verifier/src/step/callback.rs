//! Helpers with callbacks: `bpf_loop`, `bpf_for_each_map_elem`; and `bpf_timer_set_callback`, whose callback runs later.
//!
//! A call is modelled as a loop with the call instruction as its head (`push_callback_call`, `prepare_func_exit` in
//! `kernel/bpf/verifier.c`): from there the helper either returns, or calls the callback, which returns to the head.

use paceline_isa::Reg;
use paceline_spec::helper::{Callback, Helper};

use super::helper::{Arguments, wrong_argument};
use super::memory::describe;
use crate::domain::number::Number;
use crate::domain::state::{Frame, MapRef, Pointer, Target, Value};
use crate::error::{Cause, Check, reject};
use crate::walk::{Next, Root, Walk};

impl Walk<'_> {
    /// Only static functions may be callbacks: helpers call them with arguments that no BTF type describes.
    pub(super) fn check_function_address(&self, value: &Value) -> Check {
        let Value::Pointer(Pointer { target: Target::Code { slot }, .. }) = value else { return Ok(()) };
        match self.flow.function_starting(*slot as usize) {
            Some(function) if function != 0 && !self.flow.functions[function].is_global => Ok(()),
            _ => reject(Cause::CallbackLinkage),
        }
    }

    /// The callback in an argument, by its function index.
    pub(super) fn check_function(&self, helper: &'static str, reg: Reg, value: &Value) -> Check<usize> {
        match value {
            Value::Pointer(pointer @ Pointer { target: Target::Code { slot }, .. })
                if pointer.offset() == Some(0) =>
            {
                let function = self.flow.function_starting(*slot as usize);
                function.map_or_else(|| wrong_argument(helper, reg, "a function", value), Ok)
            }
            other => wrong_argument(helper, reg, "a function", other),
        }
    }

    /// The helper returns; the branch that calls the callback once more waits.
    pub(super) fn call_back(
        &mut self,
        helper: &'static Helper,
        arguments: &Arguments,
    ) -> Check<Option<Next>> {
        let Some((callback, function)) = helper.callback().zip(arguments.function) else { return Ok(None) };
        let start = self.flow.functions.get(function).map_or(0, |f| f.start);
        self.facts.callback(self.slot, start);
        if let Some(is_callback) = self.is_callback.get_mut(function) {
            *is_callback = true;
        }
        let next = self.slot + 1;
        let calls_again = self.calls_again(helper.name, callback)?;
        let waiting = if calls_again { Some(self.entered_by(callback, function, arguments)?) } else { None };
        self.state.top_mut().calling_back = None;
        self.forget_caller_saved();
        self.return_number();
        Ok(Some(match waiting {
            Some(waiting) => Next::Both { next, target: start, waiting: Box::new(waiting) },
            None => Next::Go(next),
        }))
    }

    /// Whether the helper may call the callback again after the calls on this path.
    fn calls_again(&mut self, helper: &'static str, callback: Callback) -> Check<bool> {
        let rounds = self.state.top().calling_back.map_or(0, |loop_| loop_.rounds);
        match (callback, self.state.get(Reg::R1)) {
            (Callback::Elements, _) => Ok(true),
            (Callback::Count, Value::Scalar(count)) => {
                self.precision.mark_precise(count.mark);
                Ok(u64::from(rounds) < count.number.umax())
            }
            (Callback::Count, other) => wrong_argument(helper, Reg::R1, "a number", &other),
        }
    }

    /// The entry state of the callback.
    fn entered_by(
        &mut self,
        callback: Callback,
        function: usize,
        arguments: &Arguments,
    ) -> Check<crate::domain::state::State> {
        let mut frame = self.new_frame(function)?;
        frame.is_callback = true;
        let given = self.state.get(Reg::R3);
        match callback {
            Callback::Count => {
                frame.set(Reg::R1, Value::number(Number::UNKNOWN));
                frame.set(Reg::R2, given);
            }
            Callback::Elements => {
                if let Some(map) = arguments.map {
                    self.set_element(&mut frame, map, self.state.get(Reg::R1));
                }
                frame.set(Reg::R4, given);
            }
        }
        let mut state = self.state.clone();
        state.push(frame);
        Ok(state)
    }

    /// The arguments of a callback for a map element. Each call has another element, as each look-up has.
    pub(super) fn set_element(&mut self, frame: &mut Frame, map: MapRef, handle: Value) {
        let key_size = self.map(map).map_or(0, |spec| spec.key_size);
        let key = Target::Memory { size: key_size, writable: false, lent: None };
        let value = self.value_of_its_own(Target::MapValue(map));
        frame.set(Reg::R1, handle);
        frame.set(Reg::R2, Value::Pointer(Pointer::to(key)));
        frame.set(Reg::R3, Value::Pointer(value));
    }

    /// A timer will call the function: it is verified as an entry point of its own.
    pub(super) fn call_later(&mut self, helper: &'static Helper, arguments: &Arguments) {
        if !helper.calls_later() {
            return;
        }
        let Some((map, function)) = arguments.map.zip(arguments.function) else { return };
        if let Some(is_callback) = self.is_callback.get_mut(function) {
            *is_callback = true;
        }
        self.add_root(Root::Timer { function, map });
    }

    /// A timer callback returns: its result must be 0 (`check_return_code`).
    pub(super) fn check_timer_return(&mut self, result: &Value) -> Check {
        match result {
            Value::Scalar(scalar) if scalar.number.as_constant() == Some(0) => {
                self.precision.mark_precise(scalar.mark);
                Ok(())
            }
            Value::Scalar(scalar) => reject(Cause::TimerReturn(scalar.number.to_string())),
            other => reject(Cause::TimerReturn(describe(other))),
        }
    }

    /// The callback returns to the helper: 0 continues, 1 stops.
    pub(super) fn leave_callback(&mut self, result: &Value) -> Check<Next> {
        match result {
            Value::Scalar(scalar) if scalar.number.smin() >= 0 && scalar.number.smax() <= 1 => {
                self.precision.mark_precise(scalar.mark);
            }
            Value::Scalar(scalar) => return reject(Cause::CallbackReturn(scalar.number.to_string())),
            other => return reject(Cause::CallbackReturn(describe(other))),
        }
        let Some(frame) = self.state.pop() else { return Ok(Next::End) };
        self.lose_buffers();
        if let Some(loop_) = &mut self.state.top_mut().calling_back {
            loop_.rounds += 1;
        }
        let mut state = self.state.clone();
        self.widen(&mut state, frame.call_slot, false);
        self.state = state;
        Ok(Next::Go(frame.call_slot))
    }
}
