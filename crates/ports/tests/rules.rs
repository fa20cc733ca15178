//! Every port against the rules of `Port::receive` and `Port::send`.

use std::fs;
use std::path::Path;

use paceline_frame::{Burst, FrameMeta, FramePool, FrameRef};
use paceline_ports::{
    Faults, Faulty, Gathered, Generator, Group, MemoryPort, Overflow, PacketPort, Port, PortError,
    RateLimited, SpreadPort,
};

/// A port, and what is known of it.
struct Subject {
    /// The name of its type.
    name: &'static str,
    port: Box<dyn Port>,
    /// The numbers that its packets, of a byte each, begin with.
    packets: Vec<u8>,
    /// The number of packets that it has room for.
    room: usize,
    /// The other end, which receives what is sent; none where packets are not kept.
    other: Option<MemoryPort>,
}

/// One packet at a time, over a link.
struct Single(MemoryPort);

impl PacketPort for Single {
    fn receive_packet(&mut self, burst: &mut Burst) -> Result<bool, PortError> {
        Ok(self.0.pop().is_some_and(|(packet, meta)| burst.push(&packet, meta).is_ok()))
    }

    fn send_packet(&mut self, packet: FrameRef<'_>) -> Result<bool, PortError> {
        Ok(self.0.push(packet.packet(), *packet.meta()))
    }
}

/// One row for each port of the crate.
fn subjects() -> Vec<Subject> {
    let packets: Vec<u8> = (0..150).collect();
    let linked = |name, make: fn(MemoryPort) -> Box<dyn Port>| {
        let (port, other) = MemoryPort::link(150);
        packets.iter().for_each(|number| assert!(other.push(&[*number], FrameMeta::default())));
        Subject { name, port: make(port), packets: packets.clone(), room: 150, other: Some(other) }
    };
    let given = packets.iter().map(|number| vec![*number]).collect();
    let generator = Box::new(Generator::new(given, Some(150)));
    vec![
        linked("MemoryPort", |port| Box::new(port)),
        linked("Gathered", |port| Box::new(Gathered(Single(port)))),
        linked("Box", |port| Box::new(Box::new(port) as Box<dyn Port>)),
        linked("RateLimited", |port| Box::new(RateLimited::new(port, 1_000_000_000_000))),
        linked("Faulty", |port| Box::new(Faulty::new(port, Faults::default()))),
        linked("SpreadPort", |port| {
            let pool = FramePool::on_heap(256);
            Box::new(SpreadPort::spread(port, &pool, 1, Overflow::Drop).remove(0))
        }),
        Subject { name: "Generator", port: generator, packets, room: usize::MAX, other: None },
    ]
}

fn numbers(burst: &Burst) -> Vec<u8> {
    burst.iter().map(|frame| frame.packet()[0]).collect()
}

/// The types that implement `Port` outside of tests.
fn implementors() -> Vec<String> {
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).expect("the sources");
    let files = files.map(|file| file.expect("a file").path()).filter(|path| path.is_file());
    let sources = files.map(|path| fs::read_to_string(path).expect("a text"));
    let mut found = Vec::new();
    for source in sources {
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| line.starts_with("impl"));
        let names = lines.filter_map(|line| line.split_once(" Port for ")).map(|(_, name)| name);
        found.extend(
            names.map(|name| name.chars().take_while(char::is_ascii_alphanumeric).collect::<String>()),
        );
    }
    found.sort();
    found
}

#[test]
fn every_port_is_a_subject() {
    let mut tested: Vec<_> = subjects().iter().map(|subject| subject.name.to_owned()).collect();
    tested.sort();
    assert_eq!(implementors(), tested);
}

/// A burst that has packets keeps them, is filled in order and counts what was added; without packets nothing is added.
#[test]
fn receive_adds_what_has_arrived_until_the_burst_is_full() {
    for Subject { name, mut port, packets, .. } in subjects() {
        let mut received = Vec::new();
        loop {
            let mut burst = Burst::default();
            burst.push(&[255], FrameMeta::default()).expect("an empty burst");
            let added = port.receive(&mut burst).expect("no failure");
            let kept = numbers(&burst);
            assert_eq!((kept[0], kept.len()), (255, 1 + added), "{name}");
            received.extend_from_slice(&kept[1..]);
            let all = received.len() == packets.len();
            assert!(all || burst.is_full(), "{name}: a burst is not filled: {added}");
            let room = burst.is_full();
            assert!(
                !room || port.receive(&mut burst).expect("no failure") == 0,
                "{name}: a full burst gets more"
            );
            if added == 0 {
                break;
            }
        }
        assert_eq!(received, packets, "{name}: all, once, in order");
    }
}

#[test]
fn send_takes_a_group_in_order_until_there_is_no_room() {
    let mut burst = Burst::default();
    for number in 0..60 {
        burst.push(&[number], FrameMeta::default()).expect("room in a burst");
    }
    let group: Vec<u8> = (0..60).rev().collect();
    for Subject { name, mut port, room, other, .. } in subjects() {
        let mut sent = Vec::new();
        for _ in 0..4 {
            let count = port.send(Group::new(&mut burst, &group, 0)).expect("no failure");
            assert_eq!(count, group.len().min(room - sent.len()), "{name}");
            sent.extend_from_slice(&group[..count]);
        }
        assert_eq!(port.send(Group::new(&mut burst, &[], 0)).expect("no failure"), 0, "{name}");
        let Some(other) = other else { continue };
        let arrived: Vec<u8> = std::iter::from_fn(|| other.pop()).map(|(packet, _)| packet[0]).collect();
        assert_eq!(arrived, sent, "{name}: the last ones are lost, the others are in order");
    }
}
