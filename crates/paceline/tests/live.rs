//! Chains that change while packets run through them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use paceline::chain::{Actions, CallMap, Calls, Edges, Next, Node, Place, RunConfig, SequenceError, Warning};
use paceline::isa::assemble;
use paceline::port::MemoryPort;
use paceline::{
    Burst, ChainWorker, Change, ChangeError, Collection, Difference, Engine, FrameMeta, Host, Link,
    LinkTarget, LiveChain, LoadOptions, MapFlags, MapKind, MapSpec, Member, Object, Order, PinnedMaps,
    Pinning, Pipeline, ProgramStatus, SetupError, Verdict,
};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn load(name: &str) -> Collection {
    Object::open(path(name)).unwrap().load(&LoadOptions::default()).unwrap()
}

/// A program from its text, on an engine.
fn member_on(name: &str, text: &str, engine: Engine) -> Member {
    let mut object = Object::open(path("counter.o")).unwrap();
    let insns = assemble(text, &()).unwrap().encode().unwrap();
    let specs = object.specs_mut();
    let spec = specs.programs.first_mut().unwrap();
    *spec = paceline::ProgramSpec::new(name, spec.kind, insns);
    let collection = object.load(&LoadOptions::default().engine(engine)).unwrap();
    collection.member(name, None).unwrap()
}

fn member(name: &str, text: &str) -> Member {
    member_on(name, text, Engine::best())
}

fn returning(name: &str, verdict: Verdict) -> Member {
    member(name, &format!("r0 = {}\nexit\n", verdict as u32))
}

/// Writes a byte of the packet, and passes it.
fn marking(name: &str, offset: usize, mark: u8) -> Member {
    let text = format!(
        "r2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\nr4 = r2\nr4 += {}\nif r4 > r3 goto out\n\
         *(u8 *)(r2 + {offset}) = {mark}\nout:\nr0 = 2\nexit\n",
        offset + 1
    );
    member(name, &text)
}

fn burst(packets: usize) -> Burst {
    let mut burst = Burst::default();
    for _ in 0..packets {
        burst.push(&[0; 60], FrameMeta::default()).unwrap();
    }
    burst
}

/// The verdict of one packet.
fn verdict(chain: &LiveChain) -> Verdict {
    let mut burst = burst(1);
    chain.worker().run_burst(&mut burst, &mut Host::default()).unwrap();
    burst.frame(0).verdict()
}

fn names(chain: &LiveChain) -> Vec<String> {
    chain.layout().names
}

#[test]
fn programs_are_added_moved_replaced_and_removed() {
    let chain = LiveChain::new(vec![returning("a", Verdict::Pass)], Order::Given).unwrap();
    let add = |member, place| Change::Add { member, place };
    chain.change(None, vec![add(returning("b", Verdict::Tx), None)]).unwrap();
    assert_eq!(verdict(&chain), Verdict::Tx);
    let before_b = Some(Place::Before("b".to_owned()));
    chain.change(None, vec![add(returning("drop", Verdict::Drop), before_b)]).unwrap();
    assert_eq!(names(&chain), ["a", "drop", "b"]);
    assert_eq!(verdict(&chain), Verdict::Drop);
    chain.change(None, vec![Change::Reorder { name: "drop".to_owned(), place: Place::Last }]).unwrap();
    assert_eq!(verdict(&chain), Verdict::Tx);
    let replaced = Change::Replace { name: "b".to_owned(), member: returning("b", Verdict::Pass) };
    chain.change(None, vec![replaced]).unwrap();
    assert_eq!(
        (names(&chain), verdict(&chain)),
        (vec!["a".into(), "b".into(), "drop".into()], Verdict::Drop)
    );
    chain.change(None, vec![Change::Remove { name: "drop".to_owned() }]).unwrap();
    assert_eq!(verdict(&chain), Verdict::Pass);
    let config = RunConfig { actions: Actions::NONE, ..RunConfig::default() };
    let layout = chain.change(None, vec![Change::Configure { name: "a".to_owned(), config }]).unwrap();
    assert_eq!(layout.warnings, [Warning::Unreached { node: Node::new(1) }]);
}

