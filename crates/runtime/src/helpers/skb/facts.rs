//! Facts of the `sk_buff` about the packet: hash, type, congestion.

use std::hash::Hasher;

use paceline_spec::Errno;
use siphasher::sip::SipHasher24;

use super::packet::{IPV4, IPV4_LEN, IPV6, IPV6_LEN, Packet, Skb};
use crate::helpers::argument::Object;
use crate::host::Host;

/// Protocols with ports.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// `u32 bpf_get_hash_recalc(skb)`: the kernel's hash is keyed, and so is a host's.
pub(super) fn get_hash_recalc(host: &mut Host, mut skb: Skb<'_>) -> u64 {
    let secret = host.world.secret();
    skb.with(host, |packet| {
        if packet.facts.has_hash == 0 {
            packet.facts.hash = flow_hash(packet, secret);
            packet.facts.has_hash = 1;
        }
        packet.facts.hash.into()
    })
}

/// A hash of addresses, protocol and ports, which is never 0.
fn flow_hash(packet: &Packet<'_>, secret: u64) -> u32 {
    // default: what a short packet lacks is not hashed.
    let headers = packet.frame.packet().get(packet.network()..).unwrap_or_default();
    let (addresses, protocol, len) = match (packet.protocol(), headers) {
        (IPV4, [first, ..]) => (12..20, headers.get(9), usize::from(first & 15) * 4),
        (IPV6, _) => (8..40, headers.get(6), IPV6_LEN),
        _ => (0..0, None, IPV4_LEN),
    };
    let is_fragment = packet.protocol() == IPV4
        && headers.get(6..8).is_some_and(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]) & 0x3fff != 0);
    let has_ports = protocol.is_some_and(|protocol| [TCP, UDP].contains(protocol)) && !is_fragment;
    let ports = if has_ports { headers.get(len..len + 4) } else { None };
    let mut hasher = SipHasher24::new_with_keys(secret, 0);
    hasher.write_u16(packet.protocol());
    // default: as above.
    hasher.write(headers.get(addresses).unwrap_or_default());
    hasher.write_u8(protocol.copied().unwrap_or_default());
    hasher.write(ports.unwrap_or_default());
    (hasher.finish() as u32).max(1)
}

/// `long bpf_sk_assign(skb, sk, flags)`: the packet goes on to the host's stack, if it passes, as any other does.
pub(super) fn assign(_: &mut Host, _: Skb<'_>, _: Object, flags: u64) -> Result<(), Errno> {
    if flags == 0 { Ok(()) } else { Err(Errno::EINVAL) }
}

/// `void bpf_set_hash_invalid(skb)`
pub(super) fn set_hash_invalid(host: &mut Host, mut skb: Skb<'_>) -> Result<(), Errno> {
    skb.with(host, |packet| packet.clear_hash());
    Ok(())
}

/// `long bpf_set_hash(skb, hash)`
pub(super) fn set_hash(host: &mut Host, mut skb: Skb<'_>, hash: u32) -> Result<(), Errno> {
    skb.with(host, |packet| (packet.facts.hash, packet.facts.has_hash) = (hash, 1));
    Ok(())
}

/// `long bpf_skb_change_type(skb, type)`
pub(super) fn change_type(host: &mut Host, mut skb: Skb<'_>, kind: u32) -> Result<(), Errno> {
    /// `PACKET_OTHERHOST`
    const LAST: u32 = 3;
    if kind > LAST {
        return Err(Errno::EINVAL);
    }
    skb.with(host, |packet| packet.facts.pkt_type = kind as u8);
    Ok(())
}

/// `long bpf_skb_set_tstamp(skb, tstamp, tstamp_type)`
pub(super) fn set_time(host: &mut Host, mut skb: Skb<'_>, time: u64, clock: u32) -> Result<(), Errno> {
    const REALTIME: u32 = 0;
    const MONOTONIC: u32 = 1;
    const TAI: u32 = 2;
    skb.with(host, |packet| {
        if ![IPV4, IPV6].contains(&packet.protocol()) {
            return Err(Errno::EOPNOTSUPP);
        }
        match clock {
            REALTIME => {}
            MONOTONIC | TAI if time != 0 => {}
            _ => return Err(Errno::EINVAL),
        }
        (packet.facts.tstamp, packet.facts.tstamp_type) = (time, clock as u8);
        Ok(())
    })
}

/// `u32 bpf_get_route_realm(skb)`: incoming packets have no route yet.
pub(super) fn get_route_realm(_: &mut Host, _: Skb<'_>) -> u64 {
    0
}

/// `long bpf_skb_ecn_set_ce(skb)`: 1 if the packet is marked as having met congestion afterwards, 0 if it cannot be.
pub(super) fn set_congestion(host: &mut Host, mut skb: Skb<'_>) -> u64 {
    skb.with(host, |packet| {
        let (protocol, start) = (packet.protocol(), packet.network());
        // default: a packet without headers is not marked.
        let headers = packet.frame.packet_mut().get_mut(start..).unwrap_or_default();
        u64::from(match protocol {
            IPV4 if headers.len() >= IPV4_LEN => mark_ipv4(headers),
            IPV6 if headers.len() >= IPV6_LEN => mark_ipv6(headers),
            _ => false,
        })
    })
}

/// `IP_ECN_set_ce`
fn mark_ipv4(header: &mut [u8]) -> bool {
    let ecn = header[1] & 3;
    if ecn == 0 || ecn == 3 {
        return ecn == 3;
    }
    // The sum's change is that of the two bits.
    let sum = u16::from_be_bytes([header[10], header[11]]);
    let added = u16::from(3 - ecn);
    let (difference, borrow) = sum.overflowing_sub(added);
    let sum = difference.wrapping_sub(u16::from(borrow));
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header[1] |= 3;
    true
}

/// `IP6_ECN_set_ce`
fn mark_ipv6(header: &mut [u8]) -> bool {
    let ecn = header[1] >> 4 & 3;
    if ecn == 0 {
        return false;
    }
    header[1] |= 3 << 4;
    true
}
