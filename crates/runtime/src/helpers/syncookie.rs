//! Cookies for TCP connections without a socket: the `bpf_tcp_raw_` helpers (`net/core/filter.c`,
//! `net/ipv4/syncookies.c`). They are made as the kernel makes them, with another secret.

use std::hash::Hasher;

use paceline_spec::Errno;
use siphasher::sip::SipHasher24;

use super::mem::{ReadBytes, ReadMem};
use crate::host::Host;
use crate::time::Clock;

/// Bytes of a TCP header without options.
pub(super) const HEADER: usize = 20;
/// The MSS that hosts have that name none (`TCP_MSS_DEFAULT`), and for IPv6 the one that fits the smallest MTU.
const DEFAULT_V4: u16 = 536;
const DEFAULT_V6: u16 = 1280 - 60;
/// The MSS that a cookie can tell.
const TABLE_V4: [u16; 4] = [536, 1300, 1440, 1460];
const TABLE_V6: [u16; 4] = [1280 - 60, 1480 - 60, 1500 - 60, 9000 - 60];
/// Bits of a cookie below its time, in minutes.
const BITS: u32 = 24;
const MASK: u32 = (1 << BITS) - 1;
/// Minutes in which a cookie gets too old (`MAX_SYNCOOKIE_AGE`).
const MAX_AGE: u32 = 2;

/// The connection of a cookie: addresses and ports.
struct Connection<'a> {
    addresses: &'a [u8],
    tcp: &'a [u8],
    secret: u64,
}

impl Connection<'_> {
    fn hash(&self, count: u32, use_: u64) -> u32 {
        let mut hasher = SipHasher24::new_with_keys(self.secret, use_);
        hasher.write(self.addresses);
        hasher.write(&self.tcp[..4]);
        hasher.write(&count.to_le_bytes());
        hasher.finish() as u32
    }

    /// `secure_tcp_syn_cookie`
    fn cookie(&self, sequence: u32, data: u32, minute: u32) -> u32 {
        let low = self.hash(minute, 1).wrapping_add(data) & MASK;
        self.hash(0, 0).wrapping_add(sequence).wrapping_add(minute << BITS).wrapping_add(low)
    }

    /// The data in a cookie, unless it is too old; any number if it was made for another connection
    /// (`check_tcp_syn_cookie`).
    fn data(&self, cookie: u32, sequence: u32, minute: u32) -> Option<u32> {
        let cookie = cookie.wrapping_sub(self.hash(0, 0).wrapping_add(sequence));
        let age = minute.wrapping_sub(cookie >> BITS) & (u32::MAX >> BITS);
        (age < MAX_AGE).then(|| cookie.wrapping_sub(self.hash(minute.wrapping_sub(age), 1)) & MASK)
    }
}

fn minute(host: &Host) -> u32 {
    (host.now(Clock::Monotonic) / 60_000_000_000) as u32
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Errno> {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk()).ok_or(Errno::EINVAL)?;
    Ok(u32::from_be_bytes(*word))
}

/// The MSS among the options of a header (`tcp_parse_mss_option`).
fn mss_option(tcp: &[u8]) -> Option<u16> {
    let mut options = tcp.get(HEADER..)?;
    loop {
        options = match options {
            // The last one.
            [] | [0, ..] => return None,
            // One of a single byte.
            [1, rest @ ..] => rest,
            [2, 4, high, low, ..] => return Some(u16::from_be_bytes([*high, *low])).filter(|mss| *mss != 0),
            [_, len, ..] if *len >= 2 => options.get(usize::from(*len)..)?,
            _ => return None,
        }
    }
}

fn generate(addresses: &[u8], tcp: &[u8], table: [u16; 4], default: u16, host: &Host) -> Result<u64, Errno> {
    let is_whole = tcp.len() >= HEADER && tcp.len() == usize::from(tcp[12] >> 4) * 4;
    if !is_whole {
        return Err(Errno::EINVAL);
    }
    // default: as the kernel, for headers without the option, and for less than the least.
    let mss = mss_option(tcp).unwrap_or(default);
    let data = table.iter().rposition(|known| mss >= *known).unwrap_or(0);
    let connection = Connection { addresses, tcp, secret: host.world.secret() };
    let cookie = connection.cookie(word(tcp, 4)?, data as u32, minute(host));
    Ok(u64::from(cookie) | u64::from(table[data]) << 32)
}

fn check(addresses: &[u8], tcp: &[u8], table: [u16; 4], host: &Host) -> Result<u64, Errno> {
    let connection = Connection { addresses, tcp, secret: host.world.secret() };
    let (sequence, cookie) = (word(tcp, 4)?.wrapping_sub(1), word(tcp, 8)?.wrapping_sub(1));
    match connection.data(cookie, sequence, minute(host)) {
        Some(data) if (data as usize) < table.len() => Ok(0),
        _ => Err(Errno::EACCES),
    }
}

/// The cookie for headers of a version, of which both are whole, and above it the MSS.
pub(super) fn generate_headers(version: u8, ip: &[u8], tcp: &[u8], host: &Host) -> Result<u64, Errno> {
    let addresses = addresses(version, ip)?;
    match version {
        4 => generate(addresses, tcp, TABLE_V4, DEFAULT_V4, host),
        _ => generate(addresses, tcp, TABLE_V6, DEFAULT_V6, host),
    }
}

/// 0 for an acknowledgment of a cookie, otherwise `EACCES`.
pub(super) fn check_headers(version: u8, ip: &[u8], tcp: &[u8], host: &Host) -> Result<u64, Errno> {
    check(addresses(version, ip)?, tcp, if version == 4 { TABLE_V4 } else { TABLE_V6 }, host)
}

fn addresses(version: u8, ip: &[u8]) -> Result<&[u8], Errno> {
    ip.get(if version == 4 { 12..20 } else { 8..40 }).ok_or(Errno::EINVAL)
}

/// `s64 bpf_tcp_raw_gen_syncookie_ipv4(iph, th, th_len)`: the cookie, and above it the MSS.
pub(super) fn generate_v4(host: &mut Host, ip: ReadBytes<'_, 20>, tcp: ReadMem<'_>) -> Result<u64, Errno> {
    generate_headers(4, &ip.read(), &tcp.read(), host)
}

/// `s64 bpf_tcp_raw_gen_syncookie_ipv6(iph, th, th_len)`
pub(super) fn generate_v6(host: &mut Host, ip: ReadBytes<'_, 40>, tcp: ReadMem<'_>) -> Result<u64, Errno> {
    generate_headers(6, &ip.read(), &tcp.read(), host)
}

/// `long bpf_tcp_raw_check_syncookie_ipv4(iph, th)`
pub(super) fn check_v4(
    host: &mut Host,
    ip: ReadBytes<'_, 20>,
    tcp: ReadBytes<'_, HEADER>,
) -> Result<u64, Errno> {
    check_headers(4, &ip.read(), &tcp.read(), host)
}

/// `long bpf_tcp_raw_check_syncookie_ipv6(iph, th)`
pub(super) fn check_v6(
    host: &mut Host,
    ip: ReadBytes<'_, 40>,
    tcp: ReadBytes<'_, HEADER>,
) -> Result<u64, Errno> {
    check_headers(6, &ip.read(), &tcp.read(), host)
}