#[test]
fn a_change_that_is_refused_or_only_tried_changes_nothing() {
    let chain =
        LiveChain::new(vec![returning("a", Verdict::Pass), returning("b", Verdict::Tx)], Order::Given)
            .unwrap();
    let before = chain.layout();
    let remove = |name: &str| Change::Remove { name: name.to_owned() };
    let layout = chain.preview(Some(before.revision), vec![remove("a")]).unwrap();
    assert_eq!((layout.names.len(), layout.revision), (1, before.revision + 1));
    let stale = chain.change(Some(before.revision - 1), vec![remove("a")]).unwrap_err();
    assert!(matches!(stale, ChangeError::Sequence(SequenceError::Stale { .. })), "{stale}");
    // The first of several changes is good.
    let missing = chain.change(None, vec![remove("a"), remove("c")]).unwrap_err();
    assert_eq!(missing.to_string(), "no program c in the chain (available: b)");
    let taken = chain.change(None, vec![Change::Add { member: returning("b", Verdict::Pass), place: None }]);
    assert!(matches!(taken.unwrap_err(), ChangeError::NameTaken(name) if name == "b"));
    let empty = chain.change(None, vec![remove("a"), remove("b")]).unwrap_err();
    assert_eq!(empty.to_string(), "a chain needs a program");
    let again = chain.members().remove(0);
    let again =
        chain.change(None, vec![Change::Replace { name: "a".to_owned(), member: again }]).unwrap_err();
    assert!(matches!(again, ChangeError::Sequence(SequenceError::Exists)), "{again}");
    assert_eq!((chain.layout(), verdict(&chain)), (before, Verdict::Tx));
}

#[test]
fn priorities_decide_and_those_that_were_there_come_first() {
    let with = |name: &str, priority| {
        returning(name, Verdict::Pass).with_config(RunConfig { priority, ..RunConfig::default() })
    };
    let chain =
        LiveChain::new(vec![with("late", 90), with("b", 50), with("a", 50)], Order::Priority).unwrap();
    assert_eq!(names(&chain), ["a", "b", "late"]);
    // The name in the chain is another, that of the function is the same.
    let mut first = with("a", 50);
    assert_eq!(first.program().spec().name, "a");
    chain.change(None, vec![Change::Replace { name: "a".to_owned(), member: first }]).unwrap();
    first = with("early", 10);
    chain.change(None, vec![Change::Add { member: first, place: None }]).unwrap();
    assert_eq!(names(&chain), ["early", "a", "b", "late"]);
    let place = Some(Place::First);
    let refused = chain.change(None, vec![Change::Add { member: with("x", 1), place }]).unwrap_err();
    assert!(matches!(refused, ChangeError::NoPlaces));
    let config = RunConfig { priority: 99, ..RunConfig::default() };
    chain.change(None, vec![Change::Configure { name: "early".to_owned(), config }]).unwrap();
    assert_eq!(names(&chain), ["a", "b", "late", "early"]);
}

