//! Measured times are those that a caller of the library sees.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use paceline::measure::{Contender, Manner, Packet, Room, Runner, Summary, rounds};
use paceline::scenario::Origin;
use paceline::{Burst, FrameMeta, Host, LoadOptions, MAX_BURST, Object, Program};

/// TCP to port 22.
fn packet() -> Vec<u8> {
    let ethernet = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let ipv4 = [0x45, 0, 0, 72, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let tcp = [0x9c, 0x40, 0, 22, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0];
    [&ethernet[..], &ipv4, &tcp, &[0; 32]].concat()
}

/// Best time of many rounds of so many calls, in nanoseconds a call.
fn best(calls: u32, mut call: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    };
    (0..300).map(round).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds of a packet that is run again and again, less those of the loop.
fn by_hand(program: &Program, packet: &[u8], host: &mut Host, manner: Manner) -> f64 {
    let packets = if manner == Manner::Alone { 1 } else { MAX_BURST };
    let mut burst = Burst::new(packets);
    (0..packets).for_each(|_| burst.push(packet, FrameMeta::default()).unwrap());
    host.arrive(&burst);
    if manner == Manner::Bursts {
        return best(16, || drop(black_box(program.run_burst(&mut burst, host)))) / packets as f64;
    }
    let mut frame = burst.frame_mut(0);
    let run = best(1_000, || drop(black_box(program.run_raw(&mut frame, host))));
    run - best(1_000, || {
        black_box(&mut frame);
    })
}

/// The same as `paceline bench` has it.
fn measured(program: &Program, packet: &[u8], host: &mut Host, manner: Manner) -> f64 {
    let runner = Runner::Program(program);
    let mut contenders = [Contender { runner, host, origin: Origin::default(), maps: Vec::new() }];
    let packets = [Packet { bytes: packet, meta: FrameMeta::default() }];
    let how = (15, Duration::from_millis(2));
    let times = rounds(&mut contenders, &packets, manner, how, &mut Room::new(false)).unwrap();
    Summary::of(&times[0]).min
}

const WORKLOADS: &str = "crates/bench/workloads/workloads.o";

/// Programs that leave the packet as it is, so that it can be run again.
const PROGRAMS: [(&str, &str); 7] = [
    (WORKLOADS, "drop_program"),
    (WORKLOADS, "port22_program"),
    (WORKLOADS, "port22_payload_program"),
    (WORKLOADS, "count_program"),
    ("examples/firewall.o", "firewall"),
    ("examples/counter.o", "counter"),
    ("crates/cli/tests/fixtures/work.o", "steps_200"),
];

/// To a half and 2 ns, as other tests take the machine away; with `PACELINE_PAIRS=1`, on a quiet machine, to a tenth or what a clock can tell
/// of a packet, in one of a few attempts, and the times are printed.
#[test]
#[cfg_attr(debug_assertions, ignore = "the loop here is not optimized")]
fn what_is_measured_is_what_runs_take() {
    const ATTEMPTS: usize = 6;
    let is_quiet = std::env::var_os("PACELINE_PAIRS").is_some();
    let (share, more_ns) = if is_quiet { (0.1, 0.25) } else { (0.5, 2.0) };
    let packet = packet();
    for (object, name) in PROGRAMS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(object);
        let collection = Object::open(&path).unwrap().load(&LoadOptions::default()).unwrap();
        let (program, mut host) = (collection.program(Some(name)).unwrap(), Host::default());
        for manner in [Manner::Alone, Manner::Bursts] {
            let mut times = |_| {
                let ours = measured(program.program(), &packet, &mut host, manner);
                (ours, by_hand(program.program(), &packet, &mut host, manner))
            };
            let differs = |(ours, theirs): &(f64, f64)| (ours - theirs).abs() > share * theirs + more_ns;
            let found: Vec<_> = (0..ATTEMPTS).map(&mut times).take_while(differs).collect();
            if is_quiet {
                eprintln!(
                    "{name}, {manner:?}: {:.2?}; before {found:.2?}",
                    (0..3).map(times).collect::<Vec<_>>()
                );
            }
            assert!(found.len() < ATTEMPTS, "{name}, {manner:?}: measured, and by hand: {found:?}");
        }
    }
}
