//! Sockets and their look-up for a packet (`__inet_lookup` in `include/net/inet_hashtables.h`, `__udp4_lib_lookup` in
//! `net/ipv4/udp.c` and the IPv6 equivalents).

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::record::Record;

/// A protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// The protocol number in IP headers.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// The protocol with a number.
    #[must_use]
    pub const fn of_number(number: u8) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            _ => None,
        }
    }
}

/// Addresses and ports of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Source address.
    pub source: IpAddr,
    /// Source port.
    pub source_port: u16,
    /// Destination address, of the same IP version.
    pub destination: IpAddr,
    /// Destination port.
    pub destination_port: u16,
}

impl Tuple {
    /// The tuple of packets in the opposite direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            source: self.destination,
            source_port: self.destination_port,
            destination: self.source,
            destination_port: self.source_port,
        }
    }
}

/// The state of a socket (`include/net/tcp_states.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Connected.
    Established = 1,
    /// A connection was requested.
    SynSent = 2,
    /// Closed by this side.
    FinWait1 = 4,
    /// Closed by this side, and acknowledged.
    FinWait2 = 5,
    /// Both sides have closed; the remainder of a connection.
    TimeWait = 6,
    /// Not connected.
    Closed = 7,
    /// Closed by the other side.
    CloseWait = 8,
    /// Closed by the other side, then by this one.
    LastAck = 9,
    /// Listening.
    Listen = 10,
    /// Closed by both sides simultaneously.
    Closing = 11,
    /// A connection was requested by the other side; not yet a socket of its own (`TCP_NEW_SYN_RECV`).
    Request = 12,
}

impl State {
    /// Whether it is a full socket instead of a request or time-wait socket (`sk_fullsock`).
    #[must_use]
    pub fn is_full(self) -> bool {
        !matches!(self, Self::TimeWait | Self::Request)
    }
}

/// Size of a `struct bpf_sock` in 32-bit words.
const WORDS: usize = 20;

/// A socket.
#[derive(Debug)]
pub struct Socket {
    protocol: Protocol,
    state: State,
    local: IpAddr,
    local_port: u16,
    remote: Option<(IpAddr, u16)>,
    interface: Option<u32>,
    v6_only: bool,
    queued: u32,
    backlog: u32,
    /// Time of the last queue overflow, in seconds; 0 for never.
    overflow: AtomicU64,
    record: Record<WORDS>,
}

impl Clone for Socket {
    fn clone(&self) -> Self {
        Self {
            overflow: AtomicU64::new(self.overflow.load(Ordering::Relaxed)),
            record: self.record.clone(),
            ..*self
        }
    }
}

/// The description of a socket.
#[derive(Clone, Copy, Debug)]
pub struct SocketSpec {
    /// Protocol.
    pub protocol: Protocol,
    /// State.
    pub state: State,
    /// Local address, which determines the family.
    pub local: IpAddr,
    /// Local port.
    pub local_port: u16,
    /// Address and port of the peer, if connected.
    pub remote: Option<(IpAddr, u16)>,
    /// The interface it is bound to, if any.
    pub interface: Option<u32>,
    /// Whether it accepts IPv6 only (`IPV6_V6ONLY`).
    pub v6_only: bool,
    /// Number of connections that wait to be accepted, and its limit.
    pub queues: (u32, u32),
}