#[test]
fn links_say_any_graph_and_follow_what_is_replaced() {
    let link = |after, target: &str| Link { after, target: LinkTarget::Program(target.to_owned()) };
    let members =
        vec![returning("a", Verdict::Drop), returning("b", Verdict::Tx), returning("c", Verdict::Pass)];
    let links = vec![
        ("c".to_owned(), vec![link(Some(Verdict::Pass), "a"), link(None, "b")]),
        (
            "a".to_owned(),
            vec![Link { after: Some(Verdict::Drop), target: LinkTarget::End(Verdict::Redirect) }],
        ),
    ];
    let chain = LiveChain::new(members, Order::Links { first: "c".to_owned(), links }).unwrap();
    assert_eq!(
        (names(&chain), verdict(&chain)),
        (vec!["c".into(), "a".into(), "b".into()], Verdict::Redirect)
    );
    let needed = chain.change(None, vec![Change::Remove { name: "a".to_owned() }]).unwrap_err();
    assert_eq!(needed.to_string(), "program a is needed: an edge of c leads to it");
    let needed = chain.change(None, vec![Change::Remove { name: "c".to_owned() }]).unwrap_err();
    assert_eq!(needed.to_string(), "program c is needed: packets enter there");
    let replace = Change::Replace { name: "c".to_owned(), member: returning("d", Verdict::Aborted) };
    let layout = chain.change(None, vec![replace]).unwrap();
    assert_eq!(
        (layout.names.as_slice(), verdict(&chain)),
        (["d".into(), "a".into(), "b".into()].as_slice(), Verdict::Tx)
    );
    let edges = Edges::NONE
        .with(Verdict::Pass, Next::Program(Node::new(1)))
        .with_wildcard(Next::Program(Node::new(2)));
    assert_eq!(layout.graph.nodes()[0], edges);
    let twice = Change::Link { name: "d".to_owned(), links: vec![link(None, "a"), link(None, "b")] };
    assert!(matches!(chain.change(None, vec![twice]).unwrap_err(), ChangeError::TwoLinks { .. }));
    chain.change(None, vec![Change::Link { name: "d".to_owned(), links: Vec::new() }]).unwrap();
    assert_eq!(verdict(&chain), Verdict::Aborted);
    chain.change(None, vec![Change::Remove { name: "a".to_owned() }]).unwrap();
}

#[test]
fn chain_call_maps_are_replaced_whole_or_entry_by_entry() {
    let members =
        vec![returning("a", Verdict::Pass), returning("b", Verdict::Drop), returning("c", Verdict::Tx)];
    let ids: Vec<u32> = members.iter().map(|member| member.program().id()).collect();
    let mut map = CallMap::default();
    map.set(ids[0], Calls::default().with(Verdict::Pass, ids[1])).unwrap();
    let chain = LiveChain::new(members, Order::Calls { first: ids[0], map: map.clone() }).unwrap();
    assert_eq!(verdict(&chain), Verdict::Drop);
    let calls = Calls::default().with_wildcard(ids[2]);
    chain.change(None, vec![Change::Call { program: ids[1], calls }]).unwrap();
    assert_eq!(verdict(&chain), Verdict::Tx);
    map.set(ids[0], Calls::default()).unwrap();
    chain.change(None, vec![Change::Arrange(Order::Calls { first: ids[0], map })]).unwrap();
    assert_eq!(verdict(&chain), Verdict::Pass);
    let unknown = Change::Call { program: ids[0], calls: Calls::default().with_wildcard(u32::MAX) };
    assert!(matches!(chain.change(None, vec![unknown]).unwrap_err(), ChangeError::NoId(u32::MAX)));
}

#[test]
fn workers_count_and_time_what_ran() {
    let members =
        vec![returning("a", Verdict::Pass), returning("b", Verdict::Drop), member("odd", "r0 = 99\nexit\n")];
    let link = |after, target: &str| Link { after, target: LinkTarget::Program(target.to_owned()) };
    let links = vec![
        ("a".to_owned(), vec![link(Some(Verdict::Pass), "b")]),
        ("b".to_owned(), vec![link(None, "odd")]),
        ("odd".to_owned(), vec![link(None, "a")]),
    ];
    let chain = LiveChain::new(members, Order::Links { first: "a".to_owned(), links }).unwrap();
    let mut worker = chain.worker().counted().unwrap();
    for _ in 0..20 {
        let mut burst = burst(3);
        worker.run_burst(&mut burst, &mut Host::default()).unwrap();
        assert!(burst.iter().all(|frame| frame.verdict() == Verdict::Aborted));
    }
    drop(worker);
    let status = chain.status();
    // 32 runs of each of 60 packets, in turn.
    let runs = |node: usize| status.programs[node].runs();
    assert_eq!([runs(0), runs(1), runs(2)], [660, 660, 600]);
    assert_eq!(status.overruns, 60);
    assert_eq!(status.programs[2].others, status.programs[2].runs());
}

