//! Loads, stores and atomic operations.

use paceline_isa::{AtomicOp, Operand, Reg, Size, Width};
use paceline_spec::context::{Field, FieldKind};

use super::next::Next;
use super::registers::Transformer;
use crate::checker::Effect;
use crate::domain::access::{Access, Span, bits};
use crate::domain::number::Number;
use crate::domain::state::{Buffer, MapRef, PacketRange, Pointer, Region, Target, Value};
use crate::error::Check;

impl Transformer<'_> {
    /// The value that a load gives.
    pub(super) fn load(&mut self, base: Reg, offset: i16, size: Size, signed: bool) -> Check<Value> {
        let span = self.check().base(base, offset, size, Access::Read)?;
        let any = Number::unsigned(bits(size));
        let value = match span.pointer.target {
            Target::Stack { frame } => self.load_stack(&span, usize::from(frame))?,
            Target::Context => context_value(self.check().context_load(&span, signed)?, &span),
            Target::MapValue(map) => {
                self.check().check_map_value(&span, map)?;
                Value::number(self.frozen_value(&span, map).unwrap_or(any))
            }
            // `btf_struct_access`
            Target::Object(kind) => match span.object_field(kind)?.to {
                Some(kind) => Value::Pointer(Pointer::to(Target::Object(kind))),
                None => Value::number(any),
            },
            _ => {
                self.check().check_span(&span)?;
                Value::number(any)
            }
        };
        Ok(if signed { sign_extended(value, size) } else { value })
    }

    pub(super) fn store(&mut self, base: Reg, offset: i16, size: Size, src: Operand) -> Check {
        let value = match src {
            Operand::Reg(reg) => self.linked(reg)?,
            Operand::Imm(_) => self.check().operand(src)?,
        };
        let span = self.check().base(base, offset, size, Access::Write)?;
        match span.pointer.target {
            Target::Stack { frame } => self.store_stack(&span, usize::from(frame), src, value),
            _ => {
                self.note_as_number(&value);
                self.write_memory(&span)
            }
        }
    }

    pub(super) fn atomic(&mut self, width: Width, op: AtomicOp, base: Reg, offset: i16, src: Reg) -> Check {
        let size = if width == Width::W64 { Size::Dw } else { Size::W };
        let value = self.check().read(src)?;
        self.note_as_number(&value);
        if op == AtomicOp::CmpXchg {
            let expected = self.check().read(Reg::R0)?;
            self.note_as_number(&expected);
        }
        self.check().check_atomic_target(base, offset, size)?;
        let old = self.load(base, offset, size, false)?;
        self.note_as_number(&old);
        let span = self.check().base(base, offset, size, Access::Write)?;
        match span.pointer.target {
            Target::Stack { frame } => self.overwrite_stack(&span, usize::from(frame))?,
            _ => self.write_memory(&span)?,
        }
        match op {
            AtomicOp::CmpXchg => self.write(Reg::R0, old),
            _ if op.fetches() => self.write(src, old),
            _ => Ok(()),
        }
    }

    /// A write to anything but the stack; one through a slice may be one to its buffer on the stack.
    fn write_memory(&mut self, span: &Span) -> Check {
        self.check().check_span(span)?;
        self.write_buffer(span)
    }

    fn write_buffer(&mut self, span: &Span) -> Check {
        match span.pointer.target {
            Target::Slice { buffer: Some(Buffer::Stack { frame, start, end }), .. } => {
                self.overwrite_bytes(frame.into(), start.into(), end.abs_diff(start).into())
            }
            _ => Ok(()),
        }
    }

    /// The change of the state by an argument that was checked.
    pub(super) fn take_effect(&mut self, effect: Option<Effect>) -> Check {
        match effect {
            None => Ok(()),
            Some(Effect::Write(span)) => match span.pointer.target {
                Target::Stack { frame } => self.overwrite_stack(&span, frame.into()),
                _ => self.write_buffer(&span),
            },
            Some(Effect::Place(span)) => self.clear_place(&span),
            Some(Effect::Lock(lock)) => {
                self.state.lock = lock;
                Ok(())
            }
        }
    }

    /// The constant that a load from a frozen map reads, such as `.rodata`.
    fn frozen_value(&self, span: &Span, map: MapRef) -> Option<Number> {
        let stored = self.env.frozen_bytes(map)?;
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

    /// A legacy packet load (`check_ld_abs`). Beyond the packet's end it returns 0 from the function.
    pub(super) fn load_packet(&mut self, size: Size, index: Option<Reg>) -> Check<Next> {
        self.check().check_packet_load(index)?;
        self.forget_caller_saved();
        self.write(Reg::R0, Value::number(Number::unsigned(bits(size))))?;
        self.may_return(|path| path.state.set(Reg::R0, Value::number(Number::ZERO)))
    }
}

/// The value of a field of the context.
fn context_value(field: &Field, span: &Span) -> Value {
    let start = |region| Target::Packet { region, range: PacketRange::Bytes(0) };
    let target = match field.kind {
        FieldKind::PacketData => start(Region::Data),
        FieldKind::PacketMeta => start(Region::Meta),
        FieldKind::PacketEnd => Target::PacketEnd,
        _ => return Value::number(Number::unsigned(span.size as u32 * 8)),
    };
    Value::Pointer(Pointer::to(target))
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