impl Socket {
    pub(crate) fn new(spec: SocketSpec) -> Self {
        let SocketSpec { protocol, state, local, local_port, remote, interface, v6_only, queues } = spec;
        let mut record = Record::default();
        let number = |value: u32| value.to_ne_bytes();
        let (family, kind) =
            (if local.is_ipv4() { 2 } else { 10 }, if protocol == Protocol::Tcp { 1 } else { 2 });
        record.set(0, &number(interface.unwrap_or(0)));
        record.set(4, &number(family));
        record.set(8, &number(kind));
        record.set(12, &number(protocol.number().into()));
        record.set(24, &old_address(local).octets());
        record.set(28, &new_address(local).octets());
        record.set(44, &number(local_port.into()));
        if let Some((address, port)) = remote {
            record.set(48, &port.to_be_bytes());
            record.set(52, &old_address(address).octets());
            record.set(56, &new_address(address).octets());
        }
        record.set(72, &number(state as u32));
        // The receive queue is unknown.
        record.set(76, &number(u32::MAX));
        let (queued, backlog) = queues;
        let overflow = AtomicU64::new(0);
        Self {
            protocol,
            state,
            local,
            local_port,
            remote,
            interface,
            v6_only,
            queued,
            backlog,
            overflow,
            record,
        }
    }

    /// Protocol.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// State.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it accepts packets of an IP version, 4 or 6 (`ipv6_only_sock`).
    #[must_use]
    pub fn takes_version(&self, version: u8) -> bool {
        match version {
            4 => !self.v6_only,
            _ => self.local.is_ipv6(),
        }
    }

    /// Address of the `struct bpf_sock`, valid while the network lives.
    #[must_use]
    pub fn record(&self) -> *const AtomicU32 {
        self.record.address()
    }

    /// Whether it can be in socket maps: an established connection, a listener, or a UDP socket with a port
    /// (`sock_map_sk_state_allowed`).
    #[must_use]
    pub fn is_for_maps(&self) -> bool {
        match self.protocol {
            Protocol::Tcp => matches!(self.state, State::Established | State::Listen),
            Protocol::Udp => self.local_port != 0,
        }
    }

    /// Whether the queue of connections to be accepted is full (`sk_acceptq_is_full`).
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.queued > self.backlog
    }

    /// Maximum number of waiting connections, accepted or requested.
    #[must_use]
    pub fn backlog(&self) -> u32 {
        self.backlog
    }

    /// Records a queue overflow at a time in seconds.
    pub fn overflows(&self, seconds: u64) {
        self.overflow.store(seconds.max(1), Ordering::Relaxed);
    }

    /// Whether a queue overflowed in the two minutes before a time in seconds, so that valid cookies may arrive
    /// (`tcp_synq_no_recent_overflow`).
    #[must_use]
    pub fn has_overflowed(&self, seconds: u64) -> bool {
        // `TCP_SYNCOOKIE_VALID`
        const VALID: u64 = 120;
        let last = self.overflow.load(Ordering::Relaxed);
        last != 0 && seconds.saturating_add(1) >= last && seconds <= last + VALID
    }

    /// The local address that packets of an IP version must have; `None` if it does not accept that version.
    fn local_for(&self, like: IpAddr) -> Option<IpAddr> {
        match (self.local, like) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => Some(self.local),
            (IpAddr::V6(v6), IpAddr::V4(_)) if !self.v6_only => v6
                .is_unspecified()
                .then_some(Ipv4Addr::UNSPECIFIED.into())
                .or(v6.to_ipv4_mapped().map(IpAddr::V4)),
            _ => None,
        }
    }

    fn is_bound_to(&self, interface: u32) -> bool {
        self.interface.is_none_or(|bound| bound == interface)
    }
}

/// The IPv4 address of a socket (`inet_rcv_saddr`).
fn old_address(address: IpAddr) -> Ipv4Addr {
    // `LOOPBACK4_IPV6`
    const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);
    match address {
        IpAddr::V4(v4) => v4,
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv4Addr::UNSPECIFIED,
        IpAddr::V6(v6) => v6.to_ipv4_mapped().unwrap_or(OTHER),
    }
}

/// The IPv6 address of a socket (`sk_v6_rcv_saddr`); unspecified for IPv4 sockets.
fn new_address(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(_) => Ipv6Addr::UNSPECIFIED,
        IpAddr::V6(v6) => v6,
    }
}

/// All sockets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sockets {
    all: Vec<Socket>,
    /// Connected TCP sockets, by the tuple of packets from the remote side.
    connected: HashMap<Tuple, Vec<usize>>,
    /// Other sockets by protocol and port: TCP listeners, and all UDP sockets.
    by_port: HashMap<(Protocol, u16), Vec<usize>>,
}

