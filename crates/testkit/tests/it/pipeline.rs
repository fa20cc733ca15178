//! Pipelines: bursts and single packets give the same packets at the same ports in the same order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use paceline::port::{FramePool, Generator, MemoryPort, Port};
use paceline::{Engine, FrameMeta, Pipeline, PipelineCounts, Program, Target, Verdict};
use paceline_spec::{Errno, MapKind, MapSpec, XdpAttach};
use paceline_testkit::redirects::{Out, Rig, goes_to_cpu, packets, sorted};
use paceline_testkit::text;

/// Runs packets through a rig, with this maximum burst length.
fn run(packets: &[(u32, Vec<u8>)], burst: usize, engine: Engine) -> (Out, PipelineCounts) {
    let mut rig = Rig::new(engine).unwrap();
    for worker in &mut rig.workers {
        worker.set_burst(burst);
    }
    let (out, counts) = rig.run(packets);
    (out, PipelineCounts { bursts: 0, ..counts })
}

/// A program without maps.
fn load(text: &str, attach: XdpAttach) -> Program {
    Program::load(&text::verified(text, attach, &[]).unwrap(), Vec::new(), Engine::best()).unwrap()
}

/// Results of bursts of one packet on the plain interpreter, compared with those of other lengths on other engines.
fn compare_bursts(seed: u64) {
    // Packets from other CPUs depend on scheduling: other burst lengths give another order.
    let (mut packets, in_order) = (packets(seed, 3000), seed.is_multiple_of(2));
    packets.retain(|(_, packet)| !in_order || !goes_to_cpu(packet));
    let run = |burst, engine| {
        let (out, counts) = run(&packets, burst, engine);
        (if in_order { out } else { sorted(out) }, counts)
    };
    let expected = run(1, Engine::Plain);
    assert!(expected.0.values().all(|out| out.len() > 20), "all ports have packets");
    let counts = expected.1;
    assert!(counts.no_target > 0 && counts.stopped > 0 && counts.unknown > 0, "{counts:?}");
    for (burst, engine) in
        [(64, Engine::best()), (7, Engine::best()), (64, Engine::Threaded), (1, Engine::best())]
    {
        assert!(run(burst, engine) == expected, "seed {seed}, bursts of {burst}, {engine}");
    }
}

/// Seeds of each of two tests; `PACELINE_PIPELINES` sets another number.
fn seeds() -> u64 {
    std::env::var("PACELINE_PIPELINES").map_or(1, |seeds| seeds.parse().expect("a number"))
}

#[test]
fn bursts_of_any_length_come_to_the_same() {
    (0..seeds()).for_each(|seed| compare_bursts(2 * seed));
}

/// The same with packets from other CPUs, whose order depends on scheduling.
#[test]
fn bursts_of_any_length_come_to_the_same_packets() {
    (0..seeds()).for_each(|seed| compare_bursts(2 * seed + 1));
}

/// A packet that requests an action.
fn asking(what: u8, which: u8, then: u8, where_to: u8) -> Vec<u8> {
    let mut packet = vec![0; 20];
    packet[..4].copy_from_slice(&[what, which, then, where_to]);
    packet
}

#[test]
fn what_packets_ask_for() {
    const PASS: u8 = Verdict::Pass as u8;
    let ask = |ifindex: u32, what: u8, which: u8| {
        run(&[(ifindex, asking(what, which, PASS, 0))], 64, Engine::best())
    };
    let came_out = |(out, _): &(Out, PipelineCounts)| -> Vec<u32> {
        out.iter().flat_map(|(&port, packets)| packets.iter().map(move |_| port)).collect()
    };
    let nothing: [u32; 0] = [];
    assert_eq!(came_out(&ask(2, Verdict::Drop as u8, 0)), nothing);
    assert_eq!(came_out(&ask(2, PASS, 0)), [0]);
    assert_eq!(came_out(&ask(3, Verdict::Tx as u8, 0)), [3]);
    assert_eq!(came_out(&ask(3, 5, 4)), [4]);
    assert_eq!(came_out(&ask(3, 5, 6)), nothing, "nobody has interface 6");
    assert_eq!(came_out(&ask(3, 6, 2)), [2]);
    assert_eq!(came_out(&ask(3, 6, 1)), [0], "no entry: the flags say to pass");
    assert_eq!(came_out(&ask(3, 7, 0)), [2, 4, 5], "to all but where it came in");
    assert_eq!(came_out(&ask(3, 10, 0)), [2, 3, 4, 5], "to all");
    assert_eq!(came_out(&ask(3, 8, 1)), [101]);
    assert_eq!(came_out(&ask(3, 8, 2)), [0], "no such socket: the flags say to pass");
    assert_eq!(came_out(&ask(3, 9, 1)), [0], "the other CPU passes it");
    let (_, counts) = ask(2, Verdict::Redirect as u8, 0);
    assert_eq!((counts.of(Verdict::Redirect), counts.no_target), (1, 1), "a redirect that no helper made");
    assert_eq!(ask(2, 11, 0).1.unknown, 1, "no verdict");
}

