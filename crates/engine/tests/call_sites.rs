//! Call sites against a linear search: whatever was added and removed before, every call comes to its program. And while
//! they are updated under traffic.
//! `PACELINE_HAMMER=60 cargo test --release -p paceline-engine --test call_sites updates -- --nocapture` does that for a minute and
//! says how many updates there were.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paceline_engine::exec::Domain;
use paceline_engine::{
    CallSite, Chain, Engine, Fallback, Host, KeyedSite, Program, SiteStatistics, Target, UpdateError,
};
use paceline_frame::{Burst, FrameMeta, Verdict};
use paceline_isa::assemble;
use paceline_spec::graph::{Edges, Graph, Next, Node};
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, verify};
use proptest::prelude::*;

const KIND: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };

/// A program that returns a number.
fn program(number: usize, engine: Engine) -> Program {
    let text = format!("r0 = {number}\nexit");
    let insns = assemble(&text, &()).expect("assembles").encode().expect("encodes");
    let spec = ProgramSpec::new(&format!("returns_{number}"), KIND, insns);
    let verified = verify(&spec, &[], None, &Options::default()).expect("is accepted");
    Program::load(&verified, Vec::new(), engine).expect("loads")
}

fn engine(number: usize) -> Engine {
    // Mostly native code; engines that share their entries among programs in between.
    let engines =
        [Engine::best(), Engine::best(), Engine::best(), Engine::Threaded, Engine::best(), Engine::Plain];
    engines[number % engines.len()]
}

/// 1,024 programs; number n returns n.
fn targets() -> &'static [Target] {
    static TARGETS: OnceLock<Vec<Target>> = OnceLock::new();
    TARGETS.get_or_init(|| (0..1024).map(|number| Target::from(&program(number, engine(number)))).collect())
}

fn burst(len: usize) -> Burst {
    let mut burst = Burst::default();
    (0..len).for_each(|_| burst.push(&[0; 64], FrameMeta::default()).expect("fits"));
    burst
}

fn codes(burst: &Burst) -> Vec<u32> {
    burst.iter().map(|frame| frame.code()).collect()
}

fn sites(fallback: Fallback) -> [CallSite; 2] {
    [CallSite::new(fallback), CallSite::new(fallback).without_code()]
}

/// Calls programs of a site one by one and in bursts; gives how many calls those are.
fn call(site: &CallSite, numbers: &[usize], host: &mut Host) -> u64 {
    let mut caller = site.caller();
    let mut calls = caller.enter(host);
    let mut burst = burst(3);
    for &number in numbers {
        let target = &targets()[number];
        assert_eq!(calls.run_raw(target, &mut burst.frame_mut(0)).unwrap(), number as u64);
        calls.run_burst(target, &mut burst).unwrap();
        assert_eq!(codes(&burst), [number as u32; 3]);
    }
    2 * numbers.len() as u64
}

/// Calls programs of a site one by one.
fn call_packets(site: &CallSite, numbers: &[usize], host: &mut Host) {
    let (mut caller, mut packets) = (site.caller(), burst(1));
    let mut calls = caller.enter(host);
    for &number in numbers {
        let r0 = calls.run_raw(&targets()[number], &mut packets.frame_mut(0)).unwrap();
        assert_eq!(r0, number as u64);
    }
}

