//! Loads, stores and atomic operations, with the rules of each kind of memory.

use paceline_isa::{AtomicOp, Operand, Reg, Size, Width};
use paceline_spec::context::{Field, FieldKind};
use paceline_spec::{InitialValue, MapFlags, MapSpec, ObjectKind};

use super::bits;
use super::object::load_object;
use super::stack::check_aligned;
use crate::domain::access::OffsetRange;
use crate::domain::number::{Number, Tnum};
use crate::domain::state::{MapRef, PacketRange, Pointer, Region, Target, Value};
use crate::error::{Cause, Check, Hint, RegName, reject, reject_with};
use crate::facts::Base;
use crate::lend::Needs;
use crate::limits::MAX_OFFSET;
use crate::walk::{Next, Walk};

/// Kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// A range of memory that an instruction or a helper accesses.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// The register that holds the address.
    pub(super) register: Reg,
    /// Its pointer.
    pub(super) pointer: Pointer,
    /// Added to the pointer, in bytes.
    pub(super) offset: i64,
    /// Bytes.
    pub(super) size: u64,
    pub(super) access: Access,
}

impl Span {
    /// The known part of the offset.
    fn fixed(&self) -> i64 {
        i64::from(self.pointer.fixed) + self.offset
    }

    /// Possible offsets of the first byte.
    pub(super) fn offsets(&self) -> OffsetRange {
        let variable = &self.pointer.variable;
        OffsetRange {
            min: self.fixed().saturating_add(variable.smin()),
            max: self.fixed().saturating_add(variable.smax()),
        }
    }

    /// Whether it is aligned to its size at every possible offset, relative to the base.
    pub(super) fn is_aligned(&self) -> bool {
        self.is_multiple_of(self.size.max(1))
    }

    /// The same for any power of two.
    pub(super) fn is_multiple_of(&self, size: u64) -> bool {
        let place = self.pointer.variable.bits().add(Tnum::constant(self.fixed() as u64));
        size == 1 || place.truncate(size.trailing_zeros()).max() == 0
    }

    /// The bytes that may be accessed: the first, and the one past the last.
    pub(super) fn reach(&self) -> (i64, i64) {
        let OffsetRange { min, max } = self.offsets();
        (min, max.saturating_add_unsigned(self.size))
    }

    fn out_of_bounds(&self, limit: Option<u64>) -> Cause {
        Cause::OutOfBounds {
            register: RegName(self.register),
            target: self.pointer.target,
            offset: self.offsets(),
            size: self.size,
            limit,
        }
    }

    /// Whether the bytes from `start` lie within `limit` of them.
    fn fits(&self, start: i64, limit: u64) -> bool {
        u64::try_from(start).is_ok_and(|start| start.checked_add(self.size).is_some_and(|end| end <= limit))
    }

    /// Checks against memory of a fixed size (`check_mem_region_access`).
    pub(super) fn check_within(&self, limit: u64) -> Check {
        let variable = &self.pointer.variable;
        let range = self.offsets();
        if range.min < 0 && variable.as_constant().is_none() {
            let cause = Cause::NegativeOffset(RegName(self.register), self.pointer.target, range.min);
            return reject_with(cause, Hint::BoundOffset);
        }
        if !self.fits(range.min, limit) {
            return reject(self.out_of_bounds(Some(limit)));
        }
        if variable.umax() >= MAX_OFFSET as u64 {
            let cause = Cause::UnboundedOffset(RegName(self.register), self.pointer.target);
            return reject_with(cause, Hint::BoundOffset);
        }
        let last = self.fixed() + variable.umax() as i64;
        if !self.fits(last, limit) {
            // The previous element is the last one of the same size.
            let before = last.checked_sub(self.size as i64).is_some_and(|before| self.fits(before, limit));
            let hint = if before { Hint::OffByOne } else { Hint::BoundOffset };
            return reject_with(self.out_of_bounds(Some(limit)), hint);
        }
        Ok(())
    }

    /// Checks against memory of a size that may be read-only.
    fn check_memory(&self, size: u32, writable: bool) -> Check {
        if self.access == Access::Write && !writable {
            return reject(Cause::ReadOnly(RegName(self.register), self.pointer.target));
        }
        self.check_within(u64::from(size))
    }

