//! Accesses to fields of the context, which are in the packet's frame, in the host, or computed.

use crate::codegen::lir::{Place as Where, Vreg};
use crate::ir::{CONTEXT_BYTES, Value};
use paceline_isa::Size;
use paceline_spec::context::{Field, Permission, Place, Rule};

use super::choice::{Choice, defined, defined_in, fixed, used};
use crate::internal::Internal;
use crate::native::machine::op::{At, Called, Op, ShiftOp};
use crate::native::machine::operand::Width;
use crate::native::machine::target::Target;
use crate::native::unsupported::Unsupported;

impl<A: Target> Choice<'_, '_, A> {
    fn field(&mut self, size: Size, offset: i32, write: bool) -> Result<(&'static Field, u64), Internal> {
        let kind = self.generator.program(self.slot()?)?.kind;
        let start = u64::try_from(offset % CONTEXT_BYTES).ok();
        let found =
            start.and_then(|start| Some((kind.context_field(start, size.bytes() as u64, write)?, start)));
        found.ok_or_else(|| self.generator.unsupported(Unsupported::ContextField { offset }))
    }

    pub(super) fn load_context(
        &mut self,
        size: Size,
        signed: bool,
        context: Value,
        offset: i32,
        result: Vreg,
    ) -> Result<(), Internal> {
        let (field, start) = self.field(size, offset, false)?;
        let (first, len) = field.part(start, size.bytes() as u64);
        // All of a pointer is loaded, whatever the size of the access.
        let (base, member) = match field.place {
            Place::Frame { offset, .. } => (self.value(context)?, i32::from(offset)),
            Place::Host { offset, .. } => (self.host()?, self.generator.links.host.area + i32::from(offset)),
            Place::Computed(rule) => {
                let within = start as i32 - i32::from(field.offset);
                return self.computed(rule, context, (within, size, signed), result);
            }
            Place::Zero => return self.zero(result),
        };
        let Some(part) = part_of_size(len)? else { return self.zero(result) };
        let (size, signed) = (part, signed && part == size && part != Size::Dw);
        let at = At::Base(member + i32::from(first));
        self.push(Op::Load { size, signed, at }, &[used(base), defined(result)]);
        Ok(())
    }

    /// A field, or a part of it, that is 0.
    fn zero(&mut self, result: Vreg) -> Result<(), Internal> {
        self.push(Op::Number(0), &[defined(result)]);
        Ok(())
    }

    /// A part of a number that is computed from the frame.
    fn computed(
        &mut self,
        rule: Rule,
        context: Value,
        (within, size, signed): (i32, Size, bool),
        result: Vreg,
    ) -> Result<(), Internal> {
        let (frame, mut number) = (self.value(context)?, self.fresh());
        if rule == Rule::PacketLen {
            self.push(Op::PacketLen, &[used(frame), defined_in(number, Where::Early)]);
        } else {
            let address = self.generator.links.rules.get(rule as usize).copied();
            let address = address.ok_or(Internal("a rule of the context has no function"))?;
            let operands = [fixed(frame, A::ARGUMENTS[0]), defined_in(number, Where::Fixed(A::RESULT))];
            self.generator.current.needs.calls = true;
            self.push_clobbering(Op::Call(Called::Runtime(address)), &operands, A::CALLER_SAVED);
        }
        if within != 0 {
            let shifted = self.fresh();
            let shift = Op::ShiftImm(ShiftOp::Lshr, Width::D32, 8 * within as u8);
            self.push(shift, &[used(number), defined_in(shifted, Where::Reuse(0))]);
            number = shifted;
        }
        let extend = match signed {
            true => Op::SignExtend(Width::Q64, size),
            false => Op::ZeroExtend(size),
        };
        self.push(extend, &[used(number), defined(result)]);
        Ok(())
    }

    pub(super) fn store_context(&mut self, size: Size, offset: i32, value: Value) -> Result<(), Internal> {
        let (field, start) = self.field(size, offset, true)?;
        let (first, len) = field.part(start, size.bytes() as u64);
        let Place::Host { offset, .. } = field.place else {
            return Err(Internal("a field that is not the host's is written"));
        };
        let Some(size) = part_of_size(len)? else { return Ok(()) };
        let at = At::Base(self.generator.links.host.area + i32::from(offset) + i32::from(first));
        let host = used(self.host()?);
        if field.permission != Permission::WriteBelowMax {
            return self.store_at(size, at, Some(host), value);
        }
        let most = u64::MAX >> (64 - 8 * size.bytes());
        match self.function.as_const(self.same(value)) {
            Some(number) if number < most => self.store_at(size, at, Some(host), value)?,
            Some(_) => {}
            None => {
                let value = self.value(value)?;
                self.push(Op::StoreBelow(size, at, most), &[host, used(value)]);
            }
        }
        Ok(())
    }
}

/// The size of a part of a field; `None` if it is empty.
fn part_of_size(len: u16) -> Result<Option<Size>, Internal> {
    match (len, Size::from_bytes(len.into())) {
        (0, _) => Ok(None),
        (_, None) => Err(Internal("a part of a field is of no size")),
        (_, found) => Ok(found),
    }
}
