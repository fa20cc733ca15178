//! Programs that redirect as the bytes of packets request, and pipelines that run them.
//!
//! [`OBEY`] is for interfaces, [`EGRESS`] for entries of device maps and [`ARRIVAL`] for entries of CPU maps. A packet
//! begins with the number of an action and its argument.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use paceline::port::MemoryPort;
use paceline::{Engine, FrameMeta, Pipeline, PipelineCounts, Program, Target, Worker};
use paceline_maps::Map;
use paceline_spec::{MapKind, MapSpec, XdpAttach};

use crate::text;

/// The first byte is a verdict to return, or: 5 redirects to the interface in the second byte; 6 redirects by the device
/// map, or passes if there is no entry; 7 redirects to all entries of the device map except the ingress interface; 8 by the
/// socket map, or passes; 9 by the CPU map, or passes; 10 to all entries of the device map.
pub const OBEY: &str = "
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r0 = 1
    r4 = r2
    r4 += 14
    if r4 > r3 goto end
    r0 = *(u8 *)(r2 + 0)
    r4 = *(u8 *)(r2 + 1)
    if r0 == 5 goto interface
    if r0 == 6 goto by_map
    if r0 == 7 goto others
    if r0 == 8 goto socket
    if r0 == 9 goto cpu
    if r0 == 10 goto all
    goto end
interface:
    r1 = r4
    r2 = 0
    call bpf_redirect
    goto end
by_map:
    r1 = map[devices] ll
    r2 = r4
    r3 = 2
    call bpf_redirect_map
    goto end
others:
    r1 = map[devices] ll
    r2 = 0
    r3 = 24
    call bpf_redirect_map
    goto end
all:
    r1 = map[devices] ll
    r2 = 0
    r3 = 8
    call bpf_redirect_map
    goto end
socket:
    r1 = map[sockets] ll
    r2 = r4
    r3 = 2
    call bpf_redirect_map
    goto end
cpu:
    r1 = map[cpus] ll
    r2 = r4
    r3 = 2
    call bpf_redirect_map
end:
    exit
";

/// Writes the egress and ingress interfaces into bytes 9 and 10 and the queue into byte 11, and returns the verdict in byte
/// 3.
pub const EGRESS: &str = "
    r4 = *(u32 *)(r1 + 20)
    r5 = *(u32 *)(r1 + 12)
    r6 = *(u32 *)(r1 + 16)
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r0 = 1
    r1 = r2
    r1 += 14
    if r1 > r3 goto end
    *(u8 *)(r2 + 8) = r4
    *(u8 *)(r2 + 9) = r5
    *(u8 *)(r2 + 10) = r6
    r0 = *(u8 *)(r2 + 2)
end:
    exit
";

/// Writes the ingress interface into byte 10, the queue into byte 11 and 99 into byte 12. Returns the verdict in byte 3, or
/// for 5 redirects to the interface in byte 4.
pub const ARRIVAL: &str = "
    r5 = *(u32 *)(r1 + 12)
    r6 = *(u32 *)(r1 + 16)
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r0 = 1
    r1 = r2
    r1 += 14
    if r1 > r3 goto end
    *(u8 *)(r2 + 9) = r5
    *(u8 *)(r2 + 10) = r6
    r4 = 99
    *(u8 *)(r2 + 11) = r4
    r0 = *(u8 *)(r2 + 2)
    r1 = *(u8 *)(r2 + 3)
    if r0 != 5 goto end
    r2 = 0
    call bpf_redirect
end:
    exit
";

/// Interfaces with ports.
pub const INTERFACES: [u32; 4] = [2, 3, 4, 5];
/// CPUs with workers.
pub const CPUS: usize = 2;
/// Length of a CPU's queue in packets.
const ROOM: u32 = 192;

/// The maps: `devices`, `sockets`, `cpus`.
#[must_use]
pub fn maps() -> [MapSpec; 3] {
    [
        MapSpec::new("devices", MapKind::DevMap, 4, 8, 10),
        MapSpec::new("sockets", MapKind::XskMap, 4, 4, 4),
        MapSpec::new("cpus", MapKind::CpuMap, 4, 8, CPUS as u32),
    ]
}

/// Entries of a map whose values are two 32-bit numbers.
pub type Entries = Vec<(u32, [u32; 2])>;

/// Entries of the device map: key n is interface n; the second half has the program of this number or descriptor.
#[must_use]
pub fn devices(program: u32) -> Entries {
    INTERFACES.iter().map(|&ifindex| (ifindex, [ifindex, if ifindex > 3 { program } else { 0 }])).collect()
}

/// Entries of the CPU map; the last one has the program.
#[must_use]
pub fn cpus(program: u32) -> Entries {
    (0..CPUS as u32).map(|cpu| (cpu, [ROOM, if cpu + 1 == CPUS as u32 { program } else { 0 }])).collect()
}

/// The two numbers as the map's value.
#[must_use]
pub fn value(entry: [u32; 2]) -> [u8; 8] {
    let mut value = [0; 8];
    value[..4].copy_from_slice(&entry[0].to_ne_bytes());
    value[4..].copy_from_slice(&entry[1].to_ne_bytes());
    value
}