#[derive(Clone, Debug)]
enum Change {
    Add(usize),
    Remove(usize),
    Replace(usize, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let number = prop_oneof![0..8_usize, 0..1024_usize];
    let change = prop_oneof![
        3 => number.clone().prop_map(Change::Add),
        2 => number.clone().prop_map(Change::Remove),
        1 => (number.clone(), number).prop_map(|(old, new)| Change::Replace(old, new)),
    ];
    prop::collection::vec(change, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_changes_in_any_order(
        changes in changes(),
        others in prop::collection::vec(0..1024_usize, 8),
        retpoline in any::<bool>(),
    ) {
        let fallback = if retpoline { Fallback::Retpoline } else { Fallback::Indirect };
        for site in sites(fallback) {
            let mut users: BTreeMap<usize, usize> = BTreeMap::new();
            let mut host = Host::default();
            for change in &changes {
                let (old, new) = match *change {
                    Change::Add(number) => (None, Some(number)),
                    Change::Remove(number) => (Some(number), None),
                    Change::Replace(old, new) => (Some(old), Some(new)),
                };
                let target = |number: Option<usize>| number.map(|number| &targets()[number]);
                let result = site.update(target(old), target(new));
                if old.is_some_and(|old| !users.contains_key(&old)) {
                    prop_assert_eq!(result, Err(UpdateError::NoSlot));
                    continue;
                }
                prop_assert_eq!(result, Ok(()));
                if let Some(old) = old {
                    let left = users.get_mut(&old).map(|count| { *count -= 1; *count });
                    if left == Some(0) {
                        users.remove(&old);
                    }
                }
                if let Some(new) = new {
                    *users.entry(new).or_default() += 1;
                }
                prop_assert_eq!(site.slots(), users.len());
            }
            let mut counts: Vec<usize> = site.users().into_iter().map(|(_, users)| users).collect();
            let mut expected: Vec<usize> = users.values().copied().collect();
            counts.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(counts, expected);
            // The linear search: who is registered is a hit. Engines that are no compilers share one entry.
            let shared = |number: usize| (engine(number) != Engine::best()).then(|| engine(number));
            let is_hit = |number: usize| {
                users.keys().any(|&user| user == number || shared(user).is_some() && shared(user) == shared(number))
            };
            let named: Vec<usize> = users.keys().copied().chain(others.iter().copied()).collect();
            call_packets(&site, &named, &mut host);
            let packets = site.statistics();
            let hits = named.iter().filter(|&&number| is_hit(number)).count() as u64;
            prop_assert_eq!((packets.hits, packets.fallbacks), (hits, named.len() as u64 - hits));
            let calls = call(&site, &named, &mut host);
            let both = site.statistics();
            prop_assert_eq!(both.hits + both.fallbacks, named.len() as u64 + calls);
        }
    }
}

#[test]
fn a_thousand_slots() {
    for site in sites(Fallback::Indirect) {
        for target in targets() {
            site.update(None, Some(target)).unwrap();
        }
        let numbers: Vec<usize> = (0..1024).rev().collect();
        let calls = call(&site, &numbers, &mut Host::default());
        assert_eq!(site.statistics(), SiteStatistics { hits: calls, fallbacks: 0, updates: 1024 });
        for target in targets() {
            site.update(Some(target), None).unwrap();
        }
        assert_eq!(site.slots(), 0);
        let native: Vec<usize> = (0..1024).filter(|&number| engine(number) == Engine::best()).collect();
        let calls = call(&site, &native, &mut Host::default());
        assert_eq!(site.statistics().fallbacks, calls, "what is not registered runs too");
    }
}

#[test]
fn users_of_a_program_share_its_slot() {
    let site = CallSite::new(Fallback::Indirect);
    let target = &targets()[7];
    site.update(None, Some(target)).unwrap();
    site.update(None, Some(&target.clone())).unwrap();
    assert_eq!(site.users(), [("returns_7".to_owned(), 2)]);
    assert_eq!(site.statistics().updates, 1);
    site.update(Some(target), None).unwrap();
    assert_eq!(site.slots(), 1);
    site.update(Some(target), None).unwrap();
    assert_eq!((site.slots(), site.statistics().updates), (0, 2));
    assert_eq!(site.update(Some(target), None), Err(UpdateError::NoSlot));
}

#[test]
fn keys_choose_programs() {
    for site in [KeyedSite::by_key(), KeyedSite::by_key().without_code()] {
        let mut host = Host::default();
        let mut caller = site.caller();
        // Ports, a tenant of 64 bits, and what is negative as a signed number.
        let keys = [0, 1, 2, 500, u64::MAX, 1 << 40, i64::MIN as u64];
        for (number, &key) in keys.iter().enumerate() {
            site.set(key, Some(&targets()[number])).unwrap();
        }
        let mut packets = burst(2);
        for (number, &key) in keys.iter().enumerate() {
            caller.run_burst(key, &mut packets, &mut host).unwrap();
            assert_eq!(codes(&packets), [number as u32; 2], "key {key:#x}");
            let r0 = caller.enter(&mut host).run_raw(key, &mut packets.frame_mut(1)).unwrap();
            assert_eq!(r0, number as u64);
        }
        // Packets of many tenants in one burst, neighbors together.
        let mut mixed = burst(keys.len() + 3);
        let order: Vec<usize> = (0..mixed.len()).map(|index| [0, 0, 1, 5, 5, 5, 9, 9, 3, 2][index]).collect();
        let key = |index: usize| keys.get(order[index]).copied().unwrap_or(77);
        let before = site.statistics();
        caller.enter(&mut host).run_mixed(&mut mixed, key).unwrap();
        let expected: Vec<u32> = order
            .iter()
            .map(|&number| if number == 9 { Verdict::Pass as u32 } else { number as u32 })
            .collect();
        assert_eq!(codes(&mixed), expected);
        let after = site.statistics();
        assert_eq!((after.hits - before.hits, after.fallbacks - before.fallbacks), (5, 1));
        // None, and another.
        site.set(500, None).unwrap();
        site.set(1, Some(&targets()[900])).unwrap();
        caller.run_burst(500, &mut packets, &mut host).unwrap();
        assert_eq!(codes(&packets), [Verdict::Pass as u32; 2]);
        caller.run_burst(1, &mut packets, &mut host).unwrap();
        assert_eq!(codes(&packets), [900; 2]);
        assert_eq!(site.slots(), keys.len() - 1);
    }
}

#[test]
fn chains_are_called_like_programs() {
    let again = Edges::NONE.with(Verdict::Pass, Next::Program(Node::new(1)));
    let graph = Graph::new(vec![again, Edges::NONE.with(Verdict::Tx, Next::End(Verdict::Drop))]).unwrap();
    let programs = vec![program(2, Engine::best()), program(3, Engine::Threaded)];
    let target = Target::from(&Chain::new(programs, graph).unwrap());
    let (site, mut host, mut packets) = (CallSite::new(Fallback::Indirect), Host::default(), burst(3));
    site.update(None, Some(&target)).unwrap();
    site.update(None, Some(&targets()[0])).unwrap();
    assert_eq!(site.users().iter().filter(|(name, _)| name == "chain").count(), 1);
    let mut caller = site.caller();
    let mut calls = caller.enter(&mut host);
    calls.run_burst(&target, &mut packets).unwrap();
    assert_eq!(codes(&packets), [Verdict::Drop as u32; 3]);
    assert_eq!(calls.run_raw(&target, &mut packets.frame_mut(0)).unwrap(), Verdict::Drop as u64);
    drop(calls);
    drop(caller);
    assert_eq!(site.statistics(), SiteStatistics { hits: 2, fallbacks: 0, updates: 2 });
}

#[test]
fn calls_of_a_burst_see_no_update() {
    let site = KeyedSite::by_key();
    site.set(1, Some(&targets()[10])).unwrap();
    let (mut host, mut packets) = (Host::default(), burst(1));
    let mut caller = site.caller();
    let mut calls = caller.enter(&mut host);
    site.set(1, Some(&targets()[20])).unwrap();
    calls.run_burst(1, &mut packets).unwrap();
    assert_eq!(codes(&packets), [10], "the burst goes to its end with what it began with");
    drop(calls);
    caller.run_burst(1, &mut packets, &mut host).unwrap();
    assert_eq!(codes(&packets), [20]);
}

/// Kilobytes that this process has in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0)
}

/// Updates a second that are tried for.
const RATE: u64 = 10_000;

fn time() -> Duration {
    let given = std::env::var("PACELINE_HAMMER").ok();
    Duration::from_secs(given.map_or(2, |given| given.parse().expect("seconds")))
}

/// Updates of both kinds of sites while a worker runs packets all the time: every burst gets the verdict of a program that was
/// there when it began. Programs come fresh and go for good, so that late calls would find other code.
#[test]
fn updates_while_packets_run() {
    let (by_program, by_key) = (CallSite::new(Fallback::Indirect), KeyedSite::by_key());
    let neighbors = &targets()[..15];
    neighbors.iter().for_each(|target| by_program.update(None, Some(target)).unwrap());
    by_key.set(1, Some(&targets()[100])).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let (mut host, mut packets, mut bursts) = (Host::default(), burst(64), 0_u64);
            let (mut named, mut keyed) = (by_program.caller(), by_key.caller());
            while !done.load(Ordering::Relaxed) {
                let number = bursts as usize % neighbors.len();
                named.run_burst(&neighbors[number], &mut packets, &mut host).unwrap();
                assert!(packets.iter().all(|frame| frame.code() == number as u32));
                keyed.run_burst(1, &mut packets, &mut host).unwrap();
                let code = packets.frame(0).code();
                assert!((100..=102).contains(&code), "{code}");
                assert!(packets.iter().all(|frame| frame.code() == code), "one burst, one program");
                bursts += 1;
            }
            bursts
        });
        let (start, time) = (Instant::now(), time());
        let (mut updates, mut warm, mut fresh) = (0_u64, None, program(101, Engine::best()));
        let mut registered: Option<Target> = None;
        while start.elapsed() < time && !traffic.is_finished() {
            // Two updates each.
            let target = Target::from(&fresh);
            by_program.update(registered.as_ref(), Some(&target)).unwrap();
            by_key.set(1, Some(&target)).unwrap();
            registered = Some(target);
            updates += 2;
            if updates % 20 == 0 {
                fresh = program(101 + updates as usize / 20 % 2, Engine::best());
            }
            if warm.is_none() && start.elapsed() > time / 4 {
                warm = Some(resident());
            }
            let due = Duration::from_nanos(updates * 1_000_000_000 / RATE);
            if let Some(early) = due.checked_sub(start.elapsed()) {
                thread::sleep(early);
            }
        }
        let took = start.elapsed();
        done.store(true, Ordering::Relaxed);
        let bursts = traffic.join().unwrap();
        let (before, after) = (warm.unwrap_or(0), resident());
        let rate = updates as f64 / took.as_secs_f64();
        eprintln!(
            "{updates} updates in {took:?}, {rate:.0} a second, {bursts} bursts; memory {before} KiB, then {after} KiB; {} waiting",
            Domain::global().pending()
        );
        assert!(bursts > 0);
        assert!(after < before + (8 << 10), "memory grows: {before} KiB, then {after} KiB");
        // The traffic was all on slots that stay, and on a key that always has a program.
        assert_eq!((by_program.statistics().fallbacks, by_key.statistics().fallbacks), (0, 0));
    });
}

/// A program that goes while a worker is inside stays until the burst is over.
#[test]
fn removed_programs_outlive_the_burst() {
    let site = KeyedSite::by_key();
    let short_lived = program(55, Engine::best());
    site.set(9, Some(&Target::from(&short_lived))).unwrap();
    drop(short_lived);
    let (mut host, mut packets) = (Host::default(), burst(4));
    let mut caller = site.caller();
    let mut calls = caller.enter(&mut host);
    site.set(9, None).unwrap();
    thread::spawn(|| Domain::global().collect()).join().unwrap();
    calls.run_burst(9, &mut packets).unwrap();
    assert_eq!(codes(&packets), [55; 4]);
}
