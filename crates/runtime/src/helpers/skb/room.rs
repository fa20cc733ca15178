//! Insertion and removal of bytes.

use paceline_spec::Errno;

use super::packet::{IPV4, IPV4_LEN, IPV6, IPV6_LEN, MAX_LEN, Packet, Skb};
use crate::context::ETHERNET_LEN;
use crate::host::Host;

/// `BPF_F_ADJ_ROOM_*`
mod flag {
    pub(super) const FIXED_GSO: u64 = 1;
    pub(super) const ENCAP_L3_IPV4: u64 = 1 << 1;
    pub(super) const ENCAP_L3_IPV6: u64 = 1 << 2;
    pub(super) const ENCAP_L4_GRE: u64 = 1 << 3;
    pub(super) const ENCAP_L4_UDP: u64 = 1 << 4;
    pub(super) const NO_CSUM_RESET: u64 = 1 << 5;
    pub(super) const ENCAP_L2_ETH: u64 = 1 << 6;
    pub(super) const DECAP_L3_IPV4: u64 = 1 << 7;
    pub(super) const DECAP_L3_IPV6: u64 = 1 << 8;
    pub(super) const ENCAP_L2: u64 = 0xff << 56;
    pub(super) const ENCAP_L3: u64 = ENCAP_L3_IPV4 | ENCAP_L3_IPV6;
    pub(super) const DECAP_L3: u64 = DECAP_L3_IPV4 | DECAP_L3_IPV6;
    pub(super) const ALL: u64 = FIXED_GSO
        | ENCAP_L3
        | ENCAP_L4_GRE
        | ENCAP_L4_UDP
        | NO_CSUM_RESET
        | ENCAP_L2_ETH
        | DECAP_L3
        | ENCAP_L2;
}

/// Most bytes that come or go at once.
const MOST: usize = 0xfff;

/// Length of a header without options; `None` for other protocols (`bpf_skb_net_base_len`).
fn header_len(protocol: u16) -> Option<usize> {
    match protocol {
        IPV4 => Some(IPV4_LEN),
        IPV6 => Some(IPV6_LEN),
        _ => None,
    }
}

/// `long bpf_skb_change_tail(skb, new_len, flags)`
pub(super) fn change_tail(host: &mut Host, mut skb: Skb<'_>, len: u32, flags: u64) -> Result<(), Errno> {
    let len = len as usize;
    skb.with(host, |packet| {
        let least = match usize::from(packet.facts.transport) {
            0 => packet.network(),
            transport => transport,
        };
        if flags != 0 || !(least..=MAX_LEN).contains(&len) {
            return Err(Errno::EINVAL);
        }
        if packet.facts.encapsulation != 0 {
            return Err(Errno::ENOTSUPP);
        }
        let delta = len as i32 - packet.frame.len() as i32;
        packet.frame.adjust_tail(delta).map_err(|_| Errno::ENOMEM)?;
        let behind = i32::from(packet.facts.behind).saturating_sub(delta).max(0);
        packet.keep_behind(behind.unsigned_abs() as usize);
        Ok(())
    })
}

/// `long bpf_skb_change_head(skb, len, flags)`
pub(super) fn change_head(host: &mut Host, mut skb: Skb<'_>, len: u32, flags: u64) -> Result<(), Errno> {
    let len = len as usize;
    skb.with(host, |packet| {
        if flags != 0 || packet.frame.len() + len > MAX_LEN {
            return Err(Errno::EINVAL);
        }
        packet.insert(0, len)?;
        // The headers stay at their addresses, and the facts about them stay true.
        packet.facts.network_moved += len as u16;
        if packet.facts.transport != 0 {
            packet.facts.transport += len as u16;
        }
        Ok(())
    })
}

/// `long bpf_skb_change_proto(skb, proto, flags)`
pub(super) fn change_proto(
    host: &mut Host,
    mut skb: Skb<'_>,
    protocol: u16,
    flags: u64,
) -> Result<(), Errno> {
    const DIFFERENCE: usize = IPV6_LEN - IPV4_LEN;
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    skb.with(host, |packet| {
        let to = u16::from_be(protocol);
        let offset = packet.network();
        match (packet.protocol(), to) {
            (IPV4, IPV6) => packet.insert(offset, DIFFERENCE)?,
            (IPV6, IPV4) => packet.remove(offset, DIFFERENCE)?,
            _ => return Err(Errno::ENOTSUPP),
        }
        packet.facts.protocol = to.to_be();
        packet.clear_hash();
        Ok(())
    })
}