impl Sockets {
    pub(crate) fn add(&mut self, socket: Socket) {
        let index = self.all.len();
        let remote = socket.remote.filter(|_| socket.protocol == Protocol::Tcp);
        match remote {
            Some((address, port)) => {
                let tuple = Tuple {
                    source: address.to_canonical(),
                    source_port: port,
                    destination: socket.local.to_canonical(),
                    destination_port: socket.local_port,
                };
                self.connected.entry(tuple).or_default().push(index);
            }
            None => self.by_port.entry((socket.protocol, socket.local_port)).or_default().push(index),
        }
        self.all.push(socket);
    }

    pub(crate) fn all(&self) -> &[Socket] {
        &self.all
    }

    /// The socket whose record is at an address.
    pub(crate) fn of_record(&self, address: usize) -> Option<&Socket> {
        let start = self.all.first()?.record().addr();
        let index = address.checked_sub(start)? / size_of::<Socket>();
        self.all.get(index).filter(|socket| socket.record().addr() == address)
    }

    /// Number of connection requests of a listener.
    pub(crate) fn requests_of(&self, listener: &Socket) -> usize {
        let is_request = |socket: &&Socket| {
            socket.state == State::Request
                && socket.local_port == listener.local_port
                && [socket.local, Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]
                    .contains(&listener.local)
        };
        self.all.iter().filter(is_request).count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The TCP socket of a packet that was received on an interface, in any state.
    pub(crate) fn tcp(&self, tuple: &Tuple, interface: u32) -> Option<&Socket> {
        let connected =
            self.connected.get(tuple).into_iter().flatten().filter_map(|&index| self.all.get(index));
        connected
            .filter(|socket| socket.is_bound_to(interface))
            .find(|socket| socket.local_for(tuple.destination).is_some())
            .or_else(|| self.listener(tuple, interface))
    }

    /// The listener for a packet's connection request.
    pub(crate) fn listener(&self, tuple: &Tuple, interface: u32) -> Option<&Socket> {
        let score = |socket: &Socket| {
            let is_old = socket.local.is_ipv4() && tuple.destination.is_ipv4();
            1 + u32::from(socket.interface.is_some()) + u32::from(is_old)
        };
        self.best(Protocol::Tcp, tuple, interface, |socket| {
            (socket.state == State::Listen).then(|| score(socket))
        })
    }

    /// The UDP socket of a packet.
    pub(crate) fn udp(&self, tuple: &Tuple, interface: u32) -> Option<&Socket> {
        self.best(Protocol::Udp, tuple, interface, |socket| {
            let remote = match socket.remote {
                Some(remote) if remote == (tuple.source, tuple.source_port) => 8,
                Some(_) => return None,
                None => 0,
            };
            let is_old = socket.local.is_ipv4() && tuple.destination.is_ipv4();
            Some(1 + u32::from(is_old) + remote + if socket.interface.is_some() { 4 } else { 0 })
        })
    }

    /// The socket with the best score among those bound to the address, or else among those bound to none; of equals the first.
    fn best(
        &self,
        protocol: Protocol,
        tuple: &Tuple,
        interface: u32,
        score: impl Fn(&Socket) -> Option<u32>,
    ) -> Option<&Socket> {
        let any: IpAddr = match tuple.destination {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let there = self.by_port.get(&(protocol, tuple.destination_port))?;
        [tuple.destination, any].into_iter().find_map(|local| {
            let sockets = there.iter().filter_map(|&index| self.all.get(index));
            let fit = sockets
                .filter(|socket| socket.is_bound_to(interface))
                .filter(|socket| socket.local_for(local) == Some(local))
                .filter_map(|socket| Some((score(socket)?, socket)));
            fit.reduce(|best, other| if other.0 > best.0 { other } else { best }).map(|(_, socket)| socket)
        })
    }
}
