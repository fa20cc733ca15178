//! The context and the legacy packet loads: what a program sees of its packet.

use paceline_isa::{Size, SwapOrder, eval};
use paceline_spec::context::{Field, FieldKind};

use super::Machine;
use crate::context;
use crate::fault::FaultKind;
use crate::memory;
use crate::region::Access;

impl Machine<'_> {
    /// The field that is accessed, if programs of this type may do that.
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

    /// A field of the context, made from the frame when it is read; pointers come whole into the register.
    pub(super) fn load_context(&self, offset: u64, size: Size) -> Result<u64, FaultKind> {
        let len = size.bytes() as u64;
        let field = self.context_field(offset, len, Access::Read)?;
        let Some(frame) = self.regions.frame() else {
            let context = self.image.spec.kind.context().name;
            return Err(FaultKind::Context { access: Access::Read, context, offset, len });
        };
        match field.kind {
            FieldKind::PacketData => Ok(frame.data() as u64),
            FieldKind::PacketEnd => Ok(frame.data_end() as u64),
            FieldKind::PacketMeta => Ok(frame.data_meta() as u64),
            // SAFETY: scratch is initialized memory of the host's, and the access lies in it.
            FieldKind::Scratch => Ok(unsafe { memory::load(self.scratch(field, offset), size) }),
            kind => Ok(context::part(context::number(frame, kind), offset - u64::from(field.offset), size)),
        }
    }

    /// Stores to a field that programs may write, which are those of the scratch area.
    pub(super) fn store_context(&self, offset: u64, size: Size, value: u64) -> Result<(), FaultKind> {
        let address = self.stored_context(offset, size)?;
        // SAFETY: scratch is memory of the host's, and the access lies in it.
        unsafe { memory::store(address, size, value) };
        Ok(())
    }

    /// Where a store to a field goes.
    pub(super) fn stored_context(&self, offset: u64, size: Size) -> Result<u64, FaultKind> {
        let field = self.context_field(offset, size.bytes() as u64, Access::Write)?;
        Ok(self.scratch(field, offset))
    }

    /// The address in the host of a place in the scratch area.
    fn scratch(&self, field: &Field, offset: u64) -> u64 {
        self.host.scratch.as_ptr() as u64 + (offset - u64::from(field.offset))
    }

    /// A legacy packet load, big-endian, from the packet or the memory the program was given.
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