/// `long bpf_skb_adjust_room(skb, len_diff, mode, flags)`
pub(super) fn adjust(
    host: &mut Host,
    mut skb: Skb<'_>,
    difference: i32,
    mode: u32,
    flags: u64,
) -> Result<(), Errno> {
    skb.with(host, |packet| adjust_packet(packet, difference, mode, flags))
}

fn adjust_packet(packet: &mut Packet<'_>, difference: i32, mode: u32, flags: u64) -> Result<(), Errno> {
    const NET: u32 = 0;
    const MAC: u32 = 1;
    if flags & !flag::ALL != 0 {
        return Err(Errno::EINVAL);
    }
    let (shrinks, len) = (difference < 0, difference.unsigned_abs() as usize);
    if len > MOST {
        return Err(Errno::EFAULT);
    }
    let header = header_len(packet.protocol()).ok_or(Errno::ENOTSUPP)?;
    let offset = packet.network()
        + match mode {
            NET => header,
            MAC => 0,
            _ => return Err(Errno::ENOTSUPP),
        };
    let least = match (flags & flag::DECAP_L3, shrinks) {
        (0, _) => header,
        (flag::DECAP_L3_IPV4, true) => IPV4_LEN,
        (flag::DECAP_L3_IPV6, true) => IPV6_LEN,
        _ => return Err(Errno::EINVAL),
    };
    let there = packet.frame.len().saturating_sub(packet.network());
    if shrinks && (len >= there || there - len < least) || !shrinks && packet.frame.len() + len > MAX_LEN {
        return Err(Errno::ENOTSUPP);
    }
    if shrinks { shrink(packet, offset, len, flags) } else { grow(packet, offset, len, flags) }?;
    if flags & flag::NO_CSUM_RESET == 0 {
        packet.facts.csum_level = 0;
    }
    Ok(())
}

/// `bpf_skb_net_shrink`
fn shrink(packet: &mut Packet<'_>, offset: usize, len: usize, flags: u64) -> Result<(), Errno> {
    if flags & !(flag::FIXED_GSO | flag::DECAP_L3 | flag::NO_CSUM_RESET) != 0 {
        return Err(Errno::EINVAL);
    }
    packet.remove(offset, len)?;
    match flags & flag::DECAP_L3 {
        flag::DECAP_L3_IPV4 => packet.facts.protocol = IPV4.to_be(),
        flag::DECAP_L3_IPV6 => packet.facts.protocol = IPV6.to_be(),
        _ => {}
    }
    Ok(())
}

/// `bpf_skb_net_grow`
fn grow(packet: &mut Packet<'_>, offset: usize, len: usize, flags: u64) -> Result<(), Errno> {
    let outer = match flags & flag::ENCAP_L3 {
        0 => return packet.insert(offset, len),
        flag::ENCAP_L3_IPV4 => IPV4,
        flag::ENCAP_L3_IPV6 => IPV6,
        _ => return Err(Errno::EINVAL),
    };
    let both = flag::ENCAP_L4_GRE | flag::ENCAP_L4_UDP;
    let inner_mac_len = (flags >> 56) as usize;
    if flags & both == both || flags & flag::ENCAP_L2_ETH != 0 && inner_mac_len < ETHERNET_LEN {
        return Err(Errno::EINVAL);
    }
    if packet.facts.encapsulation != 0 {
        return Err(Errno(EALREADY));
    }
    if inner_mac_len > len {
        return Err(Errno::EINVAL);
    }
    packet.insert(offset, len)?;
    packet.facts.encapsulation = 1;
    if flags & both != 0 {
        let header = if outer == IPV6 { IPV6_LEN } else { IPV4_LEN };
        packet.facts.transport = (packet.network() + header) as u16;
    }
    packet.facts.protocol = outer.to_be();
    Ok(())
}

/// "Operation already in progress".
const EALREADY: u16 = 114;
