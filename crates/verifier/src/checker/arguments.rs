//! Calls of helpers, against the table of prototypes.

use paceline_isa::Reg;
use paceline_spec::availability::is_gpl_compatible;
use paceline_spec::helper::{Arg, Helper, Prototype};
use paceline_spec::{MapFlags, Poison};

use super::describe::wrong_argument;
use super::registers::{ARGUMENTS, Checker};
use super::span::check_context_pointer;
use crate::domain::access::Span;
use crate::domain::state::{Dynptr, Lock, MapRef, Pointer, Target, Value};
use crate::error::{Cause, Check, Hint, RegName, invariant, reject, reject_with};

/// The checked arguments of a call.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) map: Option<MapRef>,
    /// The callback.
    pub(crate) function: Option<usize>,
    /// The key of the look-up, if it is constant.
    pub(crate) key: Option<u64>,
    /// Memory that the helper writes.
    pub(crate) written: Vec<Span>,
    /// Size in bytes of the reserved record.
    pub(crate) record_size: u32,
    /// Whether an earlier argument was a reference.
    has_reference: bool,
    /// Id of the reference that is released.
    pub(crate) released: Option<u32>,
    /// The dynptr among the arguments.
    pub(crate) dynptr: Option<Dynptr>,
    /// The place of a new dynptr.
    pub(crate) new_dynptr: Option<Span>,
    /// The constant string argument, with its zero byte.
    pub(crate) text: Option<Vec<u8>>,
}

/// A change of the state by an argument, before the next one is checked.
pub(crate) enum Effect {
    /// Memory of unknown contents.
    Write(Span),
    /// A new dynptr's place on the stack.
    Place(Span),
    /// The lock that is held then.
    Lock(Option<Lock>),
}

impl Effect {
    /// The effect of memory that the callee writes: a slice may lie in a buffer on the stack.
    pub(super) fn of_write(span: Span) -> Option<Self> {
        matches!(span.pointer.target, Target::Slice { .. }).then_some(Self::Write(span))
    }
}

