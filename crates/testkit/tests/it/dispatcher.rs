//! Chains by libxdp's rules, and libxdp's own dispatcher with the same programs in its slots: verdicts and packets must be
//! equal, on all engines and in the kernel.

use std::path::Path;

use fastrand::Rng;
use paceline::chain::{Actions, MAX_RUNS, RunConfig};
use paceline::{Burst, Engine, FrameMeta, Host, LiveChain, LoadOptions, Object, Order, ProgramSpec, Verdict};
use paceline_isa::assemble;
use paceline_testkit::dispatcher::{Component, EMPTY, OBJECT, PROGRAM, SLOTS, fill_slots};
use paceline_testkit::whole::{Captured, Workload, compare};
use paceline_testkit::{kernel, skip};

/// Layout of the packet: number of programs that ran, their marks, and the verdict of each.
const RAN: usize = 1;
const RETURNS: usize = 32;
const PACKET: usize = 64;

/// A program of a chain.
struct Entrant {
    spec: ProgramSpec,
    config: RunConfig,
}

/// A program that appends its mark to those of earlier programs, and returns the verdict in the packet. The mark identifies
/// it; `padding` makes it longer.
fn program(name: &str, mark: usize, padding: usize) -> ProgramSpec {
    let text = format!(
        "{}r6 = *(u32 *)(r1 + 0)\nr7 = *(u32 *)(r1 + 4)\nr0 = 0\nr2 = r6\nr2 += {PACKET}\nif r2 > r7 goto out\n\
         r3 = *(u8 *)(r6 + 0)\nr3 &= 15\nr4 = r6\nr4 += r3\nr2 = r4\nr2 += 2\n\
         if r2 > r7 goto out\nr5 = {mark}\n*(u8 *)(r4 + {RAN}) = r5\nr3 += 1\n\
         *(u8 *)(r6 + 0) = r3\nr0 = *(u8 *)(r6 + {})\nout:\nexit\n",
        "r8 = 0\n".repeat(padding),
        RETURNS + mark
    );
    let kind = paceline::ProgramKind::Xdp { attach: paceline::XdpAttach::Interface, frags: false };
    let mut spec = ProgramSpec::new(name, kind, assemble(&text, &()).unwrap().encode().unwrap());
    spec.license = "GPL".to_owned();
    spec
}

fn random_entrants(rng: &mut Rng, most: usize) -> Vec<Entrant> {
    let entrant = |mark: usize, rng: &mut Rng| {
        let name = ["abc", "abd", "b", "Z"][rng.usize(..4)];
        let actions: Actions = Verdict::ALL.into_iter().filter(|_| rng.u8(..3) > 0).collect();
        // Programs of equal names have different lengths, so that the order is defined.
        Entrant { spec: program(name, mark, mark), config: RunConfig { priority: rng.u32(49..52), actions } }
    };
    let mut entrants: Vec<_> = (0..rng.usize(1..=most)).map(|mark| entrant(mark, rng)).collect();
    rng.shuffle(&mut entrants);
    entrants
}

/// A packet with mostly verdicts after which the chain continues; `most` is the maximum verdict.
fn random_packet(rng: &mut Rng, most: u8) -> Vec<u8> {
    let mut packet = vec![0; PACKET];
    packet[RETURNS..].fill_with(|| if rng.u8(..8) == 0 { rng.u8(0..=most) } else { rng.u8(0..5) });
    packet
}

fn dispatcher() -> Option<Object> {
    if !Path::new(OBJECT).exists() {
        skip("libxdp's dispatcher", &"libxdp1 is not installed");
        return None;
    }
    Some(Object::open(OBJECT).unwrap())
}

/// The dispatcher with programs in its slots, in the order of the protocol.
fn linked(dispatcher: &Object, entrants: &[Entrant]) -> Object {
    let mut sorted: Vec<_> = entrants.iter().collect();
    sorted.sort_by_key(|entrant| {
        (entrant.config.priority, entrant.spec.name.as_bytes(), entrant.spec.insns.len())
    });
    let components = sorted.iter().map(|entrant| {
        let RunConfig { actions, priority } = entrant.config;
        Component { program: &entrant.spec, maps: &[], actions, priority }
    });
    fill_slots(dispatcher, &components.collect::<Vec<_>>()).unwrap()
}

fn chain(entrants: &[Entrant], engine: Engine) -> LiveChain {
    let options = LoadOptions::default().engine(engine);
    let member = |(index, entrant): (usize, &Entrant)| {
        let collection = Object::of_program(entrant.spec.clone()).load(&options).unwrap();
        collection.member(index.to_string(), None).unwrap().with_config(entrant.config)
    };
    LiveChain::new(entrants.iter().enumerate().map(member).collect(), Order::Priority).unwrap()
}

fn burst(packets: &[Vec<u8>]) -> Burst {
    let mut burst = Burst::default();
    packets.iter().for_each(|packet| burst.push(packet, FrameMeta::default()).unwrap());
    burst
}

fn results(burst: &Burst) -> Vec<(Verdict, Vec<u8>)> {
    burst.iter().map(|frame| (frame.verdict(), frame.packet().to_vec())).collect()
}

