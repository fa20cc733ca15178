//! What the `sk_buff` says of the packet: its hash, its type, its congestion.

use std::hash::Hasher;

use paceline_spec::Errno;
use siphasher::sip::SipHasher24;

use super::{IPV4, IPV4_LEN, IPV6, IPV6_LEN, Packet, with_packet};
use crate::host::Host;

/// Protocols with ports.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// `u32 bpf_get_hash_recalc(skb)`: the kernel's has a key of its own, and so has a host's.
pub(super) unsafe extern "C" fn get_hash_recalc(
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    let secret = host.secret();
    let get = |packet: &mut Packet<'_>| {
        if packet.facts.has_hash == 0 {
            packet.facts.hash = flow_hash(packet, secret);
            packet.facts.has_hash = 1;
        }
        Ok(packet.facts.hash.into())
    };
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    unsafe { with_packet(host, get) }
}

/// A hash of addresses, protocol and ports, which is never 0.
fn flow_hash(packet: &Packet<'_>, secret: u64) -> u32 {
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
    hasher.write(headers.get(addresses).unwrap_or_default());
    hasher.write_u8(protocol.copied().unwrap_or_default());
    hasher.write(ports.unwrap_or_default());
    (hasher.finish() as u32).max(1)
}

/// `void bpf_set_hash_invalid(skb)`
pub(super) unsafe extern "C" fn set_hash_invalid(
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    let clear = |packet: &mut Packet<'_>| {
        packet.clear_hash();
        Ok(0)
    };
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    unsafe { with_packet(host, clear) }
}

/// `long bpf_set_hash(skb, hash)`
pub(super) unsafe extern "C" fn set_hash(_: u64, hash: u64, _: u64, _: u64, _: u64, host: &mut Host) -> u64 {
    let set = |packet: &mut Packet<'_>| {
        (packet.facts.hash, packet.facts.has_hash) = (hash as u32, 1);
        Ok(0)
    };
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    unsafe { with_packet(host, set) }
}

/// `long bpf_skb_change_type(skb, type)`
pub(super) unsafe extern "C" fn change_type(
    _: u64,
    kind: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    /// `PACKET_OTHERHOST`
    const LAST: u32 = 3;
    let change = |packet: &mut Packet<'_>| match kind as u32 {
        kind @ ..=LAST => {
            packet.facts.pkt_type = kind as u8;
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    };
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    unsafe { with_packet(host, change) }
}

/// `long bpf_skb_set_tstamp(skb, tstamp, tstamp_type)`
pub(super) unsafe extern "C" fn set_time(
    _: u64,
    time: u64,
    clock: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    const REALTIME: u32 = 0;
    const MONOTONIC: u32 = 1;
    const TAI: u32 = 2;
    let set = |packet: &mut Packet<'_>| {
        if ![IPV4, IPV6].contains(&packet.protocol()) {
            return Err(Errno::EOPNOTSUPP);
        }
        match clock as u32 {
            REALTIME => {}
            MONOTONIC | TAI if time != 0 => {}
            _ => return Err(Errno::EINVAL),
        }
        (packet.facts.tstamp, packet.facts.tstamp_type) = (time, clock as u8);
        Ok(0)
    };
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    unsafe { with_packet(host, set) }
}

/// `u32 bpf_get_route_realm(skb)`: packets that come in have no route yet.
pub(super) extern "C" fn get_route_realm(_: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    0
}

/// `long bpf_skb_ecn_set_ce(skb)`: 1 if the packet says afterwards that there is congestion, 0 if it cannot.
pub(super) unsafe extern "C" fn set_congestion(
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    let set = |packet: &mut Packet<'_>| {
        let (protocol, start) = (packet.protocol(), packet.network());
        let headers = packet.frame.packet_mut().get_mut(start..).unwrap_or_default();
        Ok(u64::from(match protocol {
            IPV4 if headers.len() >= IPV4_LEN => mark_ipv4(headers),
            IPV6 if headers.len() >= IPV6_LEN => mark_ipv6(headers),
            _ => false,
        }))
    };
    // SAFETY: the arguments fit the prototype, so there is a context and thus a packet.
    unsafe { with_packet(host, set) }
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
