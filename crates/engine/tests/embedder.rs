//! Operations of safe Rust on programs and maps: none of them is undefined, keeps memory for ever, or leaves a host or a map
//! unusable.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use paceline_btf::{SpecialField, SpecialKind};
use paceline_engine::exec::Domain;
use paceline_engine::{Chain, Engine, FaultKind, Host, KeyedSite, Program, Target};
use paceline_frame::{Burst, FrameMeta};
use paceline_maps::{Limits, Map};
use paceline_spec::graph::Graph;
use paceline_spec::{MapKind, MapSpec};
use paceline_verifier::Verified;

use common::{spec, verified};

fn engines() -> impl Iterator<Item = Engine> {
    Engine::ALL.into_iter().filter(|engine| engine.is_available())
}

fn made(specs: &[MapSpec]) -> Vec<Arc<Map>> {
    let limits = Limits { cpus: 2, memory: 1 << 20 };
    specs.iter().map(|spec| Map::create(spec, &limits).expect("is made")).collect()
}

fn burst(packets: usize) -> Burst {
    let mut burst = Burst::default();
    (0..packets).for_each(|_| burst.push(&[0; 60], FrameMeta::default()).expect("there is room"));
    burst
}

/// A value with a timer.
fn with_timer(name: &str) -> MapSpec {
    let timer = SpecialField { kind: SpecialKind::Timer, offset: 0, size: 16 };
    MapSpec { special: [timer].into(), ..MapSpec::new(name, MapKind::Array, 4, 24, 1) }
}

/// Starts a timer whose function counts in a per-CPU array.
const STARTS: &str = "
    *(u32 *)(r10 - 4) = 0
    r1 = map[0] ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r6 = r0
    r1 = r6
    r2 = map[0] ll
    r3 = 1
    call bpf_timer_init
    r1 = r6
    r2 = subprog[count] ll
    call bpf_timer_set_callback
    r1 = r6
    r2 = 0
    r3 = 0
    call bpf_timer_start
out:
    r0 = 2
    exit
count:
    *(u32 *)(r10 - 4) = 0
    r1 = map[1] ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto end
    r1 = *(u64 *)(r0 + 0)
    r1 += 1
    *(u64 *)(r0 + 0) = r1
end:
    r0 = 0
    exit
";

/// Starts the timer that there is.
const STARTS_AGAIN: &str = "
    *(u32 *)(r10 - 4) = 0
    r1 = map[0] ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = r0
    r2 = 0
    r3 = 0
    call bpf_timer_start
out:
    r0 = 2
    exit
";

#[test]
fn no_timer_fires_for_a_cpu_that_its_functions_arrays_lack() {
    let specs = [with_timer("timers"), MapSpec::new("counts", MapKind::PerCpuArray, 4, 8, 1)];
    let (starts, again) = (verified(STARTS, &specs), verified(STARTS_AGAIN, &specs));
    for engine in engines() {
        let load = |verified: &Verified, maps: &[Arc<Map>]| {
            let alone = Program::load(verified, maps.to_vec(), engine).expect("loads");
            let part = [(verified, maps.to_vec())];
            let chain = Chain::load(&part, Graph::one(), engine).expect("loads");
            [Target::from(&alone), Target::from(&chain)]
        };
        for kind in 0..2 {
            let maps = made(&specs);
            let (starts, again) = (load(&starts, &maps), load(&again, &maps));
            // The program that made the timer is told, the one that starts it uses no array of a value for each CPU.
            let (mut first, mut other) = (Host::new(1), Host::new(40));
            starts[kind].run_burst(&mut burst(1), &mut first).expect("runs");
            again[kind].run_burst(&mut burst(1), &mut other).expect("runs");
            let fired = other.fire_timers();
            assert_eq!(fired.map_err(|fault| fault.kind), Err(FaultKind::NoCpu(40)), "{engine}");
            let counts = maps[1].lookup(&[0; 4]).expect("is there");
            assert_eq!(counts, [0; 16], "{engine}");
            again[kind].run_burst(&mut burst(1), &mut first).expect("runs");
            assert_eq!(first.fire_timers(), Ok(1), "{engine}");
            assert_eq!(maps[1].lookup(&[0; 4]).expect("is there")[8], 1, "{engine}");
        }
    }
}

