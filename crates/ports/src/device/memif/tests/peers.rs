//! Ports with peers that break the protocol.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::port::Port;
use paceline_frame::MAX_PACKET;

use super::super::channel::{Channel, End};
use super::super::event::Event;
use super::super::message::{AddRing, Hello, Init, Message, VERSION, padded};
use super::super::region::Region;
use super::super::ring::{Entry, MORE, Ring, size};
use super::super::socket::{self, Listener};
use super::super::{MemifOptions, MemifPort};
use super::{name, open, packet, received, send, server, turn, until};

/// A client that sends what a test says.
struct Peer {
    channel: Channel,
    region: Arc<[Region]>,
    memory: OwnedFd,
    events: [Event; 2],
}

/// Logarithm of the entries of a hostile client's rings.
const LOG2: u8 = 3;
const LEN: usize = 1 << 16;
const TO_CLIENT: u32 = 4096;

impl Peer {
    /// Connects and reads the server's first message.
    fn new(name: &str, servers: &mut [MemifPort]) -> Self {
        let socket = socket::connect_to(&socket::address(name).expect("a name")).expect("it connects");
        let (region, memory) = Region::create(LEN).expect("memory");
        for offset in [0, TO_CLIENT as usize] {
            assert!(Ring::format(&region, offset));
        }
        let events = [(); 2].map(|()| Event::new().expect("an event"));
        let peer = Self { channel: Channel(socket), region: Arc::new([region]), memory, events };
        assert!(matches!(peer.answer(servers), Message::Hello(_)));
        peer
    }

    fn answer(&self, servers: &mut [MemifPort]) -> Message {
        let mut found = None;
        until("an answer", || {
            turn(servers);
            found = self.channel.receive().expect("a message").map(|(message, _)| message);
            found.is_some()
        });
        found.expect("a message")
    }

    /// Sends a message and returns the reason of the end, if it ends the connection.
    fn say(&self, servers: &mut [MemifPort], message: &Message, fd: Option<&OwnedFd>) -> Option<String> {
        self.channel.send(message, fd.map(AsFd::as_fd)).expect("it is sent");
        match self.answer(servers) {
            Message::Disconnect { reason } => Some(reason),
            Message::Ack | Message::Connected => None,
            other => panic!("{other:?}"),
        }
    }

    fn init() -> Message {
        Message::Init(Init { version: VERSION, id: 0, mode: 0, secret: padded("") })
    }

    fn rings() -> [AddRing; 2] {
        let ring = AddRing { to_server: true, index: 0, region: 0, offset: 0, log2_entries: LOG2 };
        [ring, AddRing { to_server: false, offset: TO_CLIENT, ..ring }]
    }

    /// Makes a whole connection.
    fn connect(name: &str, servers: &mut [MemifPort]) -> Self {
        let peer = Self::new(name, servers);
        assert_eq!(peer.say(servers, &Self::init(), None), None);
        let region = Message::AddRegion { index: 0, size: LEN as u64 };
        assert_eq!(peer.say(servers, &region, Some(&peer.memory)), None);
        for (ring, event) in Self::rings().into_iter().zip(&peer.events) {
            let event = event.share().expect("a descriptor");
            assert_eq!(peer.say(servers, &Message::AddRing(ring), Some(&event)), None);
        }
        assert_eq!(peer.say(servers, &Message::Connect, None), None);
        peer
    }

    fn ring(&self, offset: u32) -> Ring {
        Ring::open(&self.region, 0, offset, LOG2).expect("a ring")
    }