fn by_chain(entrants: &[Entrant], engine: Engine, packets: &[Vec<u8>]) -> Vec<(Verdict, Vec<u8>)> {
    let mut burst = burst(packets);
    chain(entrants, engine).worker().run_burst(&mut burst, &mut Host::default()).unwrap();
    results(&burst)
}

fn by_dispatcher(object: &Object, engine: Engine, packets: &[Vec<u8>]) -> Vec<(Verdict, Vec<u8>)> {
    let mut burst = burst(packets);
    let collection = object.load(&LoadOptions::default().engine(engine)).unwrap();
    let program = collection.program(Some(PROGRAM)).unwrap_or_else(|error| panic!("{error}"));
    program.run_burst(&mut burst, &mut Host::default()).unwrap();
    results(&burst)
}

fn rounds(name: &str, otherwise: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("PACELINE_SEED").unwrap_or(0);
    seed..seed + number(name).unwrap_or(otherwise)
}

#[test]
fn libxdps_dispatcher_comes_to_the_same_verdicts_and_packets() {
    let Some(dispatcher) = dispatcher() else { return };
    for seed in rounds("PACELINE_CHAINS", 60) {
        let mut rng = Rng::with_seed(seed);
        let entrants = random_entrants(&mut rng, SLOTS);
        // Up to 30: 31 is the return value of an empty slot.
        let packets: Vec<_> = (0..64).map(|_| random_packet(&mut rng, EMPTY as u8 - 1)).collect();
        let object = linked(&dispatcher, &entrants);
        for engine in [Engine::Plain, Engine::Threaded, Engine::best()] {
            let (ours, theirs) =
                (by_chain(&entrants, engine, &packets), by_dispatcher(&object, engine, &packets));
            assert_eq!(ours, theirs, "seed {seed}, engine {engine}");
        }
    }
}

#[test]
fn the_kernel_runs_the_dispatcher_as_we_do() {
    let Some(dispatcher) = dispatcher() else { return };
    if !kernel::available_for("libxdp's dispatcher in the kernel") {
        return;
    }
    for seed in rounds("PACELINE_CHAINS", 10) {
        let mut rng = Rng::with_seed(seed);
        let entrants = random_entrants(&mut rng, SLOTS);
        let packets: Vec<_> = (0..64).map(|_| random_packet(&mut rng, EMPTY as u8 - 1)).collect();
        let captured = |(number, data): (u64, &Vec<u8>)| Captured { capture: 0, number, data: data.clone() };
        let packets = (1..).zip(&packets).map(captured).collect();
        let workload = Workload { packets, ..Workload::default() };
        let comparison = compare(&linked(&dispatcher, &entrants), PROGRAM, &[], &workload);
        let comparison = comparison.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(comparison.differences.is_empty(), "seed {seed}: {:#?}", comparison.differences);
    }
}

#[test]
fn without_a_limit_of_ten_the_rules_stay_the_same() {
    let Some(dispatcher) = dispatcher() else { return };
    let mut rng = Rng::with_seed(1);
    // Eleven programs: the first ten pass the packet on, and the eleventh, for which libxdp's dispatcher has no slot,
    // returns tx.
    let mut entrants: Vec<_> = (0..=SLOTS)
        .map(|mark| Entrant { spec: program(&format!("p{mark:02}"), mark, 0), config: RunConfig::default() })
        .collect();
    let mut packet = random_packet(&mut rng, 4);
    packet[RETURNS..].fill(Verdict::Pass as u8);
    packet[RETURNS + SLOTS] = Verdict::Tx as u8;
    let packets = [packet];
    assert_eq!(by_chain(&entrants, Engine::best(), &packets)[0].0, Verdict::Tx);
    entrants.truncate(SLOTS);
    let object = linked(&dispatcher, &entrants);
    let ours = by_chain(&entrants, Engine::best(), &packets);
    assert_eq!(ours, by_dispatcher(&object, Engine::best(), &packets));
    assert_eq!(ours[0].0, Verdict::Pass);
    assert!(SLOTS < MAX_RUNS as usize);
}

#[test]
fn values_that_are_no_verdict_are_where_the_rules_differ() {
    let Some(dispatcher) = dispatcher() else { return };
    let entrants = [0, 1]
        .map(|mark| Entrant { spec: program(&format!("p{mark}"), mark, 0), config: RunConfig::default() });
    let object = linked(&dispatcher, &entrants);
    // The return value of an empty slot, and one whose low six bits are those of pass.
    for code in [EMPTY as u8, 64 + Verdict::Pass as u8] {
        let mut packet = vec![0; PACKET];
        packet[RETURNS..].fill(Verdict::Tx as u8);
        packet[RETURNS] = code;
        let packets = [packet];
        assert_eq!(
            by_dispatcher(&object, Engine::best(), &packets)[0].0,
            Verdict::Tx,
            "goes on after {code}"
        );
        assert_eq!(
            by_chain(&entrants, Engine::best(), &packets)[0].0,
            Verdict::Aborted,
            "aborts after {code}"
        );
    }
}