impl Checker<'_> {
    /// The helper of a call, if this program may call it.
    pub(crate) fn check_helper(&self, id: i32) -> Check<(&'static Helper, Prototype)> {
        if id == Poison::HELPER
            && let Some(poison) = self.env.program.poison_at(self.slot)
        {
            return reject(Cause::Poisoned(poison.reason.to_string()));
        }
        let Some(helper) = Helper::from_imm(id) else {
            return reject(Cause::UnknownHelper(id));
        };
        if !helper.is_for(self.env.program.kind) {
            return reject_with(Cause::HelperNotAllowed(helper.name), Hint::OtherHelper);
        }
        if helper.is_gpl_only() && !is_gpl_compatible(&self.env.program.license) {
            return reject_with(Cause::GplOnly(helper.name), Hint::License);
        }
        let Some(prototype) = helper.prototype else { return reject(Cause::MissingHelper(helper.name)) };
        if helper.name == "bpf_tail_call" {
            self.check_nothing_held()?;
        }
        Ok((helper, prototype))
    }

    /// Checks the argument of a number, and adds it to those before it.
    pub(crate) fn check_argument(
        &mut self,
        helper: &'static Helper,
        prototype: &Prototype,
        number: usize,
        arguments: &mut Arguments,
    ) -> Check<Option<Effect>> {
        let (arg, reg) = (prototype.args[number], ARGUMENTS[number]);
        let value = match arg {
            Arg::Unchecked => self.state.get(reg),
            _ => self.read(reg)?,
        };
        if !matches!(arg, Arg::Scalar | Arg::Unchecked) && is_reference(&value) {
            // "more than one arg with ref_obj_id" (`check_func_arg`)
            if arguments.has_reference {
                return wrong_argument(helper.name, reg, "memory that is not a second reference", &value);
            }
            arguments.has_reference = true;
        }
        match arg {
            Arg::Scalar | Arg::Unchecked => self.records.facts.note_as_number(self.slot, &value),
            Arg::Context => self.check_context_argument(helper.name, reg, &value)?,
            Arg::Map => {
                let map = self.check_map_argument(helper, reg, &value)?;
                if arguments.map.is_some_and(|other| other != map) {
                    return reject(Cause::Timer(RegName(reg), "the timer is in a value of another map"));
                }
                arguments.map = Some(map);
            }
            Arg::RecordSize => arguments.record_size = self.check_record_size(helper.name, reg, &value)?,
            Arg::Function => arguments.function = Some(self.check_function(helper.name, reg, &value)?),
            Arg::StackOrNull => self.check_stack_or_null(helper.name, reg, &value)?,
            Arg::Record => arguments.released = Some(self.check_record(helper.name, reg, &value)?),
            Arg::Socket => drop(self.check_socket(helper.name, reg, &value)?),
            Arg::ReleasedSocket => arguments.released = Some(self.check_socket(helper.name, reg, &value)?),
            Arg::SpinLock | Arg::HeldSpinLock => {
                return Ok(Some(Effect::Lock(self.spin_lock(helper, arg, reg, &value)?)));
            }
            Arg::Timer => arguments.map = Some(self.check_timer(helper, reg, &value)?),
            Arg::Dynptr => arguments.dynptr = Some(self.check_dynptr(helper.name, reg, &value)?),
            Arg::NewValueDynptr | Arg::NewRecordDynptr => {
                let span = self.check_new_dynptr(helper.name, reg, &value)?;
                arguments.new_dynptr = Some(span);
                return Ok(Some(Effect::Place(span)));
            }
            Arg::ReleasedDynptr => {
                arguments.released = Some(self.check_record_dynptr(helper.name, reg, &value)?);
            }
            Arg::Text => arguments.text = Some(self.check_text(helper.name, reg, &value)?),
            Arg::Size | Arg::SizeOrZero => {
                let memory = invariant(number.checked_sub(1), "the size of memory is the argument after it")?;
                let memory = (prototype.args[memory], ARGUMENTS[memory]);
                return self.check_sized(helper, memory, (arg, reg), arguments);
            }
            _ => return self.check_bytes(helper, arg, reg, &value, arguments),
        }
        Ok(None)
    }

    /// The start of a map value, of which a helper makes a dynptr.
    pub(crate) fn check_value_memory(&self, helper: &'static Helper) -> Check {
        match self.read(Reg::R1)? {
            Value::Pointer(Pointer { target: Target::MapValue(_), .. }) => Ok(()),
            other => wrong_argument(helper.name, Reg::R1, "memory of a map value", &other),
        }
    }

    pub(super) fn check_context_argument(&self, helper: &'static str, reg: Reg, value: &Value) -> Check {
        match value {
            Value::Pointer(pointer) if pointer.target == Target::Context => {
                check_context_pointer(reg, pointer)
            }
            other => wrong_argument(helper, reg, "the context", other),
        }
    }

    fn check_map_argument(&mut self, helper: &'static Helper, reg: Reg, value: &Value) -> Check<MapRef> {
        let map = match value {
            Value::Pointer(Pointer { target: Target::Map(map), nullable: false, .. }) => *map,
            other => return wrong_argument(helper.name, reg, "a map", other),
        };
        let Some(spec) = self.env.map(map) else { return reject(Cause::NoMap(map.index as i32)) };
        if !helper.takes_map(spec.kind) {
            return reject(Cause::MapKind { helper: helper.name, kind: spec.kind });
        }
        if spec.flags.contains(MapFlags::RDONLY_PROG) && helper.changes_map() {
            return reject(Cause::ReadOnly(RegName(reg), Target::Map(map)));
        }
        self.records.facts.map(self.slot, map);
        Ok(map)
    }

    /// Any stack address is accepted: the callback checks its own accesses.
    fn check_stack_or_null(&mut self, helper: &'static str, reg: Reg, value: &Value) -> Check {
        match value {
            Value::Pointer(Pointer { target: Target::Stack { .. }, .. }) => Ok(()),
            value if value.is_null() => {
                self.mark_precise(value);
                Ok(())
            }
            other => wrong_argument(helper, reg, "a pointer to the stack or null", other),
        }
    }

    fn check_record_size(&mut self, helper: &'static str, reg: Reg, value: &Value) -> Check<u32> {
        let size = value.scalar().and_then(|s| s.number.as_constant());
        let Some(size) = size.and_then(|size| u32::try_from(size).ok()) else {
            return wrong_argument(helper, reg, "a constant size", value);
        };
        self.mark_precise(value);
        Ok(size)
    }

    /// A record at its start, and known not to be null. Returns the id of its reference.
    fn check_record(&self, helper: &'static str, reg: Reg, value: &Value) -> Check<u32> {
        match value {
            Value::Pointer(pointer @ Pointer { target: Target::Record { .. }, nullable: false, .. })
                if pointer.offset() == Some(0) =>
            {
                Ok(pointer.id)
            }
            other => wrong_argument(helper, reg, "the start of a ring buffer record", other),
        }
    }
}

/// Whether it is a pointer with a reference.
fn is_reference(value: &Value) -> bool {
    let target = value.pointer().map(|pointer| pointer.target);
    match target {
        Some(Target::Record { .. }) => true,
        Some(Target::Object(kind)) => kind.is_acquired(),
        _ => false,
    }
}
