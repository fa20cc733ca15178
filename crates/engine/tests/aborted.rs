//! A packet whose program fails, and those of the burst that are not run after it, are aborted: no verdict or redirect target of an earlier
//! program stays.

mod common;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use paceline_engine::{
    BurstFault, CallSite, Chain, ChainCounts, Engine, Fallback, Host, KeyedSite, LookAhead, Program, Steer,
    Target,
};
use paceline_frame::{Burst, FrameMeta, Redirect, RedirectTarget, Verdict};
use paceline_maps::{Limits, Map};
use paceline_spec::graph::Graph;
use paceline_spec::{MapKind, MapSpec};
use paceline_verifier::Verified;

use common::{spec, verified};

const PACKETS: usize = 4;
/// The packet that the program fails on.
const BAD: usize = 2;

/// Drops packets, after a look-up for a value of this CPU; of those that do not begin with 0 it writes a line first.
const TRACES: &str = "
    r6 = *(u32 *)(r1 + 0)
    r7 = *(u32 *)(r1 + 4)
    *(u32 *)(r10 - 4) = 0
    r1 = map[0] ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    r0 = 1
    r1 = r6
    r1 += 1
    if r1 > r7 goto out
    r1 = *(u8 *)(r6 + 0)
    if r1 == 0 goto out
    *(u64 *)(r10 - 16) = 0x0a
    r1 = r10
    r1 += -16
    r2 = 8
    call bpf_trace_printk
    r0 = 1
out:
    exit
";

/// Drops packets, and reads through null for those that do not begin with 0.
const READS_NULL: &str = "
    r6 = *(u32 *)(r1 + 0)
    r0 = *(u8 *)(r6 + 0)
    if r0 == 0 goto out
    r0 = *(u8 *)(r0 + 0)
out:
    r0 = 1
    exit
";

struct Panics;

impl io::Write for Panics {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        panic!("the receiver of traces")
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Packets that an earlier program redirected.
fn burst() -> Burst {
    let mut burst = Burst::default();
    for index in 0..PACKETS {
        let mut packet = [0; 60];
        packet[0] = u8::from(index == BAD);
        burst.push(&packet, FrameMeta::default()).expect("there is room");
    }
    for mut frame in burst.iter_mut() {
        frame.set_verdict(Verdict::Redirect);
        frame.set_redirect(Some(Redirect { target: RedirectTarget::Interface { ifindex: 7 }, flags: 0 }));
    }
    burst
}

fn assert_aborted_from(burst: &Burst, first: usize, way: &str) {
    for (index, frame) in burst.iter().enumerate() {
        let expected = if index < first { Verdict::Drop } else { Verdict::Aborted };
        assert_eq!(frame.verdict(), expected, "{way}, packet {index}");
        assert!(index < first || frame.redirect().is_none(), "{way}, packet {index}");
    }
}

type Way<'a> = (&'static str, Box<dyn Fn(&mut Burst, &mut Host) -> Result<(), BurstFault> + 'a>);

/// Runs packets one by one, as embedders do.
fn one_by_one(
    burst: &mut Burst,
    mut run: impl FnMut(&mut paceline_frame::FrameMut<'_>) -> Result<(), Box<paceline_engine::Fault>>,
) -> Result<(), BurstFault> {
    for index in 0..burst.len() {
        run(&mut burst.frame_mut(index)).map_err(|fault| BurstFault::at(burst, index, fault))?;
    }
    Ok(())
}

/// All ways to run a program.
fn ways_of_program(program: &Program) -> Vec<Way<'_>> {
    let (target, by_key, by_program) =
        (Target::from(program), KeyedSite::by_key(), CallSite::new(Fallback::Indirect));
    by_key.set(1, Some(&target)).expect("is set");
    by_key.set(2, Some(&target)).expect("is set");
    by_program.update(None, Some(&target)).expect("is set");
    let (alone, site, mixed) = (target.clone(), by_key.clone(), by_key);
    vec![
        ("burst", Box::new(|burst, host| program.run_burst(burst, host))),
        ("packets", Box::new(|burst, host| one_by_one(burst, |frame| program.run(frame, host).map(drop)))),
        (
            "steered",
            Box::new(|burst, host| {
                one_by_one(burst, |frame| program.run_steered(frame, host, |_| Steer::Follow).map(drop))
            }),
        ),
        ("target", Box::new(move |burst, host| alone.run_burst(burst, host))),
        ("site", Box::new(move |burst, host| site.caller().run_burst(1, burst, host))),
        (
            "mixed",
            Box::new(move |burst, host| {
                mixed.caller().enter(host).run_mixed(burst, |index| if index < 3 { 1 } else { 2 })
            }),
        ),
        ("by program", Box::new(move |burst, host| by_program.caller().run_burst(&target, burst, host))),
    ]
}

fn ways_of_chain(chain: &Chain) -> Vec<Way<'_>> {
    let target = Target::from(chain);
    vec![
        ("chain", Box::new(|burst, host| chain.run_burst(burst, host))),
        ("chain, packets", Box::new(|burst, host| one_by_one(burst, |f| chain.run(f, host).map(drop)))),
        (
            "chain, counted",
            Box::new(|burst, host| {
                let mut counts: ChainCounts = chain.counts().expect("counts");
                chain.run_burst_counted(burst, host, &mut counts)
            }),
        ),
        ("chain, target", Box::new(move |burst, host| target.run_burst(burst, host))),
    ]
}

