//! Accesses to the context, and legacy packet loads.

use crate::context;
use crate::fault::FaultKind;
use crate::memory;
use crate::region::Access;
use paceline_isa::{Size, SwapOrder, eval};
use paceline_spec::context::{Field, Permission, Place};

use super::Machine;

impl Machine<'_> {
    /// The accessed field, if programs of this type may access it so.
    pub(super) fn context_field(
        &self,
        offset: u64,
        len: u64,
        access: Access,
    ) -> Result<&'static Field, FaultKind> {
        let kind = self.image.spec.kind;
        let refused = FaultKind::Context { access, context: kind.context().name, offset, len };
        kind.context_field(offset, len, access == Access::Write).ok_or(refused)
    }

    /// Loads a field of the context, computed from the frame; pointers are 64 bits wide.
    pub(super) fn load_context(&self, offset: u64, size: Size) -> Result<u64, FaultKind> {
        let len = size.bytes() as u64;
        let field = self.context_field(offset, len, Access::Read)?;
        let Some(frame) = self.regions.frame() else {
            let context = self.image.spec.kind.context().name;
            return Err(FaultKind::Context { access: Access::Read, context, offset, len });
        };
        let (start, there) = match field.place {
            Place::Frame { offset, .. } => (std::ptr::from_ref(frame) as u64, offset),
            Place::Host { offset, .. } => (self.host.area.address(), offset),
            Place::Computed(rule) => {
                let number = context::number(frame, rule);
                return Ok(context::part(number, offset - u64::from(field.offset), size));
            }
            Place::Zero => return Ok(0),
        };
        let (at, len) = field.part(offset, len);
        let part = Size::from_bytes(len.into());
        // SAFETY: the bytes lie in a member of the frame, or of the host's area for the packet.
        Ok(part.map_or(0, |part| unsafe { memory::load(start + u64::from(there + at), part) }))
    }

    /// Stores to a field that programs may write; all of these are in the host.
    pub(super) fn store_context(&self, offset: u64, size: Size, value: u64) -> Result<(), FaultKind> {
        let len = size.bytes() as u64;
        let field = self.context_field(offset, len, Access::Write)?;
        let Place::Host { offset: there, size: most, .. } = field.place else {
            let context = self.image.spec.kind.context().name;
            return Err(FaultKind::Context { access: Access::Write, context, offset, len });
        };
        let (at, len) = field.part(offset, len);
        let Some(part) = Size::from_bytes(len.into()) else { return Ok(()) };
        if field.permission == Permission::WriteBelowMax && value >= u64::MAX >> (64 - 8 * most) {
            return Ok(());
        }
        // SAFETY: the bytes lie in a member of the host's area for the packet.
        unsafe { memory::store(self.host.area.address() + u64::from(there + at), part, value) };
        Ok(())
    }

    /// A legacy packet load, big-endian, from the packet or the caller's memory.
    ///
    /// Negative offsets, from which Linux reaches the headers and other facts (`SKF_NET_OFF`, `SKF_AD_OFF`), are
    /// outside of the packet.
    pub(super) fn load_packet(&self, offset: i64, size: Size) -> Option<u64> {
        let range = match self.regions.frame() {
            Some(frame) => frame.data() as u64..frame.data_end() as u64,
            None => self.regions.memory.clone(),
        };
        let address = range.start.checked_add(u64::try_from(offset).ok()?)?;
        if address.checked_add(size.bytes() as u64)? > range.end {
            return None;
        }
        // SAFETY: the bytes lie inside the packet, or the memory that the caller lent for the run.
        let value = unsafe { memory::load(address, size) };
        Some(eval::swap(SwapOrder::ToBe, size, value))
    }
}
