//! Two ports with each other.

use crate::port::Port;
use paceline_frame::{Burst, FramePool};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::channel::Channel;
use super::super::message::Message;
use super::super::socket::{self, Listener};
use super::super::{MemifOptions, MemifPort, MemifRole};
use super::{name, open, packet, pair, received, send, server, turn, until};
use crate::device::error::OpenError;

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