fn map_of_maps() -> MapSpec {
    MapSpec {
        inner: Some(Box::new(with_timer("inner"))),
        ..MapSpec::new("outer", MapKind::ArrayOfMaps, 4, 4, 2)
    }
}

/// Starts a timer in the inner map's value, whose function counts in that value.
fn starts_inside(delay: &str) -> String {
    let text = "
        *(u32 *)(r10 - 4) = 0
        r1 = map[0] ll
        r2 = r10
        r2 += -4
        call bpf_map_lookup_elem
        if r0 == 0 goto out
        r7 = r0
        r1 = r7
        r2 = r10
        r2 += -4
        call bpf_map_lookup_elem
        if r0 == 0 goto out
        r6 = r0
        r1 = r6
        r2 = r7
        r3 = 1
        call bpf_timer_init
        r1 = r6
        r2 = subprog[count] ll
        call bpf_timer_set_callback
        r1 = r6
        r2 = DELAY ll
        r3 = 0
        call bpf_timer_start
    out:
        r0 = 2
        exit
    count:
        r1 = *(u64 *)(r3 + 16)
        r1 += 1
        *(u64 *)(r3 + 16) = r1
        r0 = 0
        exit
    ";
    text.replace("DELAY", delay)
}

/// The map need not be in the map of maps any more.
#[test]
fn a_timer_of_a_map_in_maps_changes_its_value() {
    let outer = map_of_maps();
    let verified = verified(&starts_inside("0"), std::slice::from_ref(&outer));
    for (engine, stays) in engines().flat_map(|engine| [(engine, true), (engine, false)]) {
        let mut host = Host::new(0);
        let maps = made(std::slice::from_ref(&outer));
        let inner = made(&[with_timer("inner")]).remove(0);
        maps[0].insert(&[0; 4], &inner.id().to_ne_bytes()).expect("fits");
        let program = Program::load(&verified, maps.clone(), engine).expect("loads");
        program.run_burst(&mut burst(1), &mut host).expect("runs");
        if !stays {
            maps[0].delete(&[0; 4]).expect("is there");
        }
        assert_eq!(host.fire_timers(), Ok(1), "{engine}");
        assert_eq!(inner.lookup(&[0; 4]).expect("is there")[16], 1, "{engine}");
    }
}

#[test]
fn timers_of_maps_in_maps_go_with_the_programs() {
    let outer = map_of_maps();
    let verified = verified(&starts_inside("1000000000"), std::slice::from_ref(&outer));
    for engine in engines() {
        let mut host = Host::new(0);
        let maps = made(std::slice::from_ref(&outer));
        let inner = made(&[with_timer("inner")]).remove(0);
        let weak: Vec<Weak<Map>> = maps.iter().chain([&inner]).map(Arc::downgrade).collect();
        maps[0].insert(&[0; 4], &inner.id().to_ne_bytes()).expect("fits");
        let program = Program::load(&verified, maps.clone(), engine).expect("loads");
        // Also what comes when there are users, and what is taken out, which goes on.
        let taken_out = made(&[with_timer("inner")]).remove(0);
        for (map, running) in [(&inner, 1), (&taken_out, 2)] {
            maps[0].insert(&[0; 4], &map.id().to_ne_bytes()).expect("fits");
            program.run_burst(&mut burst(1), &mut host).expect("runs");
            assert_eq!(host.running_timers(), running, "{engine}");
        }
        maps[0].insert(&[0; 4], &inner.id().to_ne_bytes()).expect("fits");
        assert_eq!(host.running_timers(), 2, "{engine}");
        let other = program.clone();
        drop((program, inner));
        assert_eq!(host.running_timers(), 2, "{engine}");
        drop(other);
        assert_eq!(host.running_timers(), 1, "{engine}: that of the map that is elsewhere");
        // That timer's function keeps the program, and that its maps.
        drop((maps, taken_out));
        // Threads of other tests that are in a burst may wait for a processor.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while weak.iter().any(|map| map.strong_count() > 0) {
            assert!(std::time::Instant::now() < deadline, "{engine}");
            std::thread::sleep(std::time::Duration::from_millis(1));
            Domain::global().collect();
        }
        assert_eq!(host.running_timers(), 0, "{engine}");
    }
}

