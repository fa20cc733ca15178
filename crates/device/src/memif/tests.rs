//! Two ports with each other, and ports with peers that break the protocol.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use paceline_frame::{Burst, FrameMeta, FramePool, MAX_PACKET};
use paceline_port::{Group, Port};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::channel::{Channel, End};
use super::event::Event;
use super::message::{AddRing, Hello, Init, Message, VERSION, padded};
use super::region::Region;
use super::ring::{Entry, MORE, Ring, size};
use super::socket::{self, Listener};
use super::{MemifOptions, MemifPort, MemifRole};
use crate::OpenError;

const PATIENCE: Duration = Duration::from_secs(5);

/// An abstract name that no other test has.
fn name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("@paceline-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn server() -> MemifOptions {
    MemifOptions { role: MemifRole::Server, ..MemifOptions::default() }
}

fn open(name: &str, options: &MemifOptions) -> Vec<MemifPort> {
    MemifPort::open(name, options, &FramePool::on_heap(512)).expect("it opens")
}

/// Looks for packets, which also attends to the peer; those that come are forgotten.
fn turn(ports: &mut [MemifPort]) {
    let mut burst = Burst::default();
    for port in ports {
        for _ in 0..64 {
            burst.clear();
            port.receive(&mut burst).expect("a memif port does not fail");
        }
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
    }
}

/// A server and a client that are connected.
fn pair(server: &MemifOptions, client: &MemifOptions) -> (Vec<MemifPort>, Vec<MemifPort>) {
    let name = name();
    let mut servers = open(&name, server);
    let opened = std::thread::scope(|scope| {
        let client = scope.spawn(|| open(&name, client));
        while !client.is_finished() {
            turn(&mut servers);
        }
        client.join().expect("it opens")
    });
    let mut clients = opened;
    until("the connection", || {
        turn(&mut clients);
        turn(&mut servers);
        clients[0].is_connected() && servers[0].is_connected()
    });
    (servers, clients)
}

fn packet(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + number) as u8).collect()
}

fn send(port: &mut MemifPort, packets: &[Vec<u8>]) -> usize {
    let mut burst = Burst::default();
    packets.iter().for_each(|packet| burst.push(packet, FrameMeta::default()).expect("room"));
    let all: Vec<u8> = (0..packets.len() as u8).collect();
    port.send(Group::new(&mut burst, &all, 0)).expect("a memif port does not fail")
}

/// Packets that arrive, until there are this many.
fn received(port: &mut MemifPort, count: usize) -> Vec<Vec<u8>> {
    let (mut packets, mut burst) = (Vec::new(), Burst::default());
    until("packets", || {
        burst.clear();
        port.receive(&mut burst).expect("a memif port does not fail");
        packets.extend(burst.iter().map(|frame| {
            assert_eq!(frame.meta().original_len as usize, frame.len());
            frame.packet().to_vec()
        }));
        packets.len() >= count
    });
    packets
}

#[test]
fn packets_go_both_ways() {
    let client = MemifOptions { queues: 2, log2_entries: 5, buffer_len: 256, ..MemifOptions::default() };
    let (mut servers, mut clients) = pair(&MemifOptions { queues: 2, ..server() }, &client);
    // The indices of the rings overflow, and packets take several buffers.
    let lengths = [14, 60, 255, 256, 257, 1000, 64];
    let all: Vec<_> = (0..lengths.len() + 8).map(|number| packet(number, lengths[number % 7])).collect();
    for round in 0..15_000 {
        let packets = &all[round % lengths.len()..][..if round % 100 == 0 { 8 } else { 3 }];
        for queue in 0..2 {
            assert_eq!(send(&mut clients[queue], packets), packets.len());
            assert_eq!(received(&mut servers[queue], packets.len()), packets, "round {round}");
            assert_eq!(send(&mut servers[queue], packets), packets.len());
            assert_eq!(received(&mut clients[queue], packets.len()), packets, "round {round}");
        }
    }
    assert_eq!((servers[0].dropped(), clients[1].dropped()), (0, 0));
}

