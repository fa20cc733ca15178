//! Accesses against the size and the alignment of what is accessed.

use paceline_isa::Reg;
use paceline_spec::{ObjectField, ObjectKind};

use crate::domain::access::{Access, Span};
use crate::domain::state::{PacketRange, Pointer};
use crate::error::{Cause, Check, Hint, RegName, reject, reject_with};
use crate::limits::MAX_OFFSET;

impl Span {
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
    pub(crate) fn check_within(&self, limit: u64) -> Check {
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
    pub(super) fn check_memory(&self, size: u32, writable: bool) -> Check {
        if self.access == Access::Write && !writable {
            return reject(Cause::ReadOnly(RegName(self.register), self.pointer.target));
        }
        self.check_within(u64::from(size))
    }

    /// Checks against the bounds-checked bytes of the packet (`check_packet_access`).
    pub(crate) fn check_packet(&self, range: PacketRange) -> Check {
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

    /// The accessed field of an object; the offset must be constant.
    pub(crate) fn object_field(&self, kind: ObjectKind) -> Check<&'static ObjectField> {
        let range = self.offsets();
        if range.min != range.max {
            return reject(Cause::UnboundedOffset(RegName(self.register), self.pointer.target));
        }
        let write = self.access == Access::Write;
        let offset = u64::try_from(range.min).ok();
        match offset.and_then(|offset| kind.field(offset, self.size, write)) {
            Some(field) => Ok(field),
            None => reject(Cause::Object { kind, offset: range.min, size: self.size, write }),
        }
    }
}

/// Stack accesses must be aligned at every possible offset, on every machine, so that spilled registers are not split.
pub(crate) fn check_aligned(span: &Span) -> Check {
    if span.is_aligned() {
        return Ok(());
    }
    reject(Cause::StackAlignment { offset: span.offsets(), size: span.size })
}

/// The context pointer must be unmodified.
pub(crate) fn check_context_pointer(register: Reg, pointer: &Pointer) -> Check {
    match pointer.offset() {
        Some(0) => Ok(()),
        Some(offset) => reject(Cause::ChangedContext(RegName(register), offset.to_string())),
        None => reject(Cause::ChangedContext(RegName(register), pointer.variable.to_string())),
    }
}