/// Counts of removed programs are discarded, even if a worker publishes them later or the program is added again.
#[test]
fn counts_go_with_their_program() {
    let (a, b) = (returning("x", Verdict::Pass), returning("x", Verdict::Pass));
    let chain = LiveChain::new(vec![a.clone()], Order::Given).unwrap();
    let replace = |member: &Member| Change::Replace { name: "x".to_owned(), member: member.clone() };
    let (mut late, mut burst, mut host) = (chain.worker().counted().unwrap(), burst(3), Host::default());
    late.run_burst(&mut burst, &mut host).unwrap();
    let runs = || chain.status().programs.iter().map(ProgramStatus::runs).collect::<Vec<_>>();
    chain.change(None, vec![replace(&b)]).unwrap();
    late.refresh(&mut host);
    assert_eq!(runs(), [0]);
    late.run_burst(&mut burst, &mut host).unwrap();
    chain.change(None, vec![replace(&a)]).unwrap();
    drop(late);
    assert_eq!(runs(), [0], "what it did before it left, and what the other did, is forgotten");
    let mut worker = chain.worker().counted().unwrap();
    worker.run_burst(&mut burst, &mut host).unwrap();
    drop(worker);
    assert_eq!(runs(), [3]);
}

#[test]
fn map_contents_survive_a_replaced_program_where_name_and_shape_agree() {
    let before = load("counter.o");
    let program = before.program(None).unwrap();
    program.run_burst(&mut burst(5), &mut Host::default()).unwrap();
    let object = Object::open(path("counter.o")).unwrap();
    let options = LoadOptions::default();
    let (after, kept) = object.load_after(&options, &before).unwrap();
    let contents = |collection: &Collection| -> Vec<_> {
        collection.maps().iter().map(|map| (map.spec().name.clone(), map.lookup(&[0; 4]).ok())).collect()
    };
    assert!(!kept.is_empty());
    assert_eq!(contents(&after), contents(&before));
    assert_ne!(contents(&after), contents(&load("counter.o")), "the program counts");
    // Another shape is another map.
    let mut other = Object::open(path("counter.o")).unwrap();
    other.specs_mut().maps.iter_mut().for_each(|spec| spec.max_entries += 1);
    let (after, kept) = other.load_after(&options, &before).unwrap();
    assert_eq!(kept, Vec::<String>::new());
    assert!(after.maps().iter().zip(before.maps()).all(|(new, old)| !std::sync::Arc::ptr_eq(new, old)));
    let shared = BTreeMap::from([(kept_name(&before), before.maps()[0].clone())]);
    let error = other.load_sharing(&options, &shared).err().unwrap();
    assert!(matches!(error, SetupError::Differs { difference: Difference::Entries(..), .. }), "{error}");
    let unknown = BTreeMap::from([("nothing".to_owned(), before.maps()[0].clone())]);
    assert!(matches!(object.load_sharing(&options, &unknown).err(), Some(SetupError::NoMap { .. })));
    let sharing = object.load_sharing(&options, &shared).unwrap();
    sharing.program(None).unwrap().run_burst(&mut burst(5), &mut Host::default()).unwrap();
    assert_eq!(contents(&sharing), contents(&before), "both count in one map");
}

/// An object that pins its maps, after a change of them.
fn pinning(change: impl Fn(&mut MapSpec)) -> Object {
    let mut object = Object::open(path("counter.o")).unwrap();
    object.specs_mut().maps.iter_mut().for_each(|spec| {
        spec.pinning = Pinning::ByName;
        change(spec);
    });
    object
}

