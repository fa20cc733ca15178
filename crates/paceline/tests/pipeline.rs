//! Pipelines: in bursts and one by one the same packets come out of the same ports in the same order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use paceline::isa::{Names, assemble};
use paceline::port::{Generator, MemoryPort};
use paceline::verifier::{Options, verify};
use paceline::{
    Engine, FrameMeta, Limits, Map, MapKind, MapSpec, Pipeline, Program, ProgramKind, ProgramSpec, Target,
    Verdict, XdpAttach,
};

/// Does what the packet says: its first byte is a verdict to return, 5 to redirect to the interface of the second byte, 6 by
/// the device map and pass where it has no entry, 7 by all of its entries but where the packet came in.
const OBEY: &str = "
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
    if r0 == 7 goto all
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
all:
    r1 = map[devices] ll
    r2 = 0
    r3 = 24
    call bpf_redirect_map
end:
    exit
";

struct Known;

impl Names for Known {
    fn helper(&self, name: &str) -> Option<i32> {
        paceline::helper::Helper::from_name(name).map(|helper| helper.id as i32)
    }

    fn map(&self, name: &str) -> Option<i32> {
        (name == "devices").then_some(0)
    }
}

/// Keys 0 to 9; key n is interface n where there is a port, and 5 is one that nobody has.
fn devices() -> Arc<Map> {
    let spec = MapSpec::new("devices", MapKind::DevMap, 4, 4, 10);
    let map = Map::create(&spec, &Limits { cpus: 1, memory: 1 << 20 }).unwrap();
    for key in [1_u32, 2, 3, 5] {
        map.set(&key.to_ne_bytes(), &key.to_ne_bytes(), 0).unwrap();
    }
    map
}

fn load(text: &str, map: &Arc<Map>, engine: Engine) -> Program {
    let insns = assemble(text, &Known).unwrap().encode().unwrap();
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let spec = ProgramSpec::new("obey", kind, insns);
    let verified = verify(&spec, &[map.spec().clone()], None, &Options::default()).unwrap();
    Program::load(&verified, vec![Arc::clone(map)], engine).unwrap()
}

/// What came out of each port, in order; port 0 is where packets go that pass.
type Out = BTreeMap<u32, Vec<Vec<u8>>>;

/// Runs the packets of three interfaces.
fn run(packets: &[(u32, Vec<u8>)], burst: usize, each_alone: bool, engine: Engine) -> (Out, [u64; 9]) {
    let map = devices();
    let pipeline = Pipeline::new();
    let target = Target::from(&load(OBEY, &map, engine));
    let mut worker = pipeline.worker(0);
    worker.set_burst(burst);
    if each_alone {
        worker.act_on_each();
    }
    let mut wires = BTreeMap::new();
    for ifindex in 1..=3 {
        let (card, wire) = MemoryPort::link(10_000);
        worker.attach(ifindex, 0, card);
        pipeline.set_program(ifindex, Some(&target)).unwrap();
        wires.insert(ifindex, wire);
    }
    let (stack, host) = MemoryPort::link(10_000);
    worker.deliver_to(stack);
    wires.insert(0, host);
    // One at a time from the outside, so that interleaving is the same whatever the burst's length.
    for chunk in packets.chunk_by(|(one, _), (other, _)| one == other) {
        chunk.iter().for_each(|(ifindex, packet)| assert!(wires[ifindex].push(packet, FrameMeta::default())));
        while worker.poll().unwrap() > 0 {}
    }
    let out = wires.iter().map(|(&ifindex, wire)| {
        (ifindex, std::iter::from_fn(|| wire.pop()).map(|(packet, _)| packet).collect::<Vec<_>>())
    });
    let out = out.collect();
    let counts = pipeline.counts();
    let [a, b, c, d, e] = counts.verdicts;
    (out, [a, b, c, d, e, counts.unknown, counts.sent, counts.refused, counts.no_target])
}

fn packets(seed: u64, count: usize) -> Vec<(u32, Vec<u8>)> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut ifindex = 1;
    (0..count)
        .map(|number| {
            if rng.u8(..100) == 0 {
                ifindex = rng.u32(1..=3);
            }
            let mut packet = vec![rng.u8(..10), rng.u8(..7)];
            packet.extend((number as u32).to_be_bytes());
            packet.resize(14 + rng.usize(..60), 0);
            (ifindex, packet)
        })
        .collect()
}