#[test]
fn a_full_ring_takes_no_more() {
    let client = MemifOptions { log2_entries: 4, ..MemifOptions::default() };
    let (mut servers, mut clients) = pair(&server(), &client);
    let packets: Vec<_> = (0..20).map(|number| packet(number, 64)).collect();
    assert_eq!(send(&mut clients[0], &packets), 16);
    assert_eq!(send(&mut clients[0], &packets), 0);
    assert_eq!(received(&mut servers[0], 16), packets[..16]);
    assert_eq!(send(&mut servers[0], &packets), 16);
    assert_eq!(received(&mut clients[0], 16), packets[..16]);
    // A packet that is longer than the ring is left out, and others are sent.
    assert_eq!(send(&mut clients[0], &[packet(1, 40_000), packet(2, 60)]), 1);
    assert_eq!(received(&mut servers[0], 1), [packet(2, 60)]);
}

#[test]
fn sides_with_different_numbers_of_queues_meet() {
    let (mut servers, mut clients) = pair(&server(), &MemifOptions { queues: 3, ..MemifOptions::default() });
    // The queue that there is carries the packets of all.
    for client in &mut clients {
        assert_eq!(send(client, &[packet(1, 60)]), 1);
    }
    assert_eq!(received(&mut servers[0], 3).len(), 3);
}

#[test]
fn a_peer_comes_and_goes() {
    let name = name();
    let mut clients = open(&name, &MemifOptions::default());
    assert_eq!(send(&mut clients[0], &[packet(1, 60)]), 0);
    for _ in 0..2 {
        let mut servers = open(&name, &server());
        until("the connection", || {
            turn(&mut clients);
            turn(&mut servers);
            clients[0].is_connected() && servers[0].is_connected()
        });
        assert_eq!(send(&mut clients[0], &[packet(1, 60)]), 1);
        assert_eq!(received(&mut servers[0], 1), [packet(1, 60)]);
        drop(servers);
        until("the end", || {
            turn(&mut clients);
            !clients[0].is_connected()
        });
        assert_eq!(send(&mut clients[0], &[packet(1, 60)]), 0);
    }
}

#[test]
fn what_has_arrived_is_received_after_stop() {
    let (mut servers, mut clients) = pair(&server(), &MemifOptions::default());
    assert_eq!(send(&mut clients[0], &[packet(1, 60), packet(2, 60)]), 2);
    let mut burst = Burst::default();
    servers[0].stop();
    assert_eq!(send(&mut clients[0], &[packet(3, 60)]), 1);
    let mut total = 0;
    while servers[0].receive(&mut burst).expect("it works") > 0 {
        total = burst.len();
    }
    assert_eq!(total, 2);
}

#[test]
fn a_waiting_thread_is_woken() {
    let (mut servers, mut clients) = pair(&server(), &MemifOptions::default());
    wakes(&mut clients[0], &mut servers[0]);
    wakes(&mut servers[0], &mut clients[0]);
}

/// Interrupts are masked while packets come, and asked for when none do.
fn wakes(from: &mut MemifPort, to: &mut MemifPort) {
    let is_readable = |port: &MemifPort| {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let fd = port.descriptor().expect("a descriptor");
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).expect("it polls") > 0
    };
    for _ in 0..3 {
        turn(std::slice::from_mut(to));
        assert!(!is_readable(to));
        assert_eq!(send(from, &[packet(1, 60)]), 1);
        assert!(is_readable(to), "{to:?}");
        assert_eq!(received(to, 1).len(), 1);
        assert!(!is_readable(to));
        assert_eq!(send(from, &[packet(1, 60)]), 1);
        assert!(!is_readable(to), "interrupts are masked");
        assert_eq!(received(to, 1).len(), 1);
    }
}