/// Output of each interface, in order; 0 has passed packets, numbers from 100 on are sockets.
pub type Out = BTreeMap<u32, Vec<Vec<u8>>>;

/// The packets of each output, sorted by number: the order of packets from other CPUs depends on when those CPUs run.
#[must_use]
pub fn sorted(mut out: Out) -> Out {
    out.values_mut().for_each(|packets| packets.sort_by_key(|packet| packet[4..8].to_vec()));
    out
}

/// Whether another CPU runs a packet, provided its entry exists.
#[must_use]
pub fn goes_to_cpu(packet: &[u8]) -> bool {
    packet[0] == 9
}

/// A pipeline with the programs [`OBEY`], [`EGRESS`] and [`ARRIVAL`], and a worker on each CPU.
pub struct Rig {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The workers by CPU. The first one has the interfaces.
    pub workers: Vec<Worker>,
    wires: BTreeMap<u32, MemoryPort>,
    _maps: Vec<Arc<Map>>,
}

impl Rig {
    /// Creates the pipeline; sockets 0 and 1 of the socket map are ports.
    ///
    /// # Errors
    /// A program does not load.
    pub fn new(engine: Engine) -> Result<Self, Box<dyn Error>> {
        const PACKETS: usize = 10_000;
        let maps = maps().iter().map(|spec| text::map(spec, CPUS)).collect::<Result<Vec<_>, _>>()?;
        let load = |text: &str, attach| -> Result<Program, Box<dyn Error>> {
            Ok(Program::load(&text::verified(text, attach, &maps)?, maps.clone(), engine)?)
        };
        let pipeline = Pipeline::new();
        let (egress, arrival) = (load(EGRESS, XdpAttach::DevMap)?, load(ARRIVAL, XdpAttach::CpuMap)?);
        let set = |map: &Map, key: u32, value: &[u8]| {
            map.insert(&key.to_ne_bytes(), value).map_err(|e| e.to_string())
        };
        for (key, entry) in devices(egress.id()) {
            set(&maps[0], key, &value(entry))?;
        }
        for socket in 0..2_u32 {
            set(&maps[1], socket, &(100 + socket).to_ne_bytes())?;
        }
        for (key, entry) in cpus(arrival.id()) {
            set(&maps[2], key, &value(entry))?;
        }
        let mut workers: Vec<Worker> = (0..CPUS).map(|cpu| pipeline.worker(cpu)).collect();
        let (mut wires, obey) = (BTreeMap::new(), Target::from(&load(OBEY, XdpAttach::Interface)?));
        for ifindex in INTERFACES {
            let (card, wire) = MemoryPort::link(PACKETS);
            pipeline.set_program(ifindex, Some(&obey))?;
            workers[0].attach(ifindex, 3, card.clone());
            wires.insert(ifindex, wire);
            workers[1..].iter_mut().for_each(|worker| worker.attach_to_send(ifindex, card.clone()));
        }
        let (stack, host) = MemoryPort::link(PACKETS);
        workers.iter_mut().for_each(|worker| worker.deliver_to(stack.clone()));
        wires.insert(0, host);
        for socket in [100, 101] {
            let (socket_port, reader) = MemoryPort::link(PACKETS);
            workers[0].attach_socket(socket, socket_port);
            wires.insert(socket, reader);
        }
        Ok(Self { pipeline, workers, wires, _maps: maps })
    }

    /// Runs the packets of interfaces. Adjacent packets of the same interface form a group, so that the interleaving does
    /// not depend on the length of bursts.
    ///
    /// # Panics
    /// If a port is full or a worker fails.
    pub fn run(&mut self, packets: &[(u32, Vec<u8>)]) -> (Out, PipelineCounts) {
        for chunk in packets.chunk_by(|(one, _), (other, _)| one == other) {
            for (ifindex, packet) in chunk {
                assert!(self.wires[ifindex].push(packet, FrameMeta::default()), "there is room");
            }
            while self.poll() > 0 {}
        }
        let take = |wire: &MemoryPort| std::iter::from_fn(|| wire.pop()).map(|(packet, _)| packet).collect();
        (self.wires.iter().map(|(&number, wire)| (number, take(wire))).collect(), self.pipeline.counts())
    }

    fn poll(&mut self) -> usize {
        self.workers.iter_mut().map(|worker| worker.poll().expect("programs and ports work")).sum()
    }
}

/// Numbered packets that request all actions, from interfaces that change now and then.
#[must_use]
pub fn packets(seed: u64, count: usize) -> Vec<(u32, Vec<u8>)> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut ifindex = INTERFACES[0];
    (0..count)
        .map(|number| {
            if rng.u8(..100) == 0 {
                ifindex = INTERFACES[rng.usize(..INTERFACES.len())];
            }
            let mut packet = vec![rng.u8(..12), rng.u8(..7), rng.u8(..6), rng.u8(..7)];
            packet.extend((number as u32).to_be_bytes());
            packet.resize(14 + rng.usize(..60), 0);
            (ifindex, packet)
        })
        .collect()
}