    /// Checks against the bounds-checked bytes of the packet (`check_packet_access`).
    pub(super) fn check_packet(&self, range: PacketRange) -> Check {
        let variable = &self.pointer.variable;
        if variable.smin() < 0 {
            let cause = Cause::NegativeOffset(RegName(self.register), self.pointer.target, variable.smin());
            return reject_with(cause, Hint::BoundOffset);
        }
        match range {
            PacketRange::Bytes(bytes) if self.fits(self.fixed(), u64::from(bytes)) => Ok(()),
            PacketRange::Bytes(0) | PacketRange::AtEnd | PacketRange::BeyondEnd => {
                reject_with(self.out_of_bounds(Some(0)), Hint::MissingBoundsCheck)
            }
            // The kernel's verifier follows pointers no further (`MAX_PACKET_OFF`), and nothing but a loop gets there.
            PacketRange::Bytes(bytes) if self.reach().1 > i64::from(u16::MAX) => {
                reject_with(self.out_of_bounds(Some(bytes.into())), Hint::BoundLoop)
            }
            PacketRange::Bytes(bytes) => {
                reject_with(self.out_of_bounds(Some(bytes.into())), Hint::ShortBoundsCheck)
            }
        }
    }
}

impl Walk<'_> {
    /// The value that a load gives.
    pub(super) fn load(&mut self, base: Reg, offset: i16, size: Size, signed: bool) -> Check<Value> {
        let pointer = self.base(base, offset)?;
        let span = span(base, pointer, offset, size, Access::Read);
        let any = Number::unsigned(bits(size));
        let value = match pointer.target {
            Target::Stack { frame } => self.load_stack(&span, usize::from(frame))?,
            Target::Context => self.load_context(&span, signed)?,
            Target::MapValue(map) => {
                self.check_map_value(&span, map)?;
                Value::number(self.frozen_value(&span, map).unwrap_or(any))
            }
            Target::Object(kind) => load_object(&span, kind)?,
            _ => {
                self.check_span(&span)?;
                Value::number(any)
            }
        };
        Ok(if signed { sign_extended(value, size) } else { value })
    }

    pub(super) fn store(&mut self, base: Reg, offset: i16, size: Size, src: Operand) -> Check {
        let value = match (src, size) {
            (Operand::Reg(reg), _) => {
                self.read(reg)?;
                self.linked_for_spill(reg)?
            }
            (Operand::Imm(_), _) => self.operand(src)?,
        };
        let pointer = self.base(base, offset)?;
        let span = span(base, pointer, offset, size, Access::Write);
        match pointer.target {
            Target::Stack { frame } => self.store_stack(&span, usize::from(frame), src, value),
            _ => {
                self.note_as_number(&value);
                self.check_span(&span)
            }
        }
    }

    pub(super) fn atomic(&mut self, width: Width, op: AtomicOp, base: Reg, offset: i16, src: Reg) -> Check {
        let size = if width == Width::W64 { Size::Dw } else { Size::W };
        let value = self.read(src)?;
        self.note_as_number(&value);
        if op == AtomicOp::CmpXchg {
            let expected = self.read(Reg::R0)?;
            self.note_as_number(&expected);
        }
        self.check_atomic_target(base, offset, size)?;
        let old = self.load(base, offset, size, false)?;
        self.note_as_number(&old);
        let pointer = self.base(base, offset)?;
        let span = span(base, pointer, offset, size, Access::Write);
        match pointer.target {
            Target::Stack { frame } => self.overwrite_stack(&span, usize::from(frame))?,
            _ => self.check_span(&span)?,
        }
        match op {
            AtomicOp::CmpXchg => self.write(Reg::R0, old),
            _ if op.fetches() => self.write(src, old),
            _ => Ok(()),
        }
    }

    /// Atomic operations are allowed on maps, the stack and plain memory, at aligned addresses. A slice has no known
    /// alignment; the kernel treats it as plain memory.
    pub(super) fn check_atomic_target(&mut self, base: Reg, offset: i16, size: Size) -> Check {
        let Value::Pointer(pointer) = self.read(base)? else { return Ok(()) };
        let is_refused = matches!(
            pointer.target,
            Target::Context
                | Target::Packet { .. }
                | Target::Slice { .. }
                | Target::Object(_)
                | Target::Map(_)
                | Target::Dynptr { .. }
        );
        if is_refused {
            return reject(Cause::Atomic(RegName(base), pointer.target.to_string()));
        }
        let span = span(base, pointer, offset, size, Access::Write);
        if matches!(pointer.target, Target::Stack { .. }) {
            return check_aligned(&span);
        }
        if !span.is_aligned() {
            return reject(Cause::AtomicAlignment(RegName(base), size.bytes()));
        }
        if let Target::Memory { lent: Some(lent), .. } = pointer.target {
            self.need_of_lent(lent, Needs::to_be_aligned(size.bytes()));
        }
        Ok(())
    }

    /// The pointer in a base register, valid for an access.
    fn base(&mut self, base: Reg, offset: i16) -> Check<Pointer> {
        let pointer = match self.read(base)? {
            Value::Pointer(pointer) => pointer,
            other => return reject(Cause::NoMemory(RegName(base), describe(&other))),
        };
        if pointer.nullable {
            return reject_with(Cause::MayBeNull(RegName(base), pointer.target), Hint::NullCheck);
        }
        // Context accesses are translated, so the base must be the context on every path.
        if let Some(before) = self.facts.base(self.slot) {
            let is_context = pointer.target == Target::Context;
            if is_context != (before == Base::Context) {
                let other = if is_context { Target::PacketEnd } else { Target::Context };
                let other = if is_context { other_of(before).unwrap_or(other) } else { other };
                return reject(Cause::MixedPointers(other, pointer.target));
            }
        }
        let depth = self.state.depth();
        self.facts.memory(self.slot, &pointer, offset, depth);
        Ok(pointer)
    }

    /// Checks an access to anything but the stack and the context.
    pub(super) fn check_span(&mut self, span: &Span) -> Check {
        match span.pointer.target {
            Target::MapValue(map) => self.check_map_value(span, map),
            Target::Packet { range, .. } => span.check_packet(range),
            Target::Memory { size, writable, lent } => {
                span.check_memory(size, writable)?;
                self.touch_lent(lent);
                Ok(())
            }
            Target::Slice { size, writable, buffer, lent } => {
                span.check_memory(size, writable)?;
                self.touch_lent(lent);
                buffer.map_or(Ok(()), |buffer| self.touch_buffer(span.access, buffer))
            }
            Target::Record { size } => span.check_within(u64::from(size)),
            Target::Object(kind) => span.object_field(kind).map(drop),
            Target::Map(_) => span.object_field(ObjectKind::Map).map(drop),
            Target::Context if span.access == Access::Write => {
                check_context_pointer(span.register, &span.pointer)?;
                self.context_field(span).map(drop)
            }
            _ => {
                let found = describe(&Value::Pointer(span.pointer));
                reject(Cause::NoMemory(RegName(span.register), found))
            }
        }
    }

    pub(super) fn check_map_value(&self, span: &Span, map: MapRef) -> Check {
        let Some(spec) = self.map(map) else { return reject(Cause::NoMap(map.index as i32)) };
        let (register, target) = (RegName(span.register), span.pointer.target);
        match span.access {
            Access::Write if is_read_only(spec) => {
                return reject(Cause::ReadOnly(register, target));
            }
            Access::Read if spec.flags.contains(MapFlags::WRONLY_PROG) => {
                return reject(Cause::WriteOnly(register, target));
            }
            _ => {}
        }
        span.check_within(u64::from(spec.value_size))?;
        self.check_special_fields(span, spec)
    }

    /// The constant that a load from a frozen map reads, such as `.rodata`.
    fn frozen_value(&self, span: &Span, map: MapRef) -> Option<Number> {
        let stored = self.frozen_bytes(map)?;
        let offset = usize::try_from(span.pointer.offset()?.checked_add(span.offset)?).ok()?;
        let size = usize::try_from(span.size).ok().filter(|size| *size <= 8)?;
        let mut value = [0u8; 8];
        for (i, place) in value.iter_mut().take(size).enumerate() {
            *place = offset.checked_add(i).and_then(|i| stored.get(i)).copied().unwrap_or(0);
        }
        if cfg!(target_endian = "big") {
            value.rotate_right(8 - size);
        }
        Some(Number::constant(u64::from_ne_bytes(value)))
    }

    /// The value of a frozen map, without its trailing zeros.
    pub(super) fn frozen_bytes(&self, map: MapRef) -> Option<&[u8]> {
        let spec = self.map(map).filter(|spec| has_constant_value(spec) && !map.inner)?;
        match spec.contents.first() {
            Some((_, InitialValue::Bytes(bytes))) => Some(bytes),
            Some(_) => None,
            None => Some(&[]),
        }
    }

    fn load_context(&mut self, span: &Span, signed: bool) -> Check<Value> {
        check_context_pointer(span.register, &span.pointer)?;
        let start = |region| Target::Packet { region, range: PacketRange::Bytes(0) };
        let target = match self.context_field(span)?.kind {
            FieldKind::PacketData => start(Region::Data),
            FieldKind::PacketMeta => start(Region::Meta),
            FieldKind::PacketEnd => Target::PacketEnd,
            _ => return Ok(Value::number(Number::unsigned(span.size as u32 * 8))),
        };
        if signed {
            // A pointer cannot be sign-extended.
            return reject(Cause::Context { offset: span.fixed(), size: span.size, write: false });
        }
        Ok(Value::Pointer(Pointer::to(target)))
    }

    /// The accessed field, if this program type may access it.
    fn context_field(&self, span: &Span) -> Check<&'static Field> {
        let (offset, size, write) = (span.fixed(), span.size, span.access == Access::Write);
        let at = u64::try_from(offset).ok();
        let field = at.and_then(|at| self.program.kind.context_field(at, size, write));
        field.map_or_else(|| reject(Cause::Context { offset, size, write }), Ok)
    }

    /// A legacy packet load (`check_ld_abs`). Beyond the packet's end it returns 0 from the function.
    pub(super) fn load_packet(&mut self, size: Size, index: Option<Reg>) -> Check<Next> {
        if !self.program.kind.rules().packet_loads {
            return reject(Cause::NotAllowed("a legacy packet load"));
        }
        self.check_no_lock("a legacy packet load")?;
        self.check_nothing_held()?;
        let context = self.read(Reg::R6)?;
        let Some(pointer) = context.pointer().filter(|p| p.target == Target::Context && !p.nullable) else {
            return reject(Cause::NoMemory(RegName(Reg::R6), describe(&context)));
        };
        if let Some(index) = index {
            self.read(index)?;
        }
        check_context_pointer(Reg::R6, pointer)?;
        self.forget_caller_saved();
        self.write(Reg::R0, Value::number(Number::unsigned(bits(size))))?;
        self.may_return(|walk| walk.state.set(Reg::R0, Value::number(Number::ZERO)))
    }
}