#[test]
fn wrong_clients_are_refused_with_a_reason() {
    let secret = |secret: &str| MemifOptions { secret: secret.to_owned(), ..MemifOptions::default() };
    for (server, client, wanted) in [
        (server(), MemifOptions { id: 1, ..MemifOptions::default() }, "ID not found"),
        (MemifOptions { secret: "right".to_owned(), ..server() }, secret(""), "incorrect secret"),
        (MemifOptions { secret: "right".to_owned(), ..server() }, secret("wrong"), "incorrect secret"),
    ] {
        let name = name();
        let mut servers = open(&name, &server);
        let refused = std::thread::scope(|scope| {
            let client = scope.spawn(|| MemifPort::open(&name, &client, &FramePool::on_heap(512)).map(drop));
            while !client.is_finished() {
                turn(&mut servers);
            }
            client.join().expect("it ends")
        });
        match refused {
            Err(OpenError::Refused { reason, .. }) => assert_eq!(reason, wanted),
            other => panic!("{other:?}"),
        }
        // The right one is taken afterwards.
        let right = MemifOptions { role: MemifRole::Client, ..server };
        let mut clients = open(&name, &right);
        until("the connection", || {
            turn(&mut servers);
            turn(&mut clients);
            clients[0].is_connected()
        });
        // And no other beside it.
        let other =
            Channel(socket::connect_to(&socket::address(&name).expect("a name")).expect("it connects"));
        turn(&mut servers);
        let reason = "already connected".to_owned();
        let received = other.receive().map(|found| found.map(|(message, _)| message));
        assert_eq!(received, Ok(Some(Message::Disconnect { reason })));
    }
    let twice = name();
    let _server = open(&twice, &server());
    let again = MemifPort::open(&twice, &server(), &FramePool::on_heap(512));
    assert!(matches!(again, Err(OpenError::SocketInUse { .. })));
}

#[test]
fn a_socket_that_was_left_behind_is_replaced() {
    let path = std::env::temp_dir().join(format!("paceline-memif-{}", std::process::id()));
    let path = path.display().to_string();
    let _ = std::fs::remove_file(&path);
    std::mem::forget(Listener::bind(&path).expect("a socket"));
    // The descriptor of the forgotten one is open still.
    assert!(matches!(
        MemifPort::open(&path, &server(), &FramePool::on_heap(512)),
        Err(OpenError::SocketInUse { .. })
    ));
    let _ = std::fs::remove_file(&path);
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let ports = open(&path, &server());
    drop(ports);
    assert!(!std::path::Path::new(&path).exists());
    std::fs::write(&path, "a file").expect("a file");
    assert!(matches!(
        MemifPort::open(&path, &server(), &FramePool::on_heap(512)),
        Err(OpenError::SocketInUse { .. })
    ));
    assert_eq!(std::fs::read(&path).expect("a file"), b"a file");
    std::fs::remove_file(&path).expect("a file");
}

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
        (
            vec![
                (Peer::init(), None),
                good.clone(),
                (ring(|ring| ring.region = 1), event),
                (Message::Connect, None),
            ],
            "ring in an unknown region",
        ),
        (
            vec![
                (Peer::init(), None),
                good.clone(),
                (ring(|ring| ring.log2_entries = 15), event),
                (Message::Connect, None),
            ],
            "ring has too many entries",
        ),
        (
            vec![
                (Peer::init(), None),
                good.clone(),
                (ring(|ring| ring.log2_entries = 12), event),
                (Message::Connect, None),
            ],
            "ring outside of its region",
        ),
        (
            vec![
                (Peer::init(), None),
                good.clone(),
                (ring(|ring| ring.offset = u32::MAX - 7), event),
                (Message::Connect, None),
            ],
            "ring outside of its region",
        ),
        (
            vec![
                (Peer::init(), None),
                good.clone(),
                (ring(|ring| ring.offset = 4), event),
                (Message::Connect, None),
            ],
            "ring outside of its region",
        ),
        (
            vec![
                (Peer::init(), None),
                good.clone(),
                (ring(|ring| ring.offset = 64), event),
                (Message::Connect, None),
            ],
            "ring without its cookie",
        ),
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
