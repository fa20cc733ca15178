//! Sockets that the host's [`Network`](paceline_network::Network) has, and TCP's cookies for those that listen
//! (`net/core/filter.c`). What programs are given is the address of a socket's record, which the network keeps: they count no
//! references to it, the verifier and the plain interpreter see that each is given back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use paceline_network::{Network, Protocol, Socket, State, Tuple};
use paceline_spec::Errno;

use super::{args, syncookie};
use crate::host::Host;
use crate::time::Clock;

/// Sizes of the two forms of a `struct bpf_sock_tuple`.
const TUPLE_V4: usize = 12;
const TUPLE_V6: usize = 36;

/// A `struct bpf_sock_tuple`; `None` for a length that it does not have.
pub(super) fn tuple(bytes: &[u8]) -> Option<Tuple> {
    let port = |at: usize| bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes);
    let address = |at: usize| -> Option<IpAddr> {
        match bytes.len() {
            TUPLE_V4 => <[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok().map(|v4| Ipv4Addr::from(v4).into()),
            TUPLE_V6 => {
                <[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok().map(|v6| Ipv6Addr::from(v6).into())
            }
            _ => None,
        }
    };
    let (destination, ports) = if bytes.len() == TUPLE_V4 { (4, 8) } else { (16, 32) };
    Some(Tuple {
        source: address(0)?,
        source_port: port(ports)?,
        destination: address(destination)?,
        destination_port: port(ports + 2)?,
    })
}

/// The arguments of a look-up.
struct Asked {
    tuple: u64,
    len: u64,
    namespace: u64,
    flags: u64,
}

/// The address of the socket that `find` finds for a tuple and an interface, or null.
///
/// # Safety
/// The arguments must fit the prototype.
unsafe fn look_up(
    context: u64,
    asked: &Asked,
    host: &Host,
    find: impl for<'n> Fn(&'n Network, &Tuple, u32) -> Option<&'n Socket>,
) -> u64 {
    // SAFETY: the caller vouches for it; longer tuples are none.
    let bytes = unsafe { args::bytes(asked.tuple, (asked.len as u32 as usize).min(TUPLE_V6 + 1)) };
    // There is no namespace but the packet's own.
    let Some(tuple) = tuple(&bytes).filter(|_| asked.flags == 0 && (asked.namespace as i32) < 0) else {
        return 0;
    };
    // SAFETY: the same.
    let interface = unsafe { args::frame(context) }.ingress_ifindex();
    find(host.network(), &tuple, interface).map_or(0, |socket| socket.record().expose_provenance() as u64)
}

