//! The context and the legacy packet loads: what a program sees of its packet.

use paceline_isa::{Size, SwapOrder, eval};
use paceline_spec::context::{Field, FieldKind};

use super::Machine;
use crate::fault::FaultKind;
use crate::memory;
use crate::region::Access;

/// Length of an Ethernet header, and where its type is.
const ETHERNET_LEN: usize = 14;
const ETHERNET_TYPE: usize = 12;

/// Least value of an Ethernet type; below it is a length (`ETH_P_802_3_MIN`).
const LEAST_TYPE: u16 = 0x600;

/// Protocols of frames with a length instead of a type (`ETH_P_802_3`, `ETH_P_802_2`).
const RAW_802_3: u16 = 1;
const LLC: u16 = 4;

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
        let number = match field.kind {
            FieldKind::PacketData => return Ok(frame.data() as u64),
            FieldKind::PacketEnd => return Ok(frame.data_end() as u64),
            FieldKind::PacketMeta => return Ok(frame.data_meta() as u64),
            FieldKind::Scratch => {
                // SAFETY: scratch is initialized memory of the host's, and the access lies in it.
                return Ok(unsafe { memory::load(self.scratch(field, offset), size) });
            }
            FieldKind::IngressIfindex => frame.ingress_ifindex(),
            FieldKind::RxQueueIndex => u32::from(frame.rx_queue()),
            FieldKind::EgressIfindex => frame.egress_ifindex(),
            FieldKind::PacketLen => frame.len() as u32,
            FieldKind::PacketType => packet_type(frame.packet()),
            FieldKind::Protocol => u32::from(protocol(frame.packet()).to_be()),
            FieldKind::Zero => 0,
        };
        Ok(part(number, offset - u64::from(field.offset), size))
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

/// `size` bytes at `offset` of a number in memory.
fn part(number: u32, offset: u64, size: Size) -> u64 {
    let shift = if cfg!(target_endian = "big") { 4 - size.bytes() as u64 - offset } else { offset };
    eval::zero_extend(size, u64::from(number) >> (shift * 8))
}

/// Whom the packet is for, by its destination address; one host's address is taken to be ours.
pub(crate) fn packet_type(packet: &[u8]) -> u32 {
    const HOST: u32 = 0;
    const BROADCAST: u32 = 1;
    const MULTICAST: u32 = 2;
    match packet.get(..6) {
        Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => BROADCAST,
        Some([first, ..]) if first & 1 != 0 => MULTICAST,
        _ => HOST,
    }
}

/// The protocol that `eth_type_trans` in `net/ethernet/eth.c` finds, in host order. VLAN tags stay in the packet, so
/// that of a tagged one is its tag's. 0 for packets shorter than a header.
pub(crate) fn protocol(packet: &[u8]) -> u16 {
    let Some(&[high, low]) = packet.get(ETHERNET_TYPE..ETHERNET_LEN) else { return 0 };
    match u16::from_be_bytes([high, low]) {
        ethertype if ethertype >= LEAST_TYPE => ethertype,
        _ if packet.get(ETHERNET_LEN..).is_some_and(|rest| rest.starts_with(&[0xff, 0xff])) => RAW_802_3,
        _ => LLC,
    }
}