const SENDS: &str = "
    *(u64 *)(r10 - 8) = 1
    r2 = map[0] ll
    r3 = 0
    r4 = r10
    r4 += -8
    r5 = 8
    call bpf_perf_event_output
    r0 = 2
    exit
";

#[test]
fn a_panic_in_an_event_sink_comes_out_where_the_program_was_run() {
    let specs = [MapSpec::new("events", MapKind::PerfEventArray, 4, 4, 2)];
    let sends = verified(SENDS, &specs);
    for engine in engines() {
        let maps = made(&specs);
        let program = Program::load(&sends, maps.clone(), engine).expect("loads");
        let part = [(&sends, maps)];
        let fused = Chain::load(&part, Graph::one(), engine).expect("loads");
        let called = Chain::new(vec![program.clone()], Graph::one()).expect("loads");
        let site = KeyedSite::by_key();
        site.set(1, Some(&Target::from(&program))).expect("there is memory");
        let mut counts = called.counts().expect("they are interpreted");
        type Run<'a> = &'a mut dyn FnMut(&mut Burst, &mut Host) -> bool;
        let runs: [Run<'_>; 6] = [
            &mut |burst, host| program.run_burst(burst, host).is_ok(),
            &mut |burst, host| program.run_observed(&mut burst.frame_mut(0), host, |_| {}).is_ok(),
            &mut |burst, host| {
                program.run_counted(&mut burst.frame_mut(0), host).is_none_or(|run| run.is_ok())
            },
            &mut |burst, host| fused.run_burst(burst, host).is_ok(),
            &mut |burst, host| called.run_burst_counted(burst, host, &mut counts).is_ok(),
            &mut |burst, host| site.caller().run_burst(1, burst, host).is_ok(),
        ];
        for run in runs {
            for packets in [1, 8] {
                let mut host = Host::new(0);
                let calls = Arc::new(AtomicUsize::new(0));
                let counted = calls.clone();
                host.set_events(Box::new(move |_| {
                    counted.fetch_add(1, Ordering::Relaxed);
                    panic!("in the sink");
                }));
                let panic = catch_unwind(AssertUnwindSafe(|| run(&mut burst(packets), &mut host)));
                let counts = engine == Engine::Plain;
                if !counts && calls.load(Ordering::Relaxed) == 0 {
                    // It was to be counted.
                    continue;
                }
                let panic = panic.expect_err("it panicked");
                assert_eq!(panic.downcast_ref(), Some(&"in the sink"), "{engine}");
                assert_eq!(calls.load(Ordering::Relaxed), 1, "{engine}: once in a burst");
                // Nothing is left of it.
                host.set_events(Box::new(|_| ()));
                let mut packets = burst(packets);
                assert!(run(&mut packets, &mut host), "{engine}");
                assert!(program.run_burst(&mut packets, &mut host).is_ok(), "{engine}");
            }
        }
        // The counts that the panicked run was given are not written any more.
        drop(counts);
        assert!(called.run_burst(&mut burst(2), &mut Host::new(0)).is_ok());
    }
}

