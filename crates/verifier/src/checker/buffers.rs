//! Memory and sizes as arguments of helpers and kernel functions (`check_helper_mem_access`).

use paceline_isa::Reg;
use paceline_spec::MapSpec;
use paceline_spec::helper::{Arg, Helper};
use paceline_spec::kfunc::Kfunc;

use super::arguments::{Arguments, Effect};
use super::describe::wrong_argument;
use super::registers::Checker;
use super::span::check_aligned;
use crate::domain::access::{Access, Span};
use crate::domain::state::{Byte, Pointer, Stack, Target, Value};
use crate::error::{Cause, Check, Hint, RegName, invariant, reject, reject_with};
use crate::limits::MAX_OFFSET;

impl<'a> Checker<'a> {
    /// Checks an argument that is memory of a size that is known before the call.
    pub(super) fn check_bytes(
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

    fn map_of(&self, arguments: &Arguments) -> Check<&'a MapSpec> {
        let map = arguments.map.and_then(|map| self.env.map(map));
        invariant(map, "a map is an argument before its keys and values")
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
    pub(super) fn check_sized(
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
