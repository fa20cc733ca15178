//! Calls of helpers, checked against the table of prototypes.

use paceline_isa::Reg;
use paceline_spec::availability::is_gpl_compatible;
use paceline_spec::helper::{Arg, Helper, Prototype, Return};
use paceline_spec::kfunc::Kfunc;
use paceline_spec::{InnerLength, MapFlags, MapSpec, ObjectKind};

use super::ARGUMENTS;
use super::memory::{Access, Span, check_context_pointer, describe};
use super::stack::check_aligned;
use crate::domain::number::Number;
use crate::domain::state::{
    Byte, Dynptr, DynptrMemory, MapRef, Pointer, ReferenceKind, Stack, Target, Value,
};
use crate::error::{Cause, Check, Hint, RegName, reject, reject_with};
use crate::limits::MAX_OFFSET;
use crate::walk::{Next, Walk};

/// The checked arguments of a call.
#[derive(Default)]
pub(super) struct Arguments {
    pub(super) map: Option<MapRef>,
    /// The callback.
    pub(super) function: Option<usize>,
    /// The key of the look-up, if it is constant.
    key: Option<u64>,
    /// Memory that the helper writes.
    written: Vec<Span>,
    /// Size in bytes of the reserved record.
    record_size: u32,
    /// Whether an earlier argument was a reference.
    has_reference: bool,
    /// Id of the reference that is released.
    released: Option<u32>,
    /// The dynptr among the arguments.
    dynptr: Option<Dynptr>,
    /// The place of a new dynptr.
    new_dynptr: Option<Span>,
    /// The constant string argument, with its zero byte.
    pub(super) text: Option<Vec<u8>>,
}