/// The bytes that the programs write, for all packets of one output.
fn written(out: &Out, port: u32) -> Vec<[u8; 4]> {
    out[&port].iter().map(|packet| packet[8..12].try_into().unwrap()).collect()
}

#[test]
fn packets_go_out_through_the_programs_of_entries() {
    const PASS: u8 = Verdict::Pass as u8;
    // To all: each output gets the unchanged packet, in any order.
    let (out, counts) = run(&[(2, asking(10, 0, PASS, 0))], 64, Engine::best());
    assert_eq!([written(&out, 2), written(&out, 3)], [[[0; 4]], [[0; 4]]]);
    assert_eq!([written(&out, 4), written(&out, 5)], [[[4, 2, 0, 0]], [[5, 2, 0, 0]]]);
    assert_eq!((counts.sent, counts.stopped, counts.packets()), (4, 0, 1));
    // Only packets with verdict pass are sent.
    for verdict in [0, 1, 3, 4, 5] {
        let packets =
            [(2, asking(6, 4, verdict, 3)), (2, asking(6, 4, PASS, 0)), (2, asking(5, 4, verdict, 0))];
        let (out, counts) = run(&packets, 64, Engine::best());
        assert_eq!(written(&out, 4), [[4, 2, 0, 0], [0; 4]], "in order, the last one past the entry");
        assert_eq!((counts.stopped, counts.sent, counts.no_target), (1, 2, 0));
    }
}

#[test]
fn packets_go_to_other_cpus() {
    const PASS: u8 = Verdict::Pass as u8;
    let packets = [
        (4, asking(9, 1, PASS, 0)),
        (4, asking(9, 1, 5, 3)),
        (4, asking(9, 1, Verdict::Tx as u8, 0)),
        (4, asking(9, 0, 1, 0)),
    ];
    let (out, counts) = run(&packets, 64, Engine::best());
    assert_eq!(written(&out, 0), [[0; 4], [0, 4, 0, 99]], "its own has no program, and came first");
    assert_eq!(written(&out, 3), [[0, 4, 0, 99]], "the program there redirects");
    assert_eq!(counts.of(Verdict::Aborted), 1, "from there nothing is sent back");
    assert_eq!(counts.packets(), 8, "they count here and there");
}

#[test]
fn a_cpu_has_as_much_room_as_its_entry_says() {
    let mut rig = Rig::new(Engine::best()).unwrap();
    let far = rig.workers.pop().unwrap();
    let packets: Vec<_> = (0..200).map(|_| (2, asking(9, 1, 2, 0))).collect();
    let (_, counts) = rig.run(&packets);
    assert_eq!((counts.sent, counts.refused, counts.no_target), (192, 8, 0));
    drop(far);
    let (_, counts) = rig.run(&packets[..3]);
    assert_eq!((counts.refused, counts.no_target), (8, 3), "nobody is there");
    assert_eq!(counts.lost, 192, "nobody ran what was handed over");
}

