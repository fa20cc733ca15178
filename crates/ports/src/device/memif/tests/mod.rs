//! Two ports with each other, and ports with peers that break the protocol.

mod peers;
mod ports;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::port::{Group, Port};
use paceline_frame::{Burst, FrameMeta, FramePool};

use super::{MemifOptions, MemifPort, MemifRole};

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