    /// The reason for which the server ends the connection.
    fn reason(&self, servers: &mut [MemifPort]) -> String {
        match self.answer(servers) {
            Message::Disconnect { reason } => reason,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn clients_that_break_the_protocol_are_disconnected() {
    let name = name();
    let mut servers = open(&name, &server());
    let file = OwnedFd::from(std::fs::File::open("/dev/null").expect("a file"));
    let region = |index, size| Message::AddRegion { index, size };
    let [to_server, _] = Peer::rings();
    let ring = |change: fn(&mut AddRing)| {
        let mut ring = to_server;
        change(&mut ring);
        Message::AddRing(ring)
    };
    // Each ends a connection by its last message; the regular ones before it are accepted.
    let (memory, event) = (Some(0), Some(1));
    let good = (region(0, LEN as u64), memory);
    type Sent = (Message, Option<usize>);
    let connect_with = |change: fn(&mut AddRing)| {
        vec![(Peer::init(), None), good.clone(), (ring(change), event), (Message::Connect, None)]
    };
    let attacks: Vec<(Vec<Sent>, &str)> = vec![
        (vec![(Message::Connect, None)], "unexpected message"),
        (vec![(region(0, 1), memory)], "unexpected message"),
        (
            vec![(
                Message::Hello(Hello {
                    min_version: 0,
                    max_version: 0,
                    max_region: 0,
                    max_to_client: 0,
                    max_to_server: 0,
                    max_log2_entries: 0,
                }),
                None,
            )],
            "unexpected message",
        ),
        (
            vec![(Message::Init(Init { version: 1, id: 0, mode: 0, secret: padded("") }), None)],
            "incompatible memif version",
        ),
        (
            vec![(Message::Init(Init { version: VERSION, id: 0, mode: 1, secret: padded("") }), None)],
            "only Ethernet is supported",
        ),
        (vec![(Peer::init(), None), (Peer::init(), None)], "unexpected message"),
        (vec![(Peer::init(), None), (Message::Ack, None)], "unexpected message"),
        (vec![(Peer::init(), None), (region(0, LEN as u64), None)], "region without its descriptor"),
        (vec![(Peer::init(), None), (region(1, LEN as u64), memory)], "invalid region index"),
        (vec![(Peer::init(), None), (region(0, 0), memory)], "invalid region size"),
        (vec![(Peer::init(), None), (region(0, LEN as u64 + 1), memory)], "region is larger than its file"),
        (vec![(Peer::init(), None), (region(0, u64::MAX), memory)], "regions are too large"),
        (vec![(Peer::init(), None), (region(0, LEN as u64), event)], "region is no memory file"),
        (vec![(Peer::init(), None), good.clone(), (good.0.clone(), memory)], "invalid region index"),
        (vec![(Peer::init(), None), good.clone(), (ring(|_| ()), None)], "ring without its descriptor"),
        (
            vec![(Peer::init(), None), good.clone(), (ring(|_| ()), Some(2))],
            "ring without an event descriptor",
        ),
        (
            vec![(Peer::init(), None), good.clone(), (ring(|_| ()), memory)],
            "ring without an event descriptor",
        ),
        (
            vec![(Peer::init(), None), good.clone(), (ring(|ring| ring.index = 1), event)],
            "invalid ring index",
        ),
        (
            vec![(Peer::init(), None), good.clone(), (ring(|_| ()), event), (ring(|_| ()), event)],
            "invalid ring index",
        ),
        (connect_with(|ring| ring.region = 1), "ring in an unknown region"),
        (connect_with(|ring| ring.log2_entries = 15), "ring has too many entries"),
        (connect_with(|ring| ring.log2_entries = 12), "ring outside of its region"),
        (connect_with(|ring| ring.offset = u32::MAX - 7), "ring outside of its region"),
        (connect_with(|ring| ring.offset = 4), "ring outside of its region"),
        (connect_with(|ring| ring.offset = 64), "ring without its cookie"),
    ];
    for (number, (messages, wanted)) in attacks.into_iter().enumerate() {
        let peer = Peer::new(&name, &mut servers);
        let event = peer.events[0].share().expect("a descriptor");
        let fds = [&peer.memory, &event, &file];
        let last = messages.len() - 1;
        for (index, (message, fd)) in messages.iter().enumerate() {
            let ended = peer.say(&mut servers, message, fd.map(|fd| fds[fd]));
            if index < last {
                assert_eq!(ended, None, "attack {number}, message {index}");
            } else {
                let reason = ended.unwrap_or_else(|| panic!("attack {number} is accepted"));
                assert!(reason.starts_with(wanted), "attack {number}: {reason}, {wanted}");
            }
        }
        assert_eq!(peer.channel.receive().err(), Some(End::Closed), "attack {number}");
    }
    // The server still serves.
    let peer = Peer::connect(&name, &mut servers);
    drop(peer);
}

#[test]
fn messages_of_a_wrong_size_end_a_connection() {
    let name = name();
    let mut servers = open(&name, &server());
    for bytes in [&[0_u8; 127][..], &[0; 129], &[0xff; 128], &[1]] {
        let peer = Peer::new(&name, &mut servers);
        rustix::net::send(&peer.channel, bytes, rustix::net::SendFlags::empty()).expect("it is sent");
        let reason = peer.reason(&mut servers);
        assert!(["invalid message size", "unknown message type"].contains(&&*reason), "{reason}");
    }
    // One that says nothing loses its place to the next one.
    let silent = Peer::new(&name, &mut servers);
    assert_eq!(silent.reason(&mut servers), "the connection is not made in time");
    drop(Peer::connect(&name, &mut servers));
}

#[test]
fn rings_that_lie_end_a_connection() {
    let name = name();
    let mut servers = open(&name, &server());
    let entry = |len, offset| Entry { flags: 0, region: 0, len, offset };
    let within = entry(60, 8192);
    type Attack = (Entry, u16, &'static str);
    let received: [Attack; 8] = [
        (within, 9, "ring index out of range"),
        (within, u16::MAX, "ring index out of range"),
        (Entry { region: 1, ..within }, 1, "buffer in an unknown region"),
        (Entry { region: u16::MAX, ..within }, 1, "buffer in an unknown region"),
        (entry(60, LEN as u32 - 59), 1, "buffer outside of its region"),
        (entry(u32::MAX, 0), 1, "buffer outside of its region"),
        (entry(60, u32::MAX), 1, "buffer outside of its region"),
        (Entry { flags: MORE, ..within }, 8, "packet without end"),
    ];
    for (entry, head, wanted) in received {
        let peer = Peer::connect(&name, &mut servers);
        let ring = peer.ring(0);
        (0..8).for_each(|index| ring.set_entry(index, entry).expect("an entry"));
        ring.set_head(head).expect("a head");
        assert_eq!(peer.reason(&mut servers), wanted, "{entry:?}, {head}");
    }
    let sent: [Attack; 4] = [
        (within, 9, "ring index out of range"),
        (Entry { region: 1, ..within }, 8, "buffer in an unknown region"),
        (entry(60, LEN as u32 - 59), 8, "buffer outside of its region"),
        (entry(0, 0), 8, "buffer without room"),
    ];
    for (entry, head, wanted) in sent {
        let peer = Peer::connect(&name, &mut servers);
        let ring = peer.ring(TO_CLIENT);
        (0..8).for_each(|index| ring.set_entry(index, entry).expect("an entry"));
        ring.set_head(head).expect("a head");
        turn(&mut servers);
        assert_eq!(send(&mut servers[0], &[packet(1, 60)]), 0);
        assert_eq!(peer.reason(&mut servers), wanted, "{entry:?}, {head}");
    }
}

#[test]
fn packets_of_any_length_are_received_or_counted() {
    let name = name();
    let mut servers = open(&name, &server());
    let peer = Peer::connect(&name, &mut servers);
    turn(&mut servers);
    let ring = peer.ring(0);
    // Too short, the shortest, one in two buffers, and one that is longer than a packet may be: eight buffers of the whole memory.
    let entries = [(0, 13), (0, 14), (MORE, 20), (0, 20)];
    for (index, (flags, len)) in entries.into_iter().enumerate() {
        let entry = Entry { flags, region: 0, len, offset: 8192 + 64 * index as u32 };
        ring.set_entry(index as u16, entry).expect("an entry");
    }
    ring.set_head(4).expect("a head");
    let lengths: Vec<_> = received(&mut servers[0], 2).iter().map(Vec::len).collect();
    assert_eq!((lengths, servers[0].dropped()), (vec![14, 40], 1));
    for index in 4..12 {
        let flags = if index < 11 { MORE } else { 0 };
        let entry = Entry { flags, region: 0, len: LEN as u32, offset: 0 };
        ring.set_entry(index, entry).expect("an entry");
    }
    const { assert!(8 * LEN > MAX_PACKET) };
    ring.set_head(12).expect("a head");
    until("the packet", || {
        turn(&mut servers);
        servers[0].dropped() == 2
    });
    // The server has given all entries back, and the connection stands.
    assert_eq!(ring.tail(), Ok(12));
    assert!(servers[0].is_connected());
}

#[test]
fn servers_that_lie_are_left() {
    let hello = Hello {
        min_version: VERSION,
        max_version: VERSION,
        max_region: 0,
        max_to_client: 0,
        max_to_server: 0,
        max_log2_entries: 3,
    };
    let name = name();
    let listener = Listener::bind(&name).expect("a socket");
    let mut clients = open(&name, &MemifOptions::default());
    let accept = |clients: &mut Vec<MemifPort>| {
        let mut found = None;
        until("a client", || {
            turn(clients);
            found = listener.accept().map(Channel);
            found.is_some()
        });
        found.expect("a client")
    };
    let next = |channel: &Channel, clients: &mut Vec<MemifPort>| {
        let mut found = None;
        until("a message", || {
            turn(clients);
            found = channel.receive().expect("a message");
            found.is_some()
        });
        found.expect("a message")
    };
    for (message, wanted) in [
        (Message::Hello(Hello { min_version: VERSION + 1, ..hello }), "incompatible memif version"),
        (Message::Hello(Hello { max_version: VERSION - 1, ..hello }), "incompatible memif version"),
        (Message::Connected, "unexpected message"),
        (Message::Ack, "unexpected message"),
    ] {
        let channel = accept(&mut clients);
        channel.send(&message, None).expect("it is sent");
        let reason = wanted.to_owned();
        assert_eq!(next(&channel, &mut clients).0, Message::Disconnect { reason });
    }
    // Both rings of a connection that is made: the server moves its index too far, or says that a buffer has more than it can hold.
    for attack in 0..3 {
        let channel = accept(&mut clients);
        channel.send(&Message::Hello(hello), None).expect("it is sent");
        let mut memory = None;
        let mut rings = Vec::new();
        loop {
            let (message, fd) = next(&channel, &mut clients);
            match message {
                Message::AddRegion { size, .. } => {
                    memory = fd.map(|fd| Region::open(&fd, size).expect("memory"))
                }
                Message::AddRing(ring) => rings.push(ring),
                Message::Connect => break,
                _ => {}
            }
            channel.send(&Message::Ack, None).expect("it is sent");
        }
        channel.send(&Message::Connected, None).expect("it is sent");
        let regions: Arc<[Region]> = Arc::new([memory.expect("memory")]);
        let open = |ring: &AddRing| Ring::open(&regions, 0, ring.offset, ring.log2_entries).expect("a ring");
        let [to_server, to_client] = [open(&rings[0]), open(&rings[1])];
        assert_eq!(rings[1].offset as usize, size(3).next_multiple_of(64));
        until("the connection", || {
            turn(&mut clients);
            clients[0].is_connected() && to_client.head() == Ok(8)
        });
        let wanted = match attack {
            0 => {
                to_client.set_tail(9).expect("a tail");
                "ring index out of range"
            }
            1 => {
                to_client.set_entry(0, Entry { len: 2049, ..Entry::default() }).expect("an entry");
                to_client.set_tail(1).expect("a tail");
                "buffer outside of its region"
            }
            _ => {
                to_server.set_tail(1).expect("a tail");
                assert_eq!(send(&mut clients[0], &[packet(1, 60)]), 0);
                "ring index out of range"
            }
        };
        let reason = wanted.to_owned();
        assert_eq!(next(&channel, &mut clients).0, Message::Disconnect { reason });
        assert!(!clients[0].is_connected());
    }
    // One that vanishes in between.
    drop(accept(&mut clients));
    until("another attempt", || {
        turn(&mut clients);
        listener.accept().is_some()
    });
}
