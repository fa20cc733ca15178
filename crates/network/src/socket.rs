//! Sockets, and how they are found for a packet (`__inet_lookup` in `include/net/inet_hashtables.h`, `__udp4_lib_lookup` in
//! `net/ipv4/udp.c` and their like for IPv6).

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
    /// Its number in IP headers.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// The protocol of a number.
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
    /// Address it comes from.
    pub source: IpAddr,
    /// Port it comes from.
    pub source_port: u16,
    /// Address it goes to, of the same version.
    pub destination: IpAddr,
    /// Port it goes to.
    pub destination_port: u16,
}

impl Tuple {
    /// That of packets the other way.
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
    /// A connection was asked for.
    SynSent = 2,
    /// Closed by this side.
    FinWait1 = 4,
    /// That was acknowledged.
    FinWait2 = 5,
    /// The rest of a connection that both sides closed.
    TimeWait = 6,
    /// Not connected.
    Closed = 7,
    /// Closed by the other side.
    CloseWait = 8,
    /// Closed by the other side and then by this one.
    LastAck = 9,
    /// Connections are waited for.
    Listen = 10,
    /// Both sides have closed it.
    Closing = 11,
    /// A connection was asked for by the other side, which is no socket of its own yet (`TCP_NEW_SYN_RECV`).
    Request = 12,
}

impl State {
    /// Whether it is a whole socket rather than a request or what is left of one (`sk_fullsock`).
    #[must_use]
    pub fn is_full(self) -> bool {
        !matches!(self, Self::TimeWait | Self::Request)
    }
}

/// Words of a `struct bpf_sock`.
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
    /// When it last had no room for a connection, in seconds of a clock; 0 for never.
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
    /// Its protocol.
    pub protocol: Protocol,
    /// Its state.
    pub state: State,
    /// The address it is bound to, which tells its family.
    pub local: IpAddr,
    /// The port it is bound to.
    pub local_port: u16,
    /// Address and port of its peer, if it is connected.
    pub remote: Option<(IpAddr, u16)>,
    /// The interface it is bound to.
    pub interface: Option<u32>,
    /// Whether it is for IPv6 only (`IPV6_V6ONLY`).
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
        // No queue is known.
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

    /// Its protocol.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it takes packets of an IP version, 4 or 6 (`ipv6_only_sock`).
    #[must_use]
    pub fn takes_version(&self, version: u8) -> bool {
        match version {
            4 => !self.v6_only,
            _ => self.local.is_ipv6(),
        }
    }

    /// Address of its `struct bpf_sock`, valid as long as its network lives.
    #[must_use]
    pub fn record(&self) -> *const AtomicU32 {
        self.record.address()
    }

    /// Whether maps of sockets take it: a connection that is established, a socket that listens, any of UDP that has a port
    /// (`sock_map_sk_state_allowed`).
    #[must_use]
    pub fn is_for_maps(&self) -> bool {
        match self.protocol {
            Protocol::Tcp => matches!(self.state, State::Established | State::Listen),
            Protocol::Udp => self.local_port != 0,
        }
    }

    /// Whether there is no room for more connections that were accepted (`sk_acceptq_is_full`).
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.queued > self.backlog
    }

    /// Most connections that wait for it, to be accepted or to be made.
    #[must_use]
    pub fn backlog(&self) -> u32 {
        self.backlog
    }

    /// Notes that there was no room for a connection, at a time in seconds.
    pub fn overflows(&self, seconds: u64) {
        self.overflow.store(seconds.max(1), Ordering::Relaxed);
    }

    /// Whether there was no room in the two minutes before a time in seconds, and so cookies may come back
    /// (`tcp_synq_no_recent_overflow`).
    #[must_use]
    pub fn has_overflowed(&self, seconds: u64) -> bool {
        // `TCP_SYNCOOKIE_VALID`
        const VALID: u64 = 120;
        let last = self.overflow.load(Ordering::Relaxed);
        last != 0 && seconds.saturating_add(1) >= last && seconds <= last + VALID
    }

    /// The address that packets of a version must go to; `None` if it takes none of that version.
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

/// The IPv6 address of a socket (`sk_v6_rcv_saddr`), which sockets of IPv4 have none of.
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
    /// The others by protocol and port: of TCP those that listen, of UDP all.
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

    /// The socket whose record lies at an address.
    pub(crate) fn of_record(&self, address: usize) -> Option<&Socket> {
        let start = self.all.first()?.record().addr();
        let index = address.checked_sub(start)? / size_of::<Socket>();
        self.all.get(index).filter(|socket| socket.record().addr() == address)
    }

    /// How many connections are asked for of a socket that listens.
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

    /// The socket of TCP for a packet that came in on an interface, in whatever state it is.
    pub(crate) fn tcp(&self, tuple: &Tuple, interface: u32) -> Option<&Socket> {
        let connected =
            self.connected.get(tuple).into_iter().flatten().filter_map(|&index| self.all.get(index));
        connected
            .filter(|socket| socket.is_bound_to(interface))
            .find(|socket| socket.local_for(tuple.destination).is_some())
            .or_else(|| self.listener(tuple, interface))
    }

    /// The one that waits for the connection a packet asks for.
    pub(crate) fn listener(&self, tuple: &Tuple, interface: u32) -> Option<&Socket> {
        let score = |socket: &Socket| {
            let is_old = socket.local.is_ipv4() && tuple.destination.is_ipv4();
            1 + u32::from(socket.interface.is_some()) + u32::from(is_old)
        };
        self.best(Protocol::Tcp, tuple, interface, |socket| {
            (socket.state == State::Listen).then(|| score(socket))
        })
    }

    /// The socket of UDP for a packet.
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

    /// The best among those bound to the address, or else among those bound to none; of equals the first.
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