#[test]
fn maps_that_are_pinned_by_name_are_one_in_an_instance() {
    let options = LoadOptions::default();
    let instance = PinnedMaps::new();
    let first = instance.load(&pinning(|_| ()), &options).unwrap();
    first.program(None).unwrap().run_burst(&mut burst(5), &mut Host::default()).unwrap();
    let name = kept_name(&first);
    let contents =
        |collection: &Collection| -> Vec<_> { collection.map(&name).unwrap().elements().unwrap().collect() };
    let counted = contents(&first);
    drop(first);
    let second = instance.load(&pinning(|_| ()), &options).unwrap();
    assert_eq!(contents(&second), counted, "it stays without an object");
    // Another instance, an object that does not pin, and one that is loaded after the name is gone have their own.
    let others = [
        PinnedMaps::new().load(&pinning(|_| ()), &options).unwrap(),
        instance.load(&pinning(|spec| spec.pinning = Pinning::None), &options).unwrap(),
        {
            assert!(instance.unpin(&name).is_some());
            instance.load(&pinning(|_| ()), &options).unwrap()
        },
    ];
    assert!(others.iter().all(|other| contents(other) != counted));
}

/// All that libbpf's `map_is_reuse_compat` compares.
#[test]
fn a_pinned_map_of_another_shape_is_refused() {
    type Change = fn(&mut MapSpec);
    let changes: [(Change, Difference); 5] = [
        (|spec| spec.kind = MapKind::Array, Difference::Kind),
        (|spec| spec.key_size = 8, Difference::KeySize(8, 4)),
        (|spec| spec.value_size += 8, Difference::ValueSize(16, 8)),
        (|spec| spec.max_entries += 1, Difference::Entries(9, 8)),
        (|spec| spec.flags = MapFlags::NO_PREALLOC, Difference::Flags),
    ];
    let plain = |spec: &mut MapSpec| {
        (spec.kind, spec.key_size, spec.value_size, spec.max_entries) = (MapKind::Hash, 4, 8, 8);
    };
    for (change, expected) in changes {
        let instance = PinnedMaps::new();
        let options = LoadOptions::default();
        instance.load(&pinning(plain), &options).unwrap();
        let pinned = instance.names();
        let other = pinning(|spec| {
            plain(spec);
            change(spec);
        });
        let error = instance.load(&other, &options).err().unwrap();
        assert!(
            matches!(&error, SetupError::Pinned { difference, .. } if *difference == expected),
            "{error}"
        );
        assert_eq!(instance.names(), pinned);
    }
}

/// Members that map creation adds do not count as a difference from the object's specification.
#[test]
fn what_creation_adds_is_no_other_shape() {
    let options = LoadOptions::default();
    for kind in [MapKind::DevMap, MapKind::DevMapHash, MapKind::PerfEventArray] {
        let object = pinning(|spec| {
            let entries = if kind == MapKind::PerfEventArray { 0 } else { 8 };
            (spec.kind, spec.key_size, spec.value_size, spec.max_entries) = (kind, 4, 4, entries);
            (spec.key_type, spec.value_type) = (0, 0);
        });
        let instance = PinnedMaps::new();
        let (first, second) = (instance.load(&object, &options), instance.load(&object, &options));
        assert_eq!(first.unwrap().maps()[0].id(), second.unwrap().maps()[0].id(), "{kind}");
    }
}

fn kept_name(collection: &Collection) -> String {
    collection.maps()[0].spec().name.clone()
}

/// Programs of the chain in the storm.
const LENGTH: usize = 3;

type Marks = [u8; LENGTH];

/// Something that runs the chain: each call is a burst, and says what its packets say then.
type Bursts<'a> = Box<dyn FnMut() -> Vec<Marks> + Send + 'a>;

fn marks(packet: &[u8]) -> Marks {
    packet[..LENGTH].try_into().unwrap()
}

/// The chain's own worker.
fn by_chain(mut worker: ChainWorker) -> Bursts<'static> {
    let (mut host, mut burst) = (Host::default(), burst(64));
    Box::new(move || {
        burst.iter_mut().for_each(|mut frame| frame.packet_mut()[..LENGTH].fill(0));
        worker.run_burst(&mut burst, &mut host).unwrap();
        burst.iter().map(|frame| marks(frame.packet())).collect()
    })
}

