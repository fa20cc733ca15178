//! VLAN tags. The outermost one that a program pushes is kept beside the packet, as the kernel does, and is put into it when the
//! run ends ([`Host::put_tag`]).

use paceline_spec::Errno;
use paceline_spec::context::SkBuff;

use super::packet::{Packet, Skb};
use crate::context::ETHERNET_LEN;
use crate::host::Host;

/// `ETH_P_8021Q` and `ETH_P_8021AD`.
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
/// Length of a tag, and of the addresses before it.
const TAG: usize = 4;
const ADDRESSES: usize = 12;

fn is_vlan(protocol: u16) -> bool {
    [VLAN, SERVICE_VLAN].contains(&protocol)
}

/// `long bpf_skb_vlan_push(skb, vlan_proto, vlan_tci)`
pub(super) fn push(host: &mut Host, mut skb: Skb<'_>, protocol: u16, tci: u16) -> Result<(), Errno> {
    let protocol = Some(u16::from_be(protocol)).filter(|protocol| is_vlan(*protocol));
    skb.with(host, |packet| {
        if packet.facts.vlan_present != 0 {
            insert(packet)?;
            packet.facts.protocol = packet.facts.vlan_proto;
        }
        // default: the kernel takes other protocols for that of VLANs.
        keep(packet.facts, protocol.unwrap_or(VLAN), tci);
        Ok(())
    })
}

/// `long bpf_skb_vlan_pop(skb)`
pub(super) fn pop(host: &mut Host, mut skb: Skb<'_>) -> Result<(), Errno> {
    skb.with(host, |packet| {
        if packet.facts.vlan_present == 0 {
            if !is_vlan(packet.protocol()) {
                return Ok(());
            }
            remove(packet)?;
        }
        (packet.facts.vlan_present, packet.facts.vlan_tci, packet.facts.vlan_proto) = (0, 0, 0);
        // The next tag is kept beside the packet.
        let protocol = packet.protocol();
        if is_vlan(protocol) {
            let tci = remove(packet)?;
            keep(packet.facts, protocol, tci);
        }
        Ok(())
    })
}

/// `__vlan_hwaccel_put_tag`
fn keep(facts: &mut SkBuff, protocol: u16, tci: u16) {
    (facts.vlan_present, facts.vlan_proto, facts.vlan_tci) = (1, protocol.to_be(), tci);
}

/// Puts the tag that is kept beside the packet into it (`__vlan_insert_tag`). It is what the network's header is from then on.
fn insert(packet: &mut Packet<'_>) -> Result<(), Errno> {
    packet.insert(ADDRESSES, TAG)?;
    let (protocol, tci) = (packet.facts.vlan_proto.to_ne_bytes(), packet.facts.vlan_tci.to_be_bytes());
    packet.span(ADDRESSES as u32, TAG)?.copy_from_slice(&[protocol[0], protocol[1], tci[0], tci[1]]);
    Ok(())
}

/// Takes the outermost tag out of the packet and gives it (`__skb_vlan_pop`).
fn remove(packet: &mut Packet<'_>) -> Result<u16, Errno> {
    let &[high, low] = &*packet.span(ETHERNET_LEN as u32, 2).map_err(|_| Errno::ENOMEM)? else {
        return Err(Errno::ENOMEM);
    };
    packet.remove(ADDRESSES, TAG)?;
    packet.facts.network_moved = packet.facts.network_moved.saturating_sub(TAG as u16);
    packet.facts.protocol = crate::context::protocol(packet.frame.packet()).to_be();
    Ok(u16::from_be_bytes([high, low]))
}

impl Host {
    /// Inserts the VLAN tag that a program left beside the packet into the packet, which stays without if its headroom is too short.
    pub fn put_tag(&mut self) {
        let frame = self.frame();
        let facts = self.area.facts();
        // SAFETY: the frame is null or the run's, which has ended.
        let Some(frame) = (unsafe { frame.as_mut() }).filter(|_| facts.vlan_present != 0) else {
            return;
        };
        // default: the packet stays without the tag, which is what this function promises.
        let _ = insert(&mut Packet { frame, facts });
        facts.vlan_present = 0;
    }
}