fn per_cpu() -> [MapSpec; 1] {
    [MapSpec::new("values", MapKind::PerCpuArray, 4, 8, 1)]
}

fn made() -> Vec<Arc<Map>> {
    let limits = Limits { cpus: 1, memory: 1 << 20 };
    per_cpu().iter().map(|spec| Map::create(spec, &limits).expect("is made")).collect()
}

fn engines() -> impl Iterator<Item = Engine> {
    Engine::ALL.into_iter().filter(|engine| engine.is_available())
}

/// Calls `check` with each engine's program and chain.
fn each_engine(verified: &Verified, check: impl Fn(Engine, Vec<Way<'_>>)) {
    for engine in engines() {
        let program = Program::load(verified, made(), engine).expect("loads");
        check(engine, ways_of_program(&program));
        let maps = made();
        let parts = [(verified, maps.clone()), (verified, maps)];
        let graph = Graph::sequence(2).expect("a graph");
        check(engine, ways_of_chain(&Chain::load(&parts, graph.clone(), engine).expect("loads")));
        #[cfg(feature = "jit")]
        if engine == Engine::Jit {
            let staged = Chain::load_with_settings(&parts, graph, LookAhead::Always, |_| {}).expect("loads");
            check(engine, ways_of_chain(&staged));
        }
    }
}

#[test]
fn a_cpu_that_a_map_lacks_aborts_all_packets() {
    each_engine(&verified(TRACES, &per_cpu()), |engine, ways| {
        for (way, run) in ways {
            let (mut burst, mut host) = (burst(), Host::new(1));
            let fault = run(&mut burst, &mut host).expect_err("CPU 1 has no value");
            assert_eq!(fault.index, 0, "{way} on {engine}");
            assert_aborted_from(&burst, 0, &format!("{way} on {engine}"));
        }
    });
}

#[test]
fn a_panic_of_a_callback_aborts_the_packet_and_those_after_it() {
    each_engine(&verified(TRACES, &per_cpu()), |engine, ways| {
        for (way, run) in ways {
            let (mut burst, mut host) = (burst(), Host::new(0));
            host.set_trace(Panics);
            let result = catch_unwind(AssertUnwindSafe(|| run(&mut burst, &mut host)));
            assert!(result.is_err(), "{way} on {engine}");
            // Native code does not know the packet. Packets that run one by one are the caller's to abort.
            let first = if burst.frame(0).verdict() == Verdict::Aborted { 0 } else { BAD };
            let one_by_one = matches!(way, "packets" | "steered" | "chain, packets");
            if one_by_one {
                burst.truncate(BAD + 1);
            }
            assert!(first == BAD || engine == Engine::Jit && !one_by_one, "{way} on {engine}");
            assert_aborted_from(&burst, first, &format!("{way} on {engine}"));
        }
    });
}

#[test]
fn an_invalid_access_aborts_the_packet_and_those_after_it() {
    let program = Program::new(Arc::new(spec(READS_NULL)), Vec::new()).expect("well-formed");
    let chain = Chain::new(vec![program.clone()], Graph::one()).expect("a chain");
    for (way, run) in ways_of_program(&program).into_iter().chain(ways_of_chain(&chain)) {
        let (mut burst, mut host) = (burst(), Host::new(0));
        let fault = run(&mut burst, &mut host).expect_err("it reads through null");
        assert_eq!(fault.index, BAD, "{way}");
        assert_aborted_from(&burst, BAD, way);
    }
}