/// A worker of the pipeline that the chain is on.
fn by_pipeline(pipeline: &Pipeline) -> Bursts<'static> {
    let mut worker = pipeline.worker(2);
    let ((card, wire), (stack, host)) = (MemoryPort::link(64), MemoryPort::link(64));
    worker.attach(IFINDEX, 0, card);
    worker.deliver_to(stack);
    Box::new(move || {
        (0..64).for_each(|_| assert!(wire.push(&[0; 60], FrameMeta::default())));
        assert_eq!(worker.poll().unwrap(), 64);
        std::iter::from_fn(|| host.pop()).map(|(packet, _)| marks(&packet)).collect()
    })
}

/// Where the chain is on the pipeline.
const IFINDEX: u32 = 7;

#[test]
fn a_burst_never_meets_two_versions() {
    let seed = std::env::var("PACELINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let changes: u32 = std::env::var("PACELINE_CHANGES").ok().and_then(|n| n.parse().ok()).unwrap_or(100);
    let name = |place: usize| format!("p{place}");
    let members = (0..LENGTH).map(|place| marking(&name(place), place, 1)).collect();
    let pipeline = Pipeline::new();
    let chain = LiveChain::on(&pipeline, IFINDEX, members, Order::Given).unwrap();
    // Contents of the packets of each version, by revision: only published ones may appear.
    let versions = Mutex::new(vec![[1u8; LENGTH]]);
    let runners =
        [by_chain(chain.worker()), by_chain(chain.worker().counted().unwrap()), by_pipeline(&pipeline)];
    let counts: Vec<AtomicU64> = runners.iter().map(|_| AtomicU64::new(0)).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let start = |(mut run, bursts): (Bursts<'static>, _)| {
            let (versions, done) = (&versions, &done);
            let bursts: &AtomicU64 = bursts;
            scope.spawn(move || {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let said: Vec<Marks> = run();
                    assert_eq!(said.len(), 64);
                    assert!(said.iter().all(|marks| *marks == said[0]), "a burst met two versions");
                    let versions = versions.lock().unwrap();
                    let version = versions.iter().rposition(|version| *version == said[0]);
                    let version = version.unwrap_or_else(|| panic!("{:?} is no version", said[0]));
                    assert!(version >= last, "version {version} after {last}");
                    last = version;
                    bursts.fetch_add(1, Ordering::Relaxed);
                }
                assert!(last > 0, "the worker saw no change");
            })
        };
        let workers: Vec<_> = runners.into_iter().zip(&counts).map(start).collect();
        let mut rng = fastrand::Rng::with_seed(seed);
        for change in 0..changes {
            // Marks are not repeated while it could be mistaken for an older version.
            let mark = (change % 250) as u8 + 2;
            let mut marks = *versions.lock().unwrap().last().unwrap();
            let change = if rng.bool() {
                let place = rng.usize(..LENGTH);
                marks[place] = mark;
                Change::Replace { name: name(place), member: marking(&name(place), place, mark) }
            } else {
                marks.fill(mark);
                let members = (0..LENGTH).map(|place| marking(&name(place), place, mark)).collect();
                Change::All { members, order: Order::Given }
            };
            // First said, then done: a worker may be quick.
            versions.lock().unwrap().push(marks);
            chain.change(Some(chain.layout().revision), vec![change]).unwrap();
            if rng.u8(..4) == 0 {
                let refused = chain.change(Some(1), vec![Change::Remove { name: name(0) }]);
                assert!(refused.is_err());
            }
        }
        let goals: Vec<u64> = counts.iter().map(|bursts| bursts.load(Ordering::Relaxed) + 64).collect();
        let is_there =
            || counts.iter().zip(&goals).all(|(bursts, goal)| bursts.load(Ordering::Relaxed) >= *goal);
        while !is_there() && !workers.iter().any(|worker| worker.is_finished()) {
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(versions.lock().unwrap().len(), changes as usize + 1);
    assert_eq!(
        pipeline.site().statistics().updates,
        u64::from(changes) + 1,
        "each change went through the site"
    );
}

#[test]
fn what_takes_the_interface_of_a_chain_runs_until_the_next_change() {
    let pipeline = Pipeline::new();
    let chain = LiveChain::on(&pipeline, IFINDEX, vec![returning("a", Verdict::Tx)], Order::Given).unwrap();
    let mut workers = [chain.worker(), chain.worker().counted().unwrap()];
    let (mut host, mut burst) = (Host::default(), burst(2));
    let mut verdict = || {
        let verdicts = workers.each_mut().map(|worker| {
            worker.run_burst(&mut burst, &mut host).unwrap();
            burst.frame(1).verdict()
        });
        assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{verdicts:?}");
        verdicts[0]
    };
    assert_eq!(verdict(), Verdict::Tx);
    let other = returning("other", Verdict::Drop);
    pipeline.set_program(IFINDEX, Some(&paceline::Target::from(other.program()))).unwrap();
    assert_eq!(verdict(), Verdict::Drop);
    pipeline.set_program(IFINDEX, None).unwrap();
    assert_eq!(verdict(), Verdict::Pass);
    let config = RunConfig::default();
    chain.change(None, vec![Change::Configure { name: "a".to_owned(), config }]).unwrap();
    assert_eq!(verdict(), Verdict::Tx);
}

/// Aborts packets that begin with a byte other than 0.
const ABORTING: &str = "r2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\nr4 = r2\nr4 += 1\nr0 = 2\nif r4 > r3 goto out\n\
     r5 = *(u8 *)(r2 + 0)\nif r5 == 0 goto out\nr0 = 0\nout:\nexit\n";

#[test]
fn places_of_aborted_packets_and_the_ways_through_a_chain_are_counted() {
    for engine in [Engine::best(), Engine::Plain] {
        let parser = member_on("parser", ABORTING, engine);
        let chain = LiveChain::new(vec![parser, returning("out", Verdict::Drop)], Order::Given).unwrap();
        chain.attach(1).unwrap();
        let pipeline = chain.pipeline();
        let mut worker = pipeline.worker(0);
        let (port, wire) = MemoryPort::link(64);
        worker.attach(1, 0, port);
        let mut send = |first: u8| {
            assert!(wire.push(&[first; 60], FrameMeta::default()));
            worker.poll().unwrap();
        };
        (0..5).for_each(|_| send(0));
        assert_eq!(pipeline.followed().packets, 0, "no packet was aborted");
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let mut sent = 0;
        while pipeline.followed().packets < 3 {
            assert!(std::time::Instant::now() < end, "packets are followed after one was aborted");
            send(1);
            sent += 1;
        }
        let followed = pipeline.followed();
        let places: Vec<_> = followed.aborted.iter().collect();
        let [(place, packets)] = places.as_slice() else { panic!("one place: {places:?}") };
        assert_eq!((&*place.program, &*place.branch), ("parser", "instruction 7 of parser"));
        // The first one was aborted before.
        assert!(**packets == followed.packets && **packets < sent, "{packets} of {sent}");
        pipeline.follow(true);
        while pipeline.followed().packets < 4 {
            send(0);
        }
        let edges = pipeline.followed().edges;
        let edges: Vec<_> =
            edges.into_iter().map(|(edge, count)| (edge.from.to_string(), edge.to, count)).collect();
        let edge = |from: &str, to, count| (from.to_owned(), to, count);
        assert_eq!(
            edges,
            [
                edge("out", Next::End(Verdict::Drop), 1),
                edge("parser", Next::Program("out".into()), 1),
                edge("parser", Next::End(Verdict::Aborted), 3)
            ]
        );
        assert_eq!(pipeline.counts().of(Verdict::Aborted), sent);
    }
}