macro_rules! look_ups {
    ($($(#[$doc:meta])* $name:ident: $find:expr;)*) => {$(
        $(#[$doc])*
        pub(super) unsafe extern "C" fn $name(
            context: u64,
            tuple: u64,
            len: u64,
            namespace: u64,
            flags: u64,
            host: &mut Host,
        ) -> u64 {
            // SAFETY: the arguments fit the prototype.
            unsafe { look_up(context, &Asked { tuple, len, namespace, flags }, host, $find) }
        }
    )*};
}

look_ups! {
    /// `struct bpf_sock *bpf_sk_lookup_tcp(ctx, tuple, tuple_size, netns, flags)`
    look_up_tcp: Network::full_tcp_socket;
    /// `struct bpf_sock *bpf_sk_lookup_udp(ctx, tuple, tuple_size, netns, flags)`
    look_up_udp: Network::udp_socket;
    /// `struct bpf_sock *bpf_skc_lookup_tcp(ctx, tuple, tuple_size, netns, flags)`
    look_up_common: Network::tcp_socket;
}

/// `long bpf_sk_release(sock)`
pub(super) extern "C" fn release(_: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    0
}

/// The two headers of a packet for a socket that listens.
struct Headers {
    ip: Vec<u8>,
    tcp: Vec<u8>,
}

/// Flags of a TCP header.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

impl Headers {
    /// # Safety
    /// So many bytes must be readable at the addresses.
    unsafe fn new(ip: u64, ip_len: u64, tcp: u64, tcp_len: u64) -> Self {
        // The longest headers; of more nothing is read.
        const MOST: usize = 60;
        let len = |len: u64| (len as u32 as usize).min(MOST + 1);
        // SAFETY: the caller vouches for the ranges.
        unsafe { Self { ip: args::bytes(ip, len(ip_len)), tcp: args::bytes(tcp, len(tcp_len)) } }
    }

    fn flags(&self) -> u8 {
        self.tcp.get(13).copied().unwrap_or(0)
    }

    /// The version of IP that the socket and the length of the header allow.
    fn version(&self, socket: &Socket) -> Result<u8, Errno> {
        let version = self.ip.first().copied().unwrap_or(0) >> 4;
        let has_room = self.ip.len() >= if version == 6 { 40 } else { 20 };
        match version {
            4 | 6 if has_room && socket.takes_version(version) => Ok(version),
            4 | 6 => Err(Errno::EINVAL),
            _ => Err(Errno::EPROTONOSUPPORT),
        }
    }
}

/// The socket of a record, if it waits for connections.
fn listener(host: &Host, record: u64) -> Option<&Socket> {
    let socket = host.network().socket_of_record(record as usize)?;
    (socket.state() == State::Listen && socket.protocol() == Protocol::Tcp).then_some(socket)
}

fn seconds(host: &Host) -> u64 {
    host.now(Clock::Monotonic) / 1_000_000_000
}

fn check(socket: u64, headers: &Headers, host: &Host) -> Result<u64, Errno> {
    if headers.tcp.len() < syncookie::HEADER {
        return Err(Errno::EINVAL);
    }
    let socket = listener(host, socket).ok_or(Errno::EINVAL)?;
    if host.network().syncookies() == 0 {
        return Err(Errno::EINVAL);
    }
    if headers.flags() & (ACK | RST | SYN) != ACK {
        return Err(Errno::ENOENT);
    }
    if headers.ip.len() < 20 {
        return Err(Errno::EINVAL);
    }
    if !socket.has_overflowed(seconds(host)) {
        return Err(Errno::ENOENT);
    }
    let version = headers.version(socket)?;
    match syncookie::check_headers(version, &headers.ip, &headers.tcp, host) {
        0 => Ok(0),
        _ => Err(Errno::ENOENT),
    }
}

fn generate(socket: u64, headers: &Headers, host: &Host) -> Result<u64, Errno> {
    let is_whole =
        headers.tcp.get(12).is_some_and(|offset| headers.tcp.len() == usize::from(offset >> 4) * 4);
    if headers.tcp.len() < syncookie::HEADER || !is_whole {
        return Err(Errno::EINVAL);
    }
    let socket = listener(host, socket).ok_or(Errno::EINVAL)?;
    let cookies = host.network().syncookies();
    if cookies == 0 {
        return Err(Errno::ENOENT);
    }
    if headers.flags() & (SYN | ACK | FIN | RST) != SYN || headers.ip.len() < 20 {
        return Err(Errno::EINVAL);
    }
    let version = headers.version(socket)?;
    // Cookies go out always, or where too many connections are on their way; not where those that came wait to be accepted.
    let is_wanted = cookies == 2 || host.network().has_full_queue(socket);
    if !is_wanted || socket.is_full() {
        return Err(Errno::ENOENT);
    }
    let cookie = syncookie::generate_headers(version, &headers.ip, &headers.tcp, host);
    socket.overflows(seconds(host));
    Ok(cookie)
}

/// `long bpf_tcp_check_syncookie(sk, iph, iph_len, th, th_len)`
pub(super) unsafe extern "C" fn check_syncookie(
    socket: u64,
    ip: u64,
    ip_len: u64,
    tcp: u64,
    tcp_len: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let headers = unsafe { Headers::new(ip, ip_len, tcp, tcp_len) };
    check(socket, &headers, host).unwrap_or_else(Errno::to_return)
}

/// `s64 bpf_tcp_gen_syncookie(sk, iph, iph_len, th, th_len)`: the cookie, and above it the MSS.
pub(super) unsafe extern "C" fn gen_syncookie(
    socket: u64,
    ip: u64,
    ip_len: u64,
    tcp: u64,
    tcp_len: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let headers = unsafe { Headers::new(ip, ip_len, tcp, tcp_len) };
    generate(socket, &headers, host).unwrap_or_else(Errno::to_return)
}