impl Walk<'_> {
    pub(super) fn call_helper(&mut self, id: i32) -> Check<Next> {
        self.check_poison(id)?;
        let Some(helper) = Helper::from_imm(id) else {
            return reject(Cause::UnknownHelper(id));
        };
        if !helper.is_for(self.program.kind) {
            return reject_with(Cause::HelperNotAllowed(helper.name), Hint::OtherHelper);
        }
        if helper.is_gpl_only() && !is_gpl_compatible(&self.program.license) {
            return reject_with(Cause::GplOnly(helper.name), Hint::License);
        }
        let Some(prototype) = helper.prototype else { return reject(Cause::MissingHelper(helper.name)) };
        if helper.name == "bpf_tail_call" {
            self.check_nothing_held()?;
        }
        let mut arguments = self.check_arguments(helper, &prototype)?;
        if helper.name != "bpf_map_lookup_elem" {
            // `bpf_map_lookup_percpu_elem` may return null for an existing key: the CPU may not exist.
            arguments.key = None;
        }
        for span in &arguments.written {
            self.write_by_helper(span)?;
        }
        if prototype.moves_packet {
            self.forget_packet();
        }
        if let Some(id) = arguments.released {
            self.release(id);
            self.lose_records();
            self.lose_record(id);
        }
        if let Some(span) = &arguments.new_dynptr {
            self.make_new_dynptr(helper, span)?;
        }
        if helper.prints() {
            self.note_printing(&arguments);
        }
        self.call_later(helper, &arguments);
        if let Some(next) = self.call_back(helper, &arguments)? {
            return Ok(next);
        }
        self.forget_caller_saved();
        let result = self.result(&prototype, &arguments);
        self.state.set(Reg::R0, result);
        Ok(Next::Go(self.slot + 1))
    }

    fn check_arguments(&mut self, helper: &'static Helper, prototype: &Prototype) -> Check<Arguments> {
        let mut arguments = Arguments::default();
        for (i, (&arg, reg)) in prototype.args.iter().zip(ARGUMENTS).enumerate() {
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
                Arg::Scalar | Arg::Unchecked => self.note_as_number(&value),
                Arg::Context => self.check_context_argument(helper.name, reg, &value)?,
                Arg::Map => {
                    let map = self.check_map_argument(helper, reg, &value)?;
                    if arguments.map.is_some_and(|other| other != map) {
                        return reject(Cause::Timer(RegName(reg), "the timer is in a value of another map"));
                    }
                    arguments.map = Some(map);
                }
                Arg::MapKey => {
                    let size = self.map_of(&arguments).map_or(0, |spec| u64::from(spec.key_size));
                    // Other look-ups may return null for a valid index: the CPU may not exist.
                    if helper.name == "bpf_map_lookup_elem" {
                        arguments.key = self.constant_key(&value, size);
                    }
                    self.check_memory(helper, reg, &value, size, Access::Read, &mut arguments)?;
                }
                // `resolve_map_arg_type`
                Arg::MapValue if self.map_of(&arguments).is_some_and(|spec| spec.kind.holds_sockets()) => {
                    self.check_socket(helper.name, reg, &value)?;
                }
                Arg::MapValue => {
                    let size = self.map_of(&arguments).map_or(0, |spec| u64::from(spec.value_size));
                    self.check_memory(helper, reg, &value, size, Access::Read, &mut arguments)?;
                }
                Arg::NextValue => {
                    let spec = self.map_of(&arguments);
                    let size = spec.map_or(0, |spec| u64::from(spec.value_size));
                    // A Bloom filter look-up takes the value (`resolve_map_arg_type`).
                    let asked = spec.is_some_and(|spec| spec.kind.tests_membership());
                    let access = if asked { Access::Read } else { Access::Write };
                    self.check_memory(helper, reg, &value, size, access, &mut arguments)?;
                }
                Arg::RecordSize => {
                    arguments.record_size = self.check_record_size(helper.name, reg, &value)?
                }
                Arg::Function => arguments.function = Some(self.check_function(helper.name, reg, &value)?),
                Arg::StackOrNull => self.check_stack_or_null(helper.name, reg, &value)?,
                Arg::Record => arguments.released = Some(self.check_record(helper.name, reg, &value)?),
                Arg::Socket => drop(self.check_socket(helper.name, reg, &value)?),
                Arg::ReleasedSocket => {
                    arguments.released = Some(self.check_socket(helper.name, reg, &value)?)
                }
                Arg::SpinLock | Arg::HeldSpinLock => self.spin_lock(helper, arg, reg, &value)?,
                Arg::Timer => arguments.map = Some(self.check_timer(helper, reg, &value)?),
                Arg::ReadBytes(size) => {
                    self.check_memory(helper, reg, &value, size.into(), Access::Read, &mut arguments)?;
                }
                Arg::WriteBytes(size) => {
                    self.check_memory(helper, reg, &value, size.into(), Access::Write, &mut arguments)?;
                    check_aligned_argument(reg, &value, size.into())?;
                }
                Arg::ReadWriteBytes(size) => {
                    self.check_read_write(helper, reg, &value, size.into(), &mut arguments)?;
                    check_aligned_argument(reg, &value, size.into())?;
                }
                Arg::Dynptr => arguments.dynptr = Some(self.check_dynptr(helper.name, reg, &value)?),
                Arg::NewValueDynptr | Arg::NewRecordDynptr => {
                    arguments.new_dynptr = Some(self.check_new_dynptr(helper.name, reg, &value)?);
                }
                Arg::ReleasedDynptr => {
                    arguments.released = Some(self.check_record_dynptr(helper.name, reg, &value)?);
                }
                Arg::Text => arguments.text = Some(self.check_text(helper.name, reg, &value)?),
                // Checked together with its size, in the next argument.
                Arg::ReadMem
                | Arg::ReadMemOrNull
                | Arg::WriteMem
                | Arg::WriteMemOrNull
                | Arg::ReadWriteMem => {}
                Arg::Size | Arg::SizeOrZero => {
                    let memory =
                        i.checked_sub(1).and_then(|i| Some((*prototype.args.get(i)?, *ARGUMENTS.get(i)?)));
                    if let Some(memory) = memory {
                        self.check_sized(helper, memory, (arg, reg), &mut arguments)?;
                    }
                }
            }
        }
        if helper.name == "bpf_snprintf" {
            self.check_format(&arguments)?;
        }
        Ok(arguments)
    }

    /// A helper has initialized a dynptr (`mark_stack_slots_dynptr`).
    fn make_new_dynptr(&mut self, helper: &'static Helper, span: &Span) -> Check {
        let is_record = helper.prototype.is_some_and(|p| p.args.contains(&Arg::NewRecordDynptr));
        if is_record {
            let reference = self.acquire_record();
            self.make_dynptr(span, DynptrMemory::Record, reference);
            return Ok(());
        }
        match self.read(Reg::R1)? {
            Value::Pointer(Pointer { target: Target::MapValue(_), .. }) => {
                self.make_dynptr(span, DynptrMemory::Value, 0);
                Ok(())
            }
            other => wrong_argument(helper.name, Reg::R1, "memory of a map value", &other),
        }
    }

    fn map_of(&self, arguments: &Arguments) -> Option<&MapSpec> {
        self.map(arguments.map?)
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
        let Some(spec) = self.map(map) else { return reject(Cause::NoMap(map.index as i32)) };
        if !helper.takes_map(spec.kind) {
            return reject(Cause::MapKind { helper: helper.name, kind: spec.kind });
        }
        if spec.flags.contains(MapFlags::RDONLY_PROG) && helper.changes_map() {
            return reject(Cause::ReadOnly(RegName(reg), Target::Map(map)));
        }
        self.facts.map(self.slot, map);
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

    /// Releases a reference: all pointers to it become numbers (`release_reference`).
    pub(super) fn release(&mut self, id: u32) {
        self.state.references.retain(|reference| reference.id != id);
        let points_there = |value: &Value| value.pointer().is_some_and(|p| p.id == id);
        self.state.update(points_there, |value| *value = Value::unknown());
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
    ) -> Check {
        let (pointer, value) = (self.read(address)?, self.read(reg)?);
        let most = self.check_size(helper.name, reg, &value, size == Arg::SizeOrZero)?;
        if most == 0 && pointer.is_null() {
            self.mark_precise(&pointer);
            return Ok(());
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
    ) -> Check {
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
    ) -> Check {
        let packet = helper.takes_packet_memory();
        let span = self.memory_argument((helper.name, packet), register, value, size, access)?;
        if access == Access::Write {
            arguments.written.push(span);
        }
        Ok(())
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
                let range = span.offsets();
                let reach = (range.max - range.min).unsigned_abs() + size;
                if access == Access::Read {
                    self.note_read(usize::from(frame), range.min, reach)?;
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

    /// Marks memory as written by a helper; only the stack is tracked.
    pub(super) fn write_by_helper(&mut self, span: &Span) -> Check {
        match span.pointer.target {
            Target::Stack { frame } => {
                self.check_no_dynptr(span, usize::from(frame))?;
                self.overwrite_stack(span, usize::from(frame))
            }
            _ => Ok(()),
        }
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
        self.precision.mark_precise(scalar.mark);
        Some(key)
    }

    fn result(&mut self, prototype: &Prototype, arguments: &Arguments) -> Value {
        match prototype.returns {
            Return::Scalar => Value::number(Number::UNKNOWN),
            Return::Nothing => Value::Unset,
            Return::MapValueOrNull => match arguments.map {
                // `is_acquire_function`
                Some(map) if self.map(map).is_some_and(|spec| spec.kind.holds_sockets()) => {
                    self.acquire(ObjectKind::Socket)
                }
                Some(map) => self.looked_up(map, arguments.key),
                None => Value::unknown(),
            },
            Return::DynptrMemoryOrNull => arguments
                .dynptr
                .map_or(Value::Unset, |dynptr| self.dynptr_data(&dynptr, arguments.record_size, true)),
            Return::SocketOrNull | Return::SockCommonOrNull => {
                prototype.returns.object().map_or_else(Value::unknown, |kind| self.acquire(kind))
            }
            Return::RecordOrNull => {
                let id = self.new_id();
                self.add_reference(id, ReferenceKind::Record);
                let record = Pointer::to(Target::Record { size: arguments.record_size });
                Value::Pointer(Pointer { nullable: true, id, ..record })
            }
        }
    }

    /// The result of a look-up: a value or null; for a map of maps, a map.
    fn looked_up(&mut self, map: MapRef, key: Option<u64>) -> Value {
        let Some(spec) = self.map(map) else { return Value::unknown() };
        // The key of an array is its index; a valid index always has a value. `bpf_map_lookup_percpu_elem` may still find
        // no such CPU, so its key is ignored.
        let is_sized = spec.kind.is_array() && !(map.inner && may_differ_in_length(spec));
        let key = key.filter(|&key| is_sized && key < u64::from(spec.max_entries));
        let target = match spec.kind.holds_maps() {
            true => Target::Map(MapRef { inner: true, ..map }),
            false => Target::MapValue(map),
        };
        self.facts.key(self.slot, key.and_then(|key| u32::try_from(key).ok()));
        Value::Pointer(match key {
            Some(_) => self.value_of_its_own(target),
            None => Pointer { nullable: true, id: self.new_id(), ..Pointer::to(target) },
        })
    }
}

/// Whether inner maps may have another number of entries than their template: false only for arrays without the flag that
/// allows it (`array_map_meta_equal`; per-CPU arrays too have `bpf_map_meta_equal`), and for kinds that are compared with it.
fn may_differ_in_length(template: &MapSpec) -> bool {
    match template.kind.rules().inner_length {
        InnerLength::Any => true,
        InnerLength::FixedUnlessFlagged => template.flags.contains(MapFlags::INNER_MAP),
        InnerLength::Fixed | InnerLength::Forbidden => false,
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

/// An argument of the wrong kind.
pub(super) fn wrong_argument<T>(callee: &str, reg: Reg, wanted: &'static str, found: &Value) -> Check<T> {
    let nullable = found.pointer().is_some_and(|p| p.nullable);
    let cause =
        Cause::Argument { register: RegName(reg), helper: callee.to_owned(), wanted, found: describe(found) };
    if nullable { reject_with(cause, Hint::NullCheck) } else { reject(cause) }
}
