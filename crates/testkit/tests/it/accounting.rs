//! The end of every packet is counted: pipelines whose ports fail, whose queues are short, whose packets grow, and whose programs fault.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fastrand::Rng;
use paceline::port::{FramePool, Group, MemoryPort, Port, PortError, SendError};
use paceline::{Burst, Engine, FrameMeta, Pipeline, PipelineCounts, Program, Target, Verdict, Worker};
use paceline_maps::Map;
use paceline_spec::{MapKind, MapSpec, XdpAttach};
use paceline_testkit::redirects::{ARRIVAL, EGRESS, INTERFACES, OBEY, value};
use paceline_testkit::text;

/// Loops as often as byte 8 says, which exceeds [`BUDGET`] if it is great.
const SPIN: &str = "
    r9 = r1
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r4 = r2
    r4 += 14
    if r4 > r3 goto spun
    r5 = *(u8 *)(r2 + 7)
spin:
    if r5 == 0 goto spun
    r5 -= 1
    goto spin
spun:
    r1 = r9
";

/// Grows the packet at its start by the number in byte 13, and keeps its first eight bytes first.
const GROW: &str = "
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r4 = r2
    r4 += 14
    if r4 > r3 goto grown
    r5 = *(u8 *)(r2 + 12)
    r8 = *(u64 *)(r2 + 0)
    r2 = 0
    r2 -= r5
    call bpf_xdp_adjust_head
    r1 = r9
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r4 = r2
    r4 += 14
    if r4 > r3 goto grown
    *(u64 *)(r2 + 0) = r8
grown:
    r1 = r9
";

/// Instructions after which a program of the plain interpreter faults.
const BUDGET: u64 = 200;
/// Maximum length of a packet.
const MAX_PACKET: usize = 262_144;

/// A port that fails now and then, also within a burst or group.
struct Flaky {
    port: MemoryPort,
    rng: Rng,
    is_calm: Arc<AtomicBool>,
    failures: Arc<AtomicU64>,
}

impl Flaky {
    fn fails(&mut self) -> bool {
        let fails = !self.is_calm.load(Ordering::Relaxed) && self.rng.u8(..8) == 0;
        self.failures.fetch_add(u64::from(fails), Ordering::Relaxed);
        fails
    }
}

fn failure() -> PortError {
    PortError::Io(std::io::ErrorKind::BrokenPipe.into())
}

impl Port for Flaky {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        if !self.fails() {
            return self.port.receive(burst);
        }
        let most = self.rng.usize(..=burst.room());
        burst.limited(most, |burst| self.port.receive(burst))?;
        Err(failure())
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        if !self.fails() {
            return self.port.send(group);
        }
        let most = self.rng.usize(..=group.len());
        let packets = group.iter().take(most);
        let sent = packets.take_while(|frame| self.port.push(frame.packet(), *frame.meta())).count();
        Err(SendError { sent, error: failure() })
    }

    fn pool(&self) -> Option<&Arc<FramePool>> {
        self.port.pool()
    }
}

/// The programs, which fault on the plain interpreter.
fn load(parts: &[&str], attach: XdpAttach, maps: &[Arc<Map>], engine: Engine) -> Program {
    let verified = text::verified(&parts.concat(), attach, maps).expect("it is accepted");
    Program::load(&verified, maps.to_vec(), engine).expect("it loads").with_budget(BUDGET)
}

/// Random entries: of devices, some without a port and several of one interface; of CPUs, some without a worker.
fn fill(maps: &[Arc<Map>; 3], egress: &Program, arrival: &Program, rng: &mut Rng) {
    let set = |map: &Map, key: u32, value: &[u8]| map.insert(&key.to_ne_bytes(), value).expect("an entry");
    for key in (0..10).filter(|key| key % 3 == 0 || rng.bool()).collect::<Vec<_>>() {
        let program = if rng.bool() { egress.id() } else { 0 };
        set(&maps[0], key, &value([rng.u32(2..=6), program]));
    }
    for key in 0..2_u32 {
        set(&maps[1], key, &(100 + key).to_ne_bytes());
    }
    for key in 0..3 {
        let program = if rng.bool() { arrival.id() } else { 0 };
        set(&maps[2], key, &value([rng.u32(1..200), program]));
    }
}

/// A packet that asks for an action of [`OBEY`].
fn packet(rng: &mut Rng) -> Vec<u8> {
    let spins = if rng.u8(..40) == 0 { 255 } else { 0 };
    let grows = *rng.choice(&[0, 0, 0, 4, 14, 100, 216, 255]).expect("one of them");
    let mut packet = vec![rng.u8(..12), rng.u8(..10), rng.u8(..6), rng.u8(..7), 0, 0, 0, spins];
    packet.extend([0, 0, 0, 0, grows]);
    let len = match rng.u16(..1000) {
        0..3 => MAX_PACKET - rng.usize(..300),
        3..50 => 3500 + rng.usize(..40),
        50..60 => rng.usize(..14),
        _ => rng.usize(14..90),
    };
    packet.resize(len, 0);
    packet
}