/// The context pointer must be unmodified.
pub(super) fn check_context_pointer(register: Reg, pointer: &Pointer) -> Check {
    match pointer.offset() {
        Some(0) => Ok(()),
        Some(offset) => reject(Cause::ChangedContext(RegName(register), offset.to_string())),
        None => reject(Cause::ChangedContext(RegName(register), pointer.variable.to_string())),
    }
}

/// A value's description, for messages.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Unset => "nothing".to_owned(),
        Value::Scalar(_) => "a number".to_owned(),
        Value::Iterator(_) => "an iterator".to_owned(),
        Value::Dynptr(_) => "a dynptr".to_owned(),
        Value::Pointer(pointer) if pointer.nullable => format!("a pointer to {} or null", pointer.target),
        Value::Pointer(pointer) => format!("a pointer to {}", pointer.target),
    }
}

fn span(register: Reg, pointer: Pointer, offset: i16, size: Size, access: Access) -> Span {
    Span { register, pointer, offset: i64::from(offset), size: size.bytes() as u64, access }
}

fn sign_extended(value: Value, size: Size) -> Value {
    match value {
        Value::Scalar(mut scalar) => {
            let fits = scalar.number.umax() < 1 << (bits(size) - 1);
            scalar.number = scalar.number.sign_extend(bits(size));
            scalar.link = scalar.link.filter(|_| fits);
            Value::Scalar(scalar)
        }
        other => other,
    }
}

/// Whether programs may only read a map's values: by its flags, or by its kind (device maps, `dev_map_init_map`).
fn is_read_only(spec: &MapSpec) -> bool {
    spec.flags.contains(MapFlags::RDONLY_PROG) || spec.kind.is_read_only()
}

/// Whether a map has one value, which is constant and known (`bpf_map_is_rdonly`, `map_direct_value_addr`).
fn has_constant_value(spec: &MapSpec) -> bool {
    spec.is_constant() && spec.kind.rules().is_addressable && spec.max_entries == 1
}

fn other_of(base: Base) -> Option<Target> {
    Some(match base {
        Base::OwnStack | Base::CallerStack => Target::Stack { frame: 0 },
        Base::MapValue(map) => Target::MapValue(map),
        Base::Packet => Target::Packet { region: Region::Data, range: PacketRange::Bytes(0) },
        _ => return None,
    })
}