#[test]
fn bursts_of_any_length_come_to_the_same() {
    for seed in 0..6 {
        let packets = packets(seed, 1500);
        let expected = run(&packets, 1, true, Engine::Plain);
        assert!(expected.0.values().all(|out| out.len() > 50), "all ports have packets");
        assert!(expected.1[8] > 0, "some have no target");
        for (burst, engine) in
            [(64, Engine::best()), (7, Engine::best()), (64, Engine::Threaded), (1, Engine::best())]
        {
            assert!(
                run(&packets, burst, false, engine) == expected,
                "seed {seed}, bursts of {burst}, {engine}"
            );
        }
        assert!(run(&packets, 64, true, Engine::best()) == expected, "seed {seed}, each alone");
    }
}

#[test]
fn what_packets_ask_for() {
    let ask = |ifindex: u32, what: u8, where_to: u8| {
        let mut packet = vec![0; 20];
        (packet[0], packet[1]) = (what, where_to);
        run(&[(ifindex, packet)], 64, false, Engine::best())
    };
    let came_out = |(out, _): &(Out, [u64; 9])| -> Vec<u32> {
        out.iter().flat_map(|(&port, packets)| packets.iter().map(move |_| port)).collect()
    };
    let nothing: [u32; 0] = [];
    assert_eq!(came_out(&ask(1, Verdict::Drop as u8, 0)), nothing);
    assert_eq!(came_out(&ask(1, Verdict::Pass as u8, 0)), [0]);
    assert_eq!(came_out(&ask(2, Verdict::Tx as u8, 0)), [2]);
    assert_eq!(came_out(&ask(2, 5, 3)), [3]);
    assert_eq!(came_out(&ask(2, 5, 6)), nothing, "nobody has interface 6");
    assert_eq!(came_out(&ask(2, 6, 1)), [1]);
    assert_eq!(came_out(&ask(2, 6, 4)), [0], "no entry: the flags say to pass");
    assert_eq!(came_out(&ask(2, 7, 0)), [1, 3], "to all but where it came in; nobody has 5");
    let (_, counts) = ask(1, Verdict::Redirect as u8, 0);
    assert_eq!((counts[4], counts[8]), (1, 1), "a redirect that no helper made");
    assert_eq!(ask(1, 9, 0).1[5], 1, "no verdict");
}

#[test]
fn a_full_port_refuses_the_last() {
    let map = devices();
    let pipeline = Pipeline::new();
    let reflect = load("r0 = 3\nexit", &map, Engine::best());
    pipeline.set_program(1, Some(&Target::from(&reflect))).unwrap();
    let mut worker = pipeline.worker(0);
    let (card, wire) = MemoryPort::link(10);
    worker.attach(1, 0, card);
    for round in 0..3_u8 {
        (0..5).for_each(|number| assert!(wire.push(&[round * 5 + number; 20], FrameMeta::default())));
        assert_eq!(worker.poll().unwrap(), 5);
    }
    let counts = pipeline.counts();
    assert_eq!((counts.sent, counts.refused, counts.packets(), counts.bursts), (10, 5, 15, 3));
    let kept: Vec<u8> = std::iter::from_fn(|| wire.pop()).map(|(packet, _)| packet[0]).collect();
    assert_eq!(kept, Vec::from_iter(0..10));
}

/// Programs of a running pipeline are replaced; each packet has the verdict of one of them, and none is lost.
#[test]
fn programs_are_replaced_under_traffic() {
    const PACKETS: u64 = 300_000;
    let map = devices();
    let pipeline = Pipeline::new();
    let programs =
        ["r0 = 1\nexit", "r0 = 2\nexit"].map(|text| Target::from(&load(text, &map, Engine::best())));
    pipeline.set_program(1, Some(&programs[0])).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let mut worker = pipeline.worker(1);
            worker.attach(1, 0, Generator::new(vec![vec![0; 64]], Some(PACKETS)));
            while worker.poll().unwrap() > 0 {}
            done.store(true, Ordering::Relaxed);
        });
        let mut updates = 0;
        while !done.load(Ordering::Relaxed) && !traffic.is_finished() {
            updates += 1;
            pipeline.set_program(1, programs.get(updates % 3)).unwrap();
            thread::yield_now();
        }
        traffic.join().unwrap();
    });
    let counts = pipeline.counts();
    assert_eq!(counts.packets(), PACKETS);
    assert_eq!(counts.of(Verdict::Drop) + counts.of(Verdict::Pass), PACKETS);
    let site = pipeline.site().statistics();
    assert_eq!(site.hits + site.fallbacks, counts.bursts);
    assert!(site.updates > 1);
}
