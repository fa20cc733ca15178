//! VLAN tags. The outermost one that a program pushes is kept beside the packet, as the kernel does, and is put into it when the
//! run ends ([`put_tag`]).

use paceline_frame::Frame;
use paceline_spec::Errno;
use paceline_spec::context::SkBuff;

use super::{Packet, with_packet};
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
pub(super) unsafe extern "C" fn push(
    _: u64,
    protocol: u64,
    tci: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    let protocol = Some(u16::from_be(protocol as u16)).filter(|protocol| is_vlan(*protocol));
    let push = |packet: &mut Packet<'_>| {
        if packet.facts.vlan_present != 0 {
            insert(packet)?;
            packet.facts.protocol = packet.facts.vlan_proto;
        }
        keep(&mut packet.facts, protocol.unwrap_or(VLAN), tci as u16);
        Ok(0)
    };
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    unsafe { with_packet(host, push) }
}

/// `long bpf_skb_vlan_pop(skb)`
pub(super) unsafe extern "C" fn pop(_: u64, _: u64, _: u64, _: u64, _: u64, host: &mut Host) -> u64 {
    let pop = |packet: &mut Packet<'_>| {
        if packet.facts.vlan_present == 0 {
            if !is_vlan(packet.protocol()) {
                return Ok(0);
            }
            remove(packet)?;
        }
        (packet.facts.vlan_present, packet.facts.vlan_tci, packet.facts.vlan_proto) = (0, 0, 0);
        // The next one is kept beside the packet.
        let protocol = packet.protocol();
        if is_vlan(protocol) {
            let tci = remove(packet)?;
            keep(&mut packet.facts, protocol, tci);
        }
        Ok(0)
    };
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    unsafe { with_packet(host, pop) }
}

/// `__vlan_hwaccel_put_tag`
fn keep(facts: &mut SkBuff, protocol: u16, tci: u16) {
    (facts.vlan_present, facts.vlan_proto, facts.vlan_tci) = (1, protocol.to_be(), tci);
}

/// Puts the tag that is kept beside the packet into it (`__vlan_insert_tag`). It is what the network's header is from then on.
fn insert(packet: &mut Packet<'_>) -> Result<(), Errno> {
    packet.insert(ADDRESSES, TAG)?;
    let (protocol, tci) = (packet.facts.vlan_proto.to_ne_bytes(), packet.facts.vlan_tci.to_be_bytes());
    packet.span(ADDRESSES as u64, TAG)?.copy_from_slice(&[protocol[0], protocol[1], tci[0], tci[1]]);
    Ok(())
}

/// Takes the outermost tag out of the packet and gives it (`__skb_vlan_pop`).
fn remove(packet: &mut Packet<'_>) -> Result<u16, Errno> {
    let &[high, low] = &*packet.span(ETHERNET_LEN as u64, 2).map_err(|_| Errno::ENOMEM)? else {
        return Err(Errno::ENOMEM);
    };
    packet.remove(ADDRESSES, TAG)?;
    packet.facts.network_moved = packet.facts.network_moved.saturating_sub(TAG as u16);
    packet.facts.protocol = crate::context::protocol(packet.frame.packet()).to_be();
    Ok(u16::from_be_bytes([high, low]))
}

/// Puts the tag that a program left beside the packet into it. Where the headroom is too short the packet goes without.
pub(crate) fn put_tag(frame: &mut Frame, facts: SkBuff) {
    let mut packet = Packet { frame, facts };
    if packet.facts.vlan_present != 0 {
        let _ = insert(&mut packet);
    }
}
