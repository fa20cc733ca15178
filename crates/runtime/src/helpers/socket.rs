//! Sockets that the host's [`Network`](paceline_network::Network) has, and TCP's cookies for those that listen
//! (`net/core/filter.c`). What programs are given is the address of a socket's record, which the network keeps: they count no
//! references to it, the verifier and the plain interpreter see that each is given back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use paceline_network::{Network, Protocol, Socket, State, Tuple};
use paceline_spec::Errno;

use paceline_frame::Frame;

use super::argument::Object;
use super::function::Pointer;
use super::mem::{Bytes, ReadMem};
use super::syncookie;
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

/// The record of the socket that `find` finds for a tuple and an interface, or null.
fn look_up(
    (frame, tuple_mem): (&Frame, ReadMem<'_>),
    (namespace, flags): (i32, u64),
    host: &Host,
    find: impl for<'n> Fn(&'n Network, &Tuple, u32) -> Option<&'n Socket>,
) -> Pointer {
    // Only the packet's own namespace exists; longer tuples have no meaning.
    let tuple = tuple(&tuple_mem.read_up_to(TUPLE_V6 + 1)).filter(|_| flags == 0 && namespace < 0);
    let socket = tuple.and_then(|tuple| find(host.world.network(), &tuple, frame.ingress_ifindex()));
    Pointer(socket.map_or(0, |socket| socket.record().expose_provenance() as u64))
}

/// `struct bpf_sock *bpf_sk_lookup_tcp(ctx, tuple, tuple_size, netns, flags)`
pub(super) fn look_up_tcp(
    host: &mut Host,
    frame: &mut Frame,
    tuple: ReadMem<'_>,
    namespace: i32,
    flags: u64,
) -> Pointer {
    look_up((frame, tuple), (namespace, flags), host, Network::full_tcp_socket)
}

/// `struct bpf_sock *bpf_sk_lookup_udp(ctx, tuple, tuple_size, netns, flags)`
pub(super) fn look_up_udp(
    host: &mut Host,
    frame: &mut Frame,
    tuple: ReadMem<'_>,
    namespace: i32,
    flags: u64,
) -> Pointer {
    look_up((frame, tuple), (namespace, flags), host, Network::udp_socket)
}

/// `struct bpf_sock *bpf_skc_lookup_tcp(ctx, tuple, tuple_size, netns, flags)`
pub(super) fn look_up_common(
    host: &mut Host,
    frame: &mut Frame,
    tuple: ReadMem<'_>,
    namespace: i32,
    flags: u64,
) -> Pointer {
    look_up((frame, tuple), (namespace, flags), host, Network::tcp_socket)
}

/// `long bpf_sk_release(sock)`
pub(super) fn release(_: &mut Host, _: Object) -> Result<(), Errno> {
    Ok(())
}

/// The two headers of a packet for a socket that listens.
struct Headers {
    ip: Bytes,
    tcp: Bytes,
}

/// Flags of a TCP header.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

impl Headers {
    fn new(ip: ReadMem<'_>, tcp: ReadMem<'_>) -> Self {
        // The longest headers: nothing is read past these.
        const MOST: usize = 60;
        Self { ip: ip.read_up_to(MOST + 1), tcp: tcp.read_up_to(MOST + 1) }
    }

    fn flags(&self) -> u8 {
        // default: a short header has no flags.
        self.tcp.get(13).copied().unwrap_or(0)
    }

    /// The version of IP that the socket and the length of the header allow.
    fn version(&self, socket: &Socket) -> Result<u8, Errno> {
        // default: no header is of no version.
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
fn listener(host: &Host, record: Object) -> Option<&Socket> {
    let socket = host.world.network().socket_of_record(record.0 as usize)?;
    (socket.state() == State::Listen && socket.protocol() == Protocol::Tcp).then_some(socket)
}

fn seconds(host: &Host) -> u64 {
    host.now(Clock::Monotonic) / 1_000_000_000
}

fn check(socket: Object, headers: &Headers, host: &Host) -> Result<u64, Errno> {
    if headers.tcp.len() < syncookie::HEADER {
        return Err(Errno::EINVAL);
    }
    let socket = listener(host, socket).ok_or(Errno::EINVAL)?;
    if host.world.network().syncookies() == 0 {
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
    syncookie::check_headers(version, &headers.ip, &headers.tcp, host).map_err(|_| Errno::ENOENT)
}

fn generate(socket: Object, headers: &Headers, host: &Host) -> Result<u64, Errno> {
    let is_whole =
        headers.tcp.get(12).is_some_and(|offset| headers.tcp.len() == usize::from(offset >> 4) * 4);
    if headers.tcp.len() < syncookie::HEADER || !is_whole {
        return Err(Errno::EINVAL);
    }
    let socket = listener(host, socket).ok_or(Errno::EINVAL)?;
    let cookies = host.world.network().syncookies();
    if cookies == 0 {
        return Err(Errno::ENOENT);
    }
    if headers.flags() & (SYN | ACK | FIN | RST) != SYN || headers.ip.len() < 20 {
        return Err(Errno::EINVAL);
    }
    let version = headers.version(socket)?;
    // Cookies go out always, or where too many connections are on their way; not where those that came wait to be accepted.
    let is_wanted = cookies == 2 || host.world.network().has_full_queue(socket);
    if !is_wanted || socket.is_full() {
        return Err(Errno::ENOENT);
    }
    let cookie = syncookie::generate_headers(version, &headers.ip, &headers.tcp, host)?;
    socket.overflows(seconds(host));
    Ok(cookie)
}

/// `long bpf_tcp_check_syncookie(sk, iph, iph_len, th, th_len)`
pub(super) fn check_syncookie(
    host: &mut Host,
    socket: Object,
    ip: ReadMem<'_>,
    tcp: ReadMem<'_>,
) -> Result<u64, Errno> {
    check(socket, &Headers::new(ip, tcp), host)
}

/// `s64 bpf_tcp_gen_syncookie(sk, iph, iph_len, th, th_len)`: the cookie, and above it the MSS.
pub(super) fn gen_syncookie(
    host: &mut Host,
    socket: Object,
    ip: ReadMem<'_>,
    tcp: ReadMem<'_>,
) -> Result<u64, Errno> {
    generate(socket, &Headers::new(ip, tcp), host)
}