#[test]
fn a_panic_of_a_trace_comes_out_too() {
    struct Panics;
    impl std::io::Write for Panics {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            panic!("in the trace")
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let text = "
        r1 = 10
        *(u64 *)(r10 - 8) = r1
        r1 = r10
        r1 += -8
        r2 = 2
        call bpf_trace_printk
        r0 = 2
        exit
    ";
    let verified = verified(text, &[]);
    for engine in engines() {
        let program = Program::load(&verified, Vec::new(), engine).expect("loads");
        let mut host = Host::new(0);
        host.set_trace(Panics);
        let panic = catch_unwind(AssertUnwindSafe(|| program.run_burst(&mut burst(1), &mut host)));
        assert_eq!(panic.expect_err("it panicked").downcast_ref(), Some(&"in the trace"), "{engine}");
        host.set_trace(std::io::sink());
        assert_eq!(program.run_burst(&mut burst(1), &mut host), Ok(()), "{engine}");
    }
}

#[test]
fn records_of_a_program_that_fails_block_no_ring() {
    let ring = MapSpec::new("ring", MapKind::RingBuf, 0, 0, 4096);
    let reserve = "
        r1 = map[0] ll
        r2 = 8
        r3 = 0
        call bpf_ringbuf_reserve
    ";
    let faults = format!("{reserve}\nr0 = *(u64 *)(r0 + 4096)\nr0 = 2\nexit");
    let forgets = format!("{reserve}\nr0 = 2\nexit");
    let submits = format!("{reserve}\nr1 = r0\nr2 = 0\ncall bpf_ringbuf_submit\nr0 = 2\nexit");
    let maps = made(std::slice::from_ref(&ring));
    let load = |text: &str| Program::new(Arc::new(spec(text)), maps.clone()).expect("loads");
    let mut host = Host::new(0);
    assert!(load(&faults).run_burst(&mut burst(1), &mut host).is_err());
    assert!(load(&forgets).run_burst(&mut burst(1), &mut host).is_ok());
    assert!(load(&submits).run_burst(&mut burst(1), &mut host).is_ok());
    let ring = maps[0].ring_buffer().expect("is one");
    assert_eq!((ring.consume(|_| {}), ring.available()), (1, 0), "the one that was submitted");
}

#[test]
fn a_program_gives_back_no_record_of_another() {
    let specs = [MapSpec::new("ring", MapKind::RingBuf, 0, 0, 4096)];
    let maps = made(&specs);
    let record = maps[0].for_programs().ring_buffer().expect("is one").reserve(8, 0).expect("there is room");
    let text = format!("r1 = {} ll\nr2 = 0\ncall bpf_ringbuf_submit\nr0 = 2\nexit", record.addr());
    let program = Program::new(Arc::new(spec(&text)), maps.clone()).expect("loads");
    let fault = program.run_burst(&mut burst(1), &mut Host::new(0)).expect_err("it has none");
    assert!(matches!(fault.fault.kind, FaultKind::Argument { expected: "record of a ring buffer", .. }));
}

#[test]
fn what_belongs_to_a_target_may_use_the_site_when_it_goes() {
    struct Asks(KeyedSite, Arc<AtomicUsize>);
    impl Drop for Asks {
        fn drop(&mut self) {
            assert!(self.0.users().len() < 2);
            assert!(self.0.set(self.0.slots() as u64 + 7, None).is_ok());
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let program = Program::load(&verified("r0 = 2\nexit", &[]), Vec::new(), Engine::Threaded).expect("loads");
    let (site, gone) = (KeyedSite::by_key(), Arc::new(AtomicUsize::new(0)));
    let (send, done) = std::sync::mpsc::channel();
    let count = gone.clone();
    // On a thread of its own: it would wait for ever.
    std::thread::spawn(move || {
        for _ in 0..100 {
            let target = Target::from(&program).with_data(Asks(site.clone(), count.clone()));
            site.set(1, Some(&target)).expect("there is memory");
        }
        site.set(1, None).expect("there is memory");
        let _ = send.send(());
    });
    done.recv_timeout(std::time::Duration::from_secs(60)).expect("the site waits for itself");
    Domain::global().collect();
    assert!(gone.load(Ordering::Relaxed) > 0);
}

/// A run that is given up in the midst would leave the lock that the program has.
#[test]
fn a_panic_of_an_observer_comes_out_when_the_run_is_over() {
    let program = Program::new(Arc::new(spec("r0 = 2\nr0 = 1\nr0 = 2\nexit\n")), Vec::new()).unwrap();
    let (mut burst, mut host, mut seen) = (burst(1), Host::default(), 0);
    let observe = |_: &paceline_engine::Observed<'_>| {
        seen += 1;
        assert!(seen < 2, "in the observer");
    };
    let run = AssertUnwindSafe(|| program.run_observed(&mut burst.frame_mut(0), &mut host, observe));
    assert!(catch_unwind(run).is_err());
    assert_eq!((seen, burst.frame(0).code()), (2, 2), "it ran to its end, and was not observed any more");
    assert!(program.run(&mut burst.frame_mut(0), &mut host).is_ok());
}
