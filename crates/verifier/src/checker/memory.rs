//! Loads, stores and atomic operations: the rules of each kind of memory.

use paceline_isa::{Reg, Size};
use paceline_spec::context::{Field, FieldKind};
use paceline_spec::{MapFlags, MapSpec, ObjectKind};

use super::describe::describe;
use super::registers::Checker;
use super::span::{check_aligned, check_context_pointer};
use crate::domain::access::{Access, Span};
use crate::domain::state::{Buffer, Lent, MapRef, PacketRange, Pointer, Region, Target, Value};
use crate::error::{Cause, Check, Hint, RegName, reject, reject_with};
use crate::facts::Base;
use crate::records::loans::Needs;

impl Checker<'_> {
    /// The access through a base register, whose pointer must be valid for it.
    pub(crate) fn base(&mut self, base: Reg, offset: i16, size: Size, access: Access) -> Check<Span> {
        let pointer = match self.read(base)? {
            Value::Pointer(pointer) => pointer,
            other => return reject(Cause::NoMemory(RegName(base), describe(&other))),
        };
        if pointer.nullable {
            return reject_with(Cause::MayBeNull(RegName(base), pointer.target), Hint::NullCheck);
        }
        // Context accesses are translated, so the base must be the context on every path.
        if let Some(before) = self.records.facts.base(self.slot) {
            let is_context = pointer.target == Target::Context;
            if is_context != (before == Base::Context) {
                let other = if is_context { Target::PacketEnd } else { Target::Context };
                let other = if is_context { other_of(before).unwrap_or(other) } else { other };
                return reject(Cause::MixedPointers(other, pointer.target));
            }
        }
        let depth = self.state.depth();
        self.records.facts.memory(self.slot, &pointer, offset, depth);
        Ok(span(base, pointer, offset, size, access))
    }

    /// Checks an access to anything but the stack and the context. An access through a slice may be one to its buffer on the
    /// stack.
    pub(crate) fn check_span(&mut self, span: &Span) -> Check {
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
                match buffer {
                    Some(Buffer::Stack { frame, start, end }) if span.access == Access::Read => {
                        self.note_read(frame.into(), start.into(), end.abs_diff(start).into())
                    }
                    _ => Ok(()),
                }
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

    pub(crate) fn check_map_value(&self, span: &Span, map: MapRef) -> Check {
        let Some(spec) = self.env.map(map) else { return reject(Cause::NoMap(map.index as i32)) };
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

    /// The field of the context that a load reads.
    pub(crate) fn context_load(&self, span: &Span, signed: bool) -> Check<&'static Field> {
        check_context_pointer(span.register, &span.pointer)?;
        let field = self.context_field(span)?;
        let is_pointer =
            matches!(field.kind, FieldKind::PacketData | FieldKind::PacketMeta | FieldKind::PacketEnd);
        if signed && is_pointer {
            // A pointer cannot be sign-extended.
            return reject(Cause::Context { offset: span.fixed(), size: span.size, write: false });
        }
        Ok(field)
    }

    /// The accessed field, if this program type may access it.
    fn context_field(&self, span: &Span) -> Check<&'static Field> {
        let (offset, size, write) = (span.fixed(), span.size, span.access == Access::Write);
        let at = u64::try_from(offset).ok();
        let field = at.and_then(|at| self.env.program.kind.context_field(at, size, write));
        field.map_or_else(|| reject(Cause::Context { offset, size, write }), Ok)
    }

    /// Atomic operations are allowed on maps, the stack and plain memory, at aligned addresses. A slice has no known
    /// alignment; the kernel treats it as plain memory.
    pub(crate) fn check_atomic_target(&mut self, base: Reg, offset: i16, size: Size) -> Check {
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

    /// Adds a requirement to a memory argument of the running function.
    fn need_of_lent(&mut self, lent: Lent, needs: Needs) {
        let function = self.records.roots.current().function();
        self.records.loans.need((function, lent.parameter), needs);
    }

    /// Memory is accessed: if the packet was moved since the call, the memory must not lie in the packet.
    fn touch_lent(&mut self, lent: Option<Lent>) {
        if let Some(lent) = lent.filter(|lent| lent.packet_moved) {
            self.need_of_lent(lent, Needs::TO_STAY);
        }
    }

    /// A legacy packet load (`check_ld_abs`).
    pub(crate) fn check_packet_load(&self, index: Option<Reg>) -> Check {
        if !self.env.program.kind.rules().packet_loads {
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
        check_context_pointer(Reg::R6, pointer)
    }
}

fn span(register: Reg, pointer: Pointer, offset: i16, size: Size, access: Access) -> Span {
    Span { register, pointer, offset: i64::from(offset), size: size.bytes() as u64, access }
}

/// Whether programs may only read a map's values: by its flags, or by its kind (device maps, `dev_map_init_map`).
fn is_read_only(spec: &MapSpec) -> bool {
    spec.flags.contains(MapFlags::RDONLY_PROG) || spec.kind.is_read_only()
}

fn other_of(base: Base) -> Option<Target> {
    Some(match base {
        Base::OwnStack | Base::CallerStack => Target::Stack { frame: 0 },
        Base::MapValue(map) => Target::MapValue(map),
        Base::Packet => Target::Packet { region: Region::Data, range: PacketRange::Bytes(0) },
        _ => return None,
    })
}
