//! Calls of helpers, against the table of prototypes.

use paceline_isa::Reg;
use paceline_spec::availability::is_gpl_compatible;
use paceline_spec::helper::{Arg, Helper, Prototype};
use paceline_spec::kfunc::Kfunc;
use paceline_spec::{MapFlags, MapSpec, Poison};

use super::describe::wrong_argument;
use super::registers::{ARGUMENTS, Checker};
use super::span::{check_aligned, check_context_pointer};
use crate::domain::access::{Access, Span};
use crate::domain::state::{Byte, Dynptr, Lock, MapRef, Pointer, Stack, Target, Value};
use crate::error::{Cause, Check, Hint, RegName, invariant, reject, reject_with};
use crate::limits::MAX_OFFSET;

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

impl<'a> Checker<'a> {
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

    /// Checks an argument that is memory of a size that is known before the call.
    fn check_bytes(
        &mut self,
        helper: &'static Helper,
        arg: Arg,
        reg: Reg,
        value: &Value,
        arguments: &mut Arguments,
    ) -> Check<Option<Effect>> {
        match arg {
            Arg::MapKey => {
                let size = self.map_of(arguments)?.key_size.into();
                // Other look-ups may return null for a valid index: the CPU may not exist.
                if helper.name == "bpf_map_lookup_elem" {
                    arguments.key = self.constant_key(value, size);
                }
                self.check_memory(helper, reg, value, size, Access::Read, arguments)
            }
            Arg::MapValue => {
                let spec = self.map_of(arguments)?;
                // `resolve_map_arg_type`
                if spec.kind.holds_sockets() {
                    return self.check_socket(helper.name, reg, value).map(|_| None);
                }
                let size = spec.value_size.into();
                self.check_memory(helper, reg, value, size, Access::Read, arguments)
            }
            Arg::NextValue => {
                let spec = self.map_of(arguments)?;
                // A Bloom filter look-up takes the value (`resolve_map_arg_type`).
                let access = if spec.kind.tests_membership() { Access::Read } else { Access::Write };
                self.check_memory(helper, reg, value, spec.value_size.into(), access, arguments)
            }
            Arg::ReadBytes(size) => {
                self.check_memory(helper, reg, value, size.into(), Access::Read, arguments)
            }
            Arg::WriteBytes(size) => {
                let effect = self.check_memory(helper, reg, value, size.into(), Access::Write, arguments)?;
                check_aligned_argument(reg, value, size.into())?;
                Ok(effect)
            }
            Arg::ReadWriteBytes(size) => {
                let effect = self.check_read_write(helper, reg, value, size.into(), arguments)?;
                check_aligned_argument(reg, value, size.into())?;
                Ok(effect)
            }
            // Memory is checked together with its size, the next argument; the others are not memory.
            _ => Ok(None),
        }
    }

    /// The start of a map value, of which a helper makes a dynptr.
    pub(crate) fn check_value_memory(&self, helper: &'static Helper) -> Check {
        match self.read(Reg::R1)? {
            Value::Pointer(Pointer { target: Target::MapValue(_), .. }) => Ok(()),
            other => wrong_argument(helper.name, Reg::R1, "memory of a map value", &other),
        }
    }

    fn map_of(&self, arguments: &Arguments) -> Check<&'a MapSpec> {
        let map = arguments.map.and_then(|map| self.env.map(map));
        invariant(map, "a map is an argument before its keys and values")
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

    /// Checks a size in bytes; returns its maximum.
    pub(super) fn check_size(&mut self, callee: &str, reg: Reg, value: &Value, or_zero: bool) -> Check<u64> {
        let Some(number) = value.scalar().map(|s| s.number) else {
            return wrong_argument(callee, reg, "a size", value);
        };
        self.mark_precise(value);
        if number.smin() < 0 {
            return reject_with(Cause::NegativeSize(RegName(reg), number.smin()), Hint::BoundOffset);
        }
        if !or_zero && number.umin() == 0 {
            return reject(Cause::ZeroSize(RegName(reg)));
        }
        if number.umax() >= MAX_OFFSET as u64 {
            return reject_with(Cause::UnboundedSize(RegName(reg), number.umax()), Hint::BoundOffset);
        }
        Ok(number.umax())
    }

    /// Checks memory and its size (`check_mem_size_reg`).
    fn check_sized(
        &mut self,
        helper: &'static Helper,
        (memory, address): (Arg, Reg),
        (size, reg): (Arg, Reg),
        arguments: &mut Arguments,
    ) -> Check<Option<Effect>> {
        let (pointer, value) = (self.read(address)?, self.read(reg)?);
        let most = self.check_size(helper.name, reg, &value, size == Arg::SizeOrZero)?;
        if most == 0 && pointer.is_null() {
            self.mark_precise(&pointer);
            return Ok(None);
        }
        // Where null is accepted, the kernel accepts a nullable pointer with any size.
        let pointer = match pointer {
            Value::Pointer(pointer) if matches!(memory, Arg::ReadMemOrNull | Arg::WriteMemOrNull) => {
                Value::Pointer(Pointer { nullable: false, ..pointer })
            }
            other => other,
        };
        let size = most;
        match memory {
            Arg::WriteMem | Arg::WriteMemOrNull => {
                self.check_memory(helper, address, &pointer, size, Access::Write, arguments)
            }
            Arg::ReadWriteMem => self.check_read_write(helper, address, &pointer, size, arguments),
            _ => self.check_memory(helper, address, &pointer, size, Access::Read, arguments),
        }
    }

