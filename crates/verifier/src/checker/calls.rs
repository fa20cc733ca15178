//! Calls of functions of the program, callbacks, and returns.

use paceline_isa::{Insn, Reg};
use paceline_spec::ObjectKind;
use paceline_spec::helper::Callback;

use super::describe::{describe, wrong_argument};
use super::registers::Checker;
use crate::domain::state::{Pointer, Reference, ReferenceKind, Target, Value};
use crate::error::{Cause, Check, Hint, invariant, reject, reject_with};
use crate::limits::MAX_FRAMES;
use crate::records::Root;

impl Checker<'_> {
    /// The function that an instruction calls: its start and its index.
    pub(crate) fn check_callee(&self, insn: &Insn) -> Check<(usize, usize)> {
        let target = insn.subprogram_target(self.slot).and_then(|target| usize::try_from(target).ok());
        let function = target.and_then(|target| self.env.flow.function_starting(target));
        let Some((target, function)) = target.zip(function) else {
            return reject(Cause::CallOutOfRange { target: target.map_or(-1, |t| t as i64) });
        };
        if self.env.flow.functions[function].is_global {
            self.check_no_lock("the call of a global function")?;
        }
        Ok((target, function))
    }

    /// The depth of a call from the running frame.
    pub(crate) fn check_depth(&self) -> Check<usize> {
        let depth = self.state.depth() + 1;
        if depth >= MAX_FRAMES {
            return reject(Cause::CallDepth(depth + 1));
        }
        Ok(depth)
    }

    /// The end of the program, or of a function that is explored on its own.
    pub(crate) fn check_end(&mut self) -> Check {
        self.check_no_lock("the end of the program")?;
        self.check_nothing_held()?;
        let result = self.read(Reg::R0)?;
        match self.records.roots.current() {
            Root::Timer { .. } => self.check_timer_return(&result)?,
            Root::Global(_) if result.scalar().is_none() => {
                return reject(Cause::GlobalReturn(describe(&result)));
            }
            Root::Main | Root::Global(_) => self.records.facts.note_as_number(self.slot, &result),
        }
        Ok(())
    }

    /// The result of a function that returns to its caller; none has to be set.
    pub(crate) fn check_result(&self) -> Check<Value> {
        let result = self.state.get(Reg::R0);
        if result.pointer().is_some_and(|p| matches!(p.target, Target::Stack { .. })) {
            return reject(Cause::StackPointerReturned);
        }
        Ok(result)
    }

    /// All resources must be released before the program ends.
    pub(crate) fn check_nothing_held(&self) -> Check {
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

    /// Only static functions may be callbacks: helpers call them with arguments that no BTF type describes.
    pub(crate) fn check_function_address(&self, value: &Value) -> Check {
        let Value::Pointer(Pointer { target: Target::Code { slot }, .. }) = value else { return Ok(()) };
        match self.env.flow.function_starting(*slot as usize) {
            Some(function) if function != 0 && !self.env.flow.functions[function].is_global => Ok(()),
            _ => reject(Cause::CallbackLinkage),
        }
    }

    /// The callback in an argument, by its function index.
    pub(super) fn check_function(&self, helper: &'static str, reg: Reg, value: &Value) -> Check<usize> {
        match value {
            Value::Pointer(pointer @ Pointer { target: Target::Code { slot }, .. })
                if pointer.offset() == Some(0) =>
            {
                let function = self.env.flow.function_starting(*slot as usize);
                function.map_or_else(|| wrong_argument(helper, reg, "a function", value), Ok)
            }
            other => wrong_argument(helper, reg, "a function", other),
        }
    }

    /// Whether the helper may call the callback again after the calls on this path.
    pub(crate) fn calls_again(&mut self, helper: &'static str, callback: Callback) -> Check<bool> {
        let calls =
            invariant(self.state.top().calling_back, "a call of a helper with a callback has a progress")?;
        match (callback, self.state.get(Reg::R1)) {
            (Callback::Elements, _) => Ok(true),
            (Callback::Count, Value::Scalar(count)) => {
                self.records.precision.mark_precise(count.mark);
                Ok(u64::from(calls.rounds) < count.number.umax())
            }
            (Callback::Count, other) => wrong_argument(helper, Reg::R1, "a number", &other),
        }
    }

    /// A timer callback returns: its result must be 0 (`check_return_code`).
    fn check_timer_return(&mut self, result: &Value) -> Check {
        match result {
            Value::Scalar(scalar) if scalar.number.as_constant() == Some(0) => {
                self.records.precision.mark_precise(scalar.mark);
                Ok(())
            }
            Value::Scalar(scalar) => reject(Cause::TimerReturn(scalar.number.to_string())),
            other => reject(Cause::TimerReturn(describe(other))),
        }
    }

    /// A callback returns to its helper: 0 continues, 1 stops.
    pub(crate) fn check_callback_return(&mut self, result: &Value) -> Check {
        match result {
            Value::Scalar(scalar) if scalar.number.smin() >= 0 && scalar.number.smax() <= 1 => {
                self.records.precision.mark_precise(scalar.mark);
                Ok(())
            }
            Value::Scalar(scalar) => reject(Cause::CallbackReturn(scalar.number.to_string())),
            other => reject(Cause::CallbackReturn(describe(other))),
        }
    }
}
