//! Timers that a pipeline's worker fires, and what becomes of them with their programs. How helpers, verifier and engines have
//! them the text cases say.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use paceline::port::MemoryPort;
use paceline::{
    Burst, Collection, Engine, FrameMeta, Host, LoadOptions, Map, Object, Pipeline, Target, TimeSource,
};
use paceline_epoch::Domain;

/// Flows that end half a second after their last packet, with the object's maps.
fn load(engine: Engine) -> Collection {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/fixtures/expire.o");
    Object::open(path).unwrap().load(&LoadOptions::default().engine(engine)).unwrap()
}

fn map(collection: &Collection, name: &str) -> Arc<Map> {
    collection.maps().iter().find(|map| map.spec().name == name).unwrap().clone()
}

/// IPv4 from an address.
fn packet(from: u8) -> Vec<u8> {
    let mut packet = vec![0; 34];
    packet[12..15].copy_from_slice(&[8, 0, 0x45]);
    packet[29] = from;
    packet
}

fn flows(map: &Map) -> usize {
    map.keys().unwrap().count()
}

/// Runs packets, each of another address, at a time.
fn run(program: &paceline::Program, host: &mut Host, from: std::ops::Range<u8>, milliseconds: u64) {
    let mut burst = Burst::default();
    for address in from {
        let meta = FrameMeta { timestamp_ns: milliseconds * 1_000_000, ..FrameMeta::default() };
        burst.push(&packet(address), meta).unwrap();
    }
    host.arrive(&burst);
    host.fire_timers().unwrap();
    program.run_burst(&mut burst, host).unwrap();
}

#[test]
fn a_worker_fires_them_between_bursts() {
    for engine in [Engine::Plain, Engine::Threaded, Engine::best()] {
        let collection = load(engine);
        let program = collection.program(None).unwrap().into_program();
        let pipeline = Pipeline::new();
        let mut worker = pipeline.worker(0);
        let (card, wire) = MemoryPort::link(100);
        worker.attach(1, 0, card);
        pipeline.set_program(1, Some(&Target::from(&program))).unwrap();
        for from in 0..10 {
            assert!(wire.push(&packet(from), FrameMeta::default()));
        }
        let flows_of = map(&collection, "flows");
        assert_eq!((worker.poll().unwrap(), flows(&flows_of)), (10, 10), "{engine}");
        // No packet comes, and they end all the same; how late is up to the machine.
        let start = Instant::now();
        while flows(&flows_of) > 0 && start.elapsed() < Duration::from_secs(60) {
            assert_eq!(worker.poll().unwrap(), 0);
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!((flows(&flows_of), worker.host_mut().running_timers()), (0, 0), "{engine}");
    }
}

#[test]
fn they_fire_in_order_at_the_time_of_packets() {
    for engine in Engine::ALL.into_iter().filter(|engine| engine.is_available()) {
        let collection = load(engine);
        let program = collection.program(None).unwrap().into_program();
        let mut host = Host::new(0);
        host.set_time(TimeSource::Packets);
        let flows_of = map(&collection, "flows");
        run(&program, &mut host, 0..3, 0);
        run(&program, &mut host, 2..5, 400);
        assert_eq!((flows(&flows_of), host.running_timers()), (5, 5), "{engine}");
        run(&program, &mut host, 9..10, 500);
        assert_eq!((flows(&flows_of), host.running_timers()), (4, 4), "{engine}: two have ended");
        run(&program, &mut host, 9..10, 900);
        assert_eq!((flows(&flows_of), host.running_timers()), (1, 1), "{engine}: so have three more");
        // Gone with its element.
        flows_of.delete(&[0, 0, 0, 9]).unwrap();
        assert_eq!(host.running_timers(), 0, "{engine}");
    }
}

#[test]
fn programs_stay_as_long_as_their_timers_and_no_longer() {
    for engine in Engine::ALL.into_iter().filter(|engine| engine.is_available()) {
        let mut host = Host::new(0);
        host.set_time(TimeSource::Packets);
        let collection = load(engine);
        let weak: Vec<Weak<Map>> = collection.maps().iter().map(Arc::downgrade).collect();
        let flows_of = map(&collection, "flows");
        let program = collection.program(None).unwrap().into_program();
        let other = collection.program(None).unwrap().into_program();
        run(&program, &mut host, 0..3, 0);
        // Another program uses the maps: the timers go on, and their function with them.
        drop(program);
        Domain::global().collect();
        run(&other, &mut host, 9..10, 600);
        assert_eq!((flows(&flows_of), host.running_timers()), (1, 1), "{engine}");
        // Nobody does: they go, although the maps hold their program, and that the maps.
        drop((other, collection, flows_of));
        assert_eq!(host.running_timers(), 0, "{engine}");
        let are_gone = || weak.iter().all(|map| map.strong_count() == 0);
        // Other tests' workers may be in a burst, and their threads may wait for a processor that others use.
        let deadline = Instant::now() + Duration::from_secs(20);
        while !are_gone() {
            assert!(Instant::now() < deadline, "{engine}");
            thread::sleep(Duration::from_millis(1));
            Domain::global().collect();
        }
    }
}

/// Workers that start each other's timers anew, and whose timers delete what others have just found: in the end no flow is left, and
/// no timer.
#[test]
fn two_workers_share_timers() {
    const BURSTS: u64 = 3000;
    for engine in [Engine::Plain, Engine::Threaded, Engine::best()] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/fixtures/expire.o");
        let mut options = LoadOptions::default().engine(engine);
        options.limits.cpus = 2;
        let collection = Object::open(path).unwrap().load(&options).unwrap();
        let program = collection.program(None).unwrap().into_program();
        let flows_of = map(&collection, "flows");
        let work = |cpu: usize| {
            let (mut host, mut rng) = (Host::new(cpu), fastrand::Rng::with_seed(cpu as u64));
            host.set_time(TimeSource::Packets);
            for burst in 0..BURSTS {
                let from = rng.u8(..60);
                run(&program, &mut host, from..from + 4, burst * 20);
            }
            host
        };
        let mut hosts = thread::scope(|scope| {
            let workers = [0, 1].map(|cpu| scope.spawn(move || work(cpu)));
            workers.map(|worker| worker.join().unwrap())
        });
        // A packet that makes no flow, when all have ended.
        let mut end = Burst::default();
        let timestamp_ns = (BURSTS * 20 + 1000) * 1_000_000;
        end.push(&[0; 60], FrameMeta { timestamp_ns, ..FrameMeta::default() }).unwrap();
        let mut fired = 0;
        for host in &mut hosts {
            host.arrive(&end);
            fired += host.fire_timers().unwrap();
        }
        assert_eq!((flows(&flows_of), hosts.map(|host| host.running_timers())), (0, [0, 0]), "{engine}");
        assert!(fired > 0, "{engine}");
    }
}