/// Runs a random pipeline, and compares its counts with those at the other ends of its ports. Returns the counts that are to occur.
fn run(seed: u64) -> [u64; 8] {
    let mut rng = Rng::with_seed(seed);
    let engine = if rng.bool() { Engine::Plain } else { Engine::best() };
    let kinds = [(MapKind::DevMap, "devices", 8, 10), (MapKind::XskMap, "sockets", 4, 4)];
    let kinds = kinds.into_iter().chain([(MapKind::CpuMap, "cpus", 8, 3)]);
    let maps = kinds.map(|(kind, name, size, entries)| {
        text::map(&MapSpec::new(name, kind, 4, size, entries), 3).expect("a map")
    });
    let maps: [Arc<Map>; 3] = maps.collect::<Vec<_>>().try_into().expect("three maps");
    let egress = load(&[SPIN, EGRESS], XdpAttach::DevMap, &maps, engine);
    let arrival = load(&[SPIN, ARRIVAL], XdpAttach::CpuMap, &maps, engine);
    fill(&maps, &egress, &arrival, &mut rng);
    let pipeline = Pipeline::new();
    let obey = Target::from(&load(&[SPIN, GROW, OBEY], XdpAttach::Interface, &maps, engine));

    let (is_calm, failures) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    // A pool with too few frames for all that waits.
    let pool = FramePool::on_heap(rng.u32(1..600));
    let mut wires = Vec::new();
    let mut port = |rng: &mut Rng| {
        let room = *rng.choice(&[20, 100, 1000]).expect("one of them");
        let in_pool = rng.bool();
        let (port, wire) = if in_pool { MemoryPort::link_in(&pool, room) } else { MemoryPort::link(room) };
        wires.push(wire);
        Flaky { port, rng: rng.fork(), is_calm: Arc::clone(&is_calm), failures: Arc::clone(&failures) }
    };
    let mut workers: Vec<Worker> = (0..2).map(|cpu| pipeline.worker(cpu)).collect();
    for ifindex in INTERFACES {
        if rng.u8(..5) > 0 {
            pipeline.set_program(ifindex, Some(&obey)).expect("a site");
        }
        workers[0].attach(ifindex, 0, port(&mut rng));
    }
    // The other CPU sends to some of them only.
    workers[1].attach_to_send(3, port(&mut rng));
    for (worker, socket) in workers.iter_mut().zip([100, 101]) {
        match rng.u8(..3) {
            0 => {}
            1 => worker.deliver_to(port(&mut rng)),
            _ => worker.connect_stack(port(&mut rng)),
        }
        worker.attach_socket(socket, port(&mut rng));
        worker.set_burst(*rng.choice(&[64, 64, 7, 1]).expect("one of them"));
        if rng.bool() {
            worker.use_pool(&pool);
        }
    }

    let (mut accepted, mut out) = (0, 0);
    for _ in 0..rng.u32(1..20) {
        for wire in &wires {
            let packets = (0..rng.u32(..80)).map(|_| packet(&mut rng)).collect::<Vec<_>>();
            accepted += packets.iter().filter(|packet| wire.push(packet, FrameMeta::default())).count();
        }
        for worker in &mut workers {
            // Its failures are counted below.
            drop(worker.poll());
        }
        if rng.bool() {
            out += wires.iter().map(|wire| std::iter::from_fn(|| wire.pop()).count()).sum::<usize>();
        }
    }
    is_calm.store(true, Ordering::Relaxed);
    // One may leave packets in the queue of its CPU.
    workers.truncate(rng.usize(1..=2));
    let mut idle = 0;
    while idle < 2 {
        let polled = workers.iter_mut().map(|worker| worker.poll().unwrap_or(1));
        idle = if polled.sum::<usize>() == 0 { idle + 1 } else { 0 };
        out += wires.iter().map(|wire| std::iter::from_fn(|| wire.pop()).count()).sum::<usize>();
    }
    drop(workers);
    out += wires.iter().map(|wire| std::iter::from_fn(|| wire.pop()).count()).sum::<usize>();

    let (counts, ports, errors) = (pipeline.counts(), pipeline.ports(), pipeline.errors());
    assert_eq!(counts.balance(), 0, "seed {seed}: {counts:?}");
    let sum = |of: fn(&paceline::PortCounts) -> u64| ports.iter().map(of).sum::<u64>();
    let (received, sent) = (sum(|port| port.received), sum(|port| port.sent));
    assert_eq!(out as u64, sent, "seed {seed}: packets at the other ends: {counts:?}");
    // Those of a worker without ports, or that has gone, stay at its ports.
    assert!(received <= accepted as u64, "seed {seed}");
    assert_eq!(
        counts.received - received,
        counts.sent - sent,
        "seed {seed}: over the queues of CPUs: {counts:?}"
    );
    let noted: u64 = errors.values().map(|errors| errors.receive + errors.send).sum();
    assert_eq!(noted, failures.load(Ordering::Relaxed), "seed {seed}: failures of ports");
    let faults = errors.values().map(|errors| errors.faults).sum();
    let PipelineCounts { copies, released, refused, no_target, stopped, lost, .. } = counts;
    [faults, copies, released, refused, no_target, stopped, lost, counts.sent - sent]
}