#[test]
fn entries_keep_their_programs() {
    let pipeline = Pipeline::new();
    let devices = text::map(&MapSpec::new("devices", MapKind::DevMap, 4, 8, 2), 1).unwrap();
    let all = "r1 = map[devices] ll\nr2 = 0\nr3 = 8\ncall bpf_redirect_map\nexit";
    let all = text::verified(all, XdpAttach::Interface, std::slice::from_ref(&devices)).unwrap();
    let all = Program::load(&all, vec![devices.clone()], Engine::best()).unwrap();
    pipeline.set_program(1, Some(&Target::from(&all))).unwrap();
    let set =
        |program: &Program| devices.insert(&[0; 4], &paceline_testkit::redirects::value([1, program.id()]));
    let other = load("r0 = 2\nexit", XdpAttach::Interface);
    assert_eq!(set(&other), Err(Errno::EINVAL), "it is for interfaces");
    assert_eq!(set(&load("r0 = 2\nexit", XdpAttach::CpuMap)), Err(Errno::EINVAL));
    let mut worker = pipeline.worker(0);
    let (card, wire) = MemoryPort::link(10);
    worker.attach(1, 0, card);
    let mut send = || {
        assert!(wire.push(&[0; 20], FrameMeta::default()));
        worker.poll().unwrap();
        (wire.pop().is_some(), pipeline.counts().stopped)
    };
    let pass = load("r0 = 2\nexit", XdpAttach::DevMap).with_budget(100);
    set(&pass).unwrap();
    drop(pass);
    assert_eq!(send(), (true, 0), "nobody else has the program");
    set(&load("r0 = 1\nexit", XdpAttach::DevMap)).unwrap();
    assert_eq!(send(), (false, 1), "another is in its place");
}

/// Sends to interface 2 without a copy, or to all devices of the map, by the packet's first byte.
#[test]
fn frames_move_between_ports_of_a_pool() {
    const PACKETS: u8 = 40;
    let devices = text::map(&MapSpec::new("devices", MapKind::DevMap, 4, 4, 2), 1).unwrap();
    let source = "r6 = *(u32 *)(r1 + 0)\nr2 = *(u32 *)(r1 + 4)\nr3 = r6\nr3 += 14\nif r3 > r2 goto drop\n\
        r2 = 0\nr3 = 0\nr4 = *(u8 *)(r6 + 0)\nif r4 == 0 goto call\nr3 = 8\n\
        call:\nr1 = map[devices] ll\ncall bpf_redirect_map\nexit\ndrop:\nr0 = 1\nexit";
    let program = text::verified(source, XdpAttach::Interface, std::slice::from_ref(&devices)).unwrap();
    let program = Program::load(&program, vec![devices.clone()], Engine::best()).unwrap();
    (0..2_u32).for_each(|key| devices.insert(&key.to_ne_bytes(), &(key + 2).to_ne_bytes()).unwrap());
    let pipeline = Pipeline::new();
    pipeline.set_program(1, Some(&Target::from(&program))).unwrap();
    let pool = FramePool::on_heap(512);
    let links: Vec<_> = (0..3).map(|_| MemoryPort::link_in(&pool, 64)).collect();
    let mut worker = pipeline.worker(0);
    let ports: Vec<MemoryPort> = links.iter().map(|(port, _)| port.clone()).collect();
    (1..).zip(ports.iter().cloned()).for_each(|(ifindex, port)| worker.attach(ifindex, 0, port));
    for round in 0..100_u8 {
        for number in 0..PACKETS {
            let mut packet = [round ^ number; 60];
            packet[0] = u8::from(number % 4 == 3);
            assert!(links[0].1.push(&packet, FrameMeta::default()));
        }
        assert_eq!(worker.poll().unwrap(), usize::from(PACKETS));
        let numbers = |port: &MemoryPort| -> Vec<u8> {
            std::iter::from_fn(|| port.pop()).map(|(packet, _)| packet[59] ^ round).collect()
        };
        assert_eq!(numbers(&links[1].1), Vec::from_iter(0..PACKETS));
        assert_eq!(numbers(&links[2].1), Vec::from_iter((0..PACKETS).filter(|number| number % 4 == 3)));
    }
    let copied: Vec<u64> = ports.iter().map(Port::copied).collect();
    assert_eq!(copied, [0, 1000, 1000], "only packets that go to both are copied");
    drop((worker, ports, links));
    assert_eq!(pool.free(), 512, "no frame is lost");
}

#[test]
fn a_full_port_refuses_the_last() {
    let pipeline = Pipeline::new();
    let reflect = load("r0 = 3\nexit", XdpAttach::Interface);
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

/// Replaces programs of a running pipeline; each packet has the verdict of one of them, and none is lost.
#[test]
fn programs_are_replaced_under_traffic() {
    const PACKETS: u64 = 300_000;
    let pipeline = Pipeline::new();
    let programs =
        ["r0 = 1\nexit", "r0 = 2\nexit"].map(|text| Target::from(&load(text, XdpAttach::Interface)));
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