    /// Checks memory that a helper both reads and writes.
    fn check_read_write(
        &mut self,
        helper: &'static Helper,
        register: Reg,
        value: &Value,
        size: u64,
        arguments: &mut Arguments,
    ) -> Check<Option<Effect>> {
        self.check_memory(helper, register, value, size, Access::Read, arguments)?;
        self.check_memory(helper, register, value, size, Access::Write, arguments)
    }

    /// Checks memory of a size that a helper reads or writes (`check_helper_mem_access`).
    fn check_memory(
        &mut self,
        helper: &'static Helper,
        register: Reg,
        value: &Value,
        size: u64,
        access: Access,
        arguments: &mut Arguments,
    ) -> Check<Option<Effect>> {
        let packet = helper.takes_packet_memory();
        let span = self.memory_argument((helper.name, packet), register, value, size, access)?;
        if access == Access::Read {
            return Ok(None);
        }
        arguments.written.push(span);
        Ok(Effect::of_write(span))
    }

    /// The same for memory of a kernel function; all of them accept packet memory.
    pub(super) fn check_memory_of_kfunc(
        &mut self,
        kfunc: &'static Kfunc,
        register: Reg,
        value: &Value,
        size: u64,
    ) -> Check<Span> {
        self.memory_argument((kfunc.name, true), register, value, size, Access::Read)?;
        self.memory_argument((kfunc.name, true), register, value, size, Access::Write)
    }

    /// Memory that a helper or function reads or writes; `name` is for messages.
    fn memory_argument(
        &mut self,
        (name, packet): (&'static str, bool),
        register: Reg,
        value: &Value,
        size: u64,
        access: Access,
    ) -> Check<Span> {
        let pointer = match value {
            Value::Pointer(pointer) => *pointer,
            other => return wrong_argument(name, register, "a pointer to memory", other),
        };
        let span = Span { register, pointer, offset: 0, size, access };
        if pointer.nullable {
            return reject_with(Cause::MayBeNull(RegName(register), pointer.target), Hint::NullCheck);
        }
        match pointer.target {
            Target::Stack { frame } => {
                self.check_stack(&span, usize::from(frame))?;
                if access == Access::Read {
                    let (start, reach) = span.extent();
                    self.note_read(usize::from(frame), start, reach)?;
                }
            }
            Target::Packet { .. } if !packet => {
                return reject(Cause::PacketArgument(RegName(register), name));
            }
            Target::MapValue(_)
            | Target::Packet { .. }
            | Target::Memory { .. }
            | Target::Slice { .. }
            | Target::Record { .. } => self.check_span(&span)?,
            _ => return wrong_argument(name, register, "a pointer to memory", value),
        }
        Ok(span)
    }

    /// The key of a look-up, if the program has just stored a constant there (`get_constant_map_key`).
    fn constant_key(&mut self, value: &Value, size: u64) -> Option<u64> {
        let pointer = value.pointer()?;
        let Target::Stack { frame } = pointer.target else { return None };
        let offset = pointer.offset()?;
        if size == 0 || size > 8 || !(-512..0).contains(&offset) {
            return None;
        }
        let (index, first) = Stack::place(offset);
        let slot = self.state.frame(usize::from(frame))?.stack.slot(index);
        let bytes = slot.bytes.get(first..first.checked_add(size as usize)?)?;
        if bytes.iter().all(|&b| b == Byte::Zero) {
            return Some(0);
        }
        let scalar = slot.value.scalar()?;
        if !slot.holds_low_bytes(first, size as usize) {
            return None;
        }
        let key = scalar.number.zero_extend(size as u32 * 8).as_constant()?;
        self.records.precision.mark_precise(scalar.mark);
        Some(key)
    }
}

/// Memory that the kernel requires to be aligned (`MEM_ALIGNED`). The packet starts 2 bytes after a multiple of 4, so that
/// its IP header is aligned (`NET_IP_ALIGN`).
fn check_aligned_argument(register: Reg, value: &Value, size: u64) -> Check {
    let Some(&pointer) = value.pointer() else { return Ok(()) };
    let span = Span { register, pointer, offset: 0, size, access: Access::Write };
    match pointer.target {
        Target::Stack { .. } => check_aligned(&span),
        _ if span.is_aligned() => Ok(()),
        _ => reject(Cause::ArgumentAlignment(RegName(register), size)),
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