#[test]
fn the_end_of_every_packet_is_counted() {
    let seeds = std::env::var("PACELINE_PIPELINES").map_or(60, |seeds| seeds.parse().expect("a number"));
    let mut all = [0; 8];
    (0..seeds).map(run).for_each(|counts| all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count));
    assert!(all.iter().all(|&count| count > 0), "an end that no packet had: {all:?}");
}

/// Sends packets through a program, and returns what arrives at the interface 5 and on the host's side, with the counts.
fn arriving(call: &str, entries: usize, with_program: bool, packets: &[Vec<u8>]) -> (Vec<usize>, Pipeline) {
    let devices = text::map(&MapSpec::new("devices", MapKind::DevMap, 4, 8, 4), 1).expect("a map");
    let cpus = text::map(&MapSpec::new("cpus", MapKind::CpuMap, 4, 8, 1), 1).expect("a map");
    let maps = [devices, cpus];
    let out = load(&["r0 = 2\nexit"], XdpAttach::DevMap, &[], Engine::best());
    for key in 0..entries as u32 {
        let entry = value([5, if with_program { out.id() } else { 0 }]);
        maps[0].insert(&key.to_ne_bytes(), &entry).expect("an entry");
    }
    maps[1].insert(&[0; 4], &value([192, 0])).expect("an entry");
    let pipeline = Pipeline::new();
    let program =
        load(&[call, "r2 = 0\ncall bpf_redirect_map\nexit"], XdpAttach::Interface, &maps, Engine::best());
    pipeline.set_program(1, Some(&Target::from(&program))).expect("a site");
    let mut worker = pipeline.worker(0);
    let [(card, wire), (device, far), (stack, host)] = std::array::from_fn(|_| MemoryPort::link(1024));
    worker.attach(1, 0, card);
    worker.attach(5, 0, device);
    worker.deliver_to(stack);
    assert!(packets.iter().all(|packet| wire.push(packet, FrameMeta::default())));
    while worker.poll().expect("nothing fails") > 0 {}
    let (mut burst, mut lengths) = (Burst::default(), Vec::new());
    for mut port in [far, host] {
        while {
            burst.clear();
            port.receive(&mut burst).expect("a port in memory") > 0
        } {
            lengths.extend(burst.iter().map(|frame| frame.packet().len()));
        }
    }
    (lengths, pipeline)
}

#[test]
fn a_broadcast_to_several_entries_of_an_interface_sends_every_copy() {
    let broadcast = "r1 = map[devices] ll\nr3 = 8\n";
    for (entries, with_program) in [(2, false), (2, true), (4, true)] {
        let (lengths, pipeline) = arriving(broadcast, entries, with_program, &vec![vec![0; 60]; 64]);
        let counts = pipeline.counts();
        assert_eq!((lengths.len(), counts.sent), (64 * entries, 64 * entries as u64), "{entries} entries");
        assert_eq!((counts.copies, counts.balance()), (64 * (entries as u64 - 1), 0));
    }
}

#[test]
fn a_packet_of_maximum_length_that_grows_arrives() {
    let grow = "r6 = r1\nr2 = -14\ncall bpf_xdp_adjust_head\n";
    let to_device = [grow, "r1 = map[devices] ll\nr3 = 0\n"].concat();
    let to_cpu = [grow, "r1 = map[cpus] ll\nr3 = 0\n"].concat();
    for (call, with_program) in [(&to_device, false), (&to_device, true), (&to_cpu, false)] {
        let (lengths, pipeline) = arriving(call, 1, with_program, &[vec![0; MAX_PACKET]]);
        assert_eq!(lengths, [MAX_PACKET + 14], "{call}");
        assert_eq!(pipeline.counts().balance(), 0);
    }
}

#[test]
fn packets_that_no_port_takes_are_released() {
    let pipeline = Pipeline::new();
    let mut worker = pipeline.worker(0);
    let (card, wire) = MemoryPort::link(8);
    worker.attach(1, 0, card);
    assert!((0..3).all(|_| wire.push(&[0; 60], FrameMeta::default())));
    assert_eq!(worker.poll().expect("nothing fails"), 3);
    let counts = pipeline.counts();
    assert_eq!((counts.of(Verdict::Pass), counts.released, counts.sent, counts.balance()), (3, 3, 0, 0));
}
