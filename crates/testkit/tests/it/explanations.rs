//! Explanations are those of the run that they explain, and the branch that decides does.

use std::collections::BTreeSet;
use std::path::Path;

use paceline::coverage::{Counting, Report};
use paceline::explain::{Event, Explainer};
use paceline::isa::Insn;
use paceline::scenario::Origin;
use paceline::{
    Arrival, Burst, Collection, Engine, FrameMeta, Host, LoadOptions, Meaning, Object, Outcome, Program,
    RanAs, Redirect, RedirectTarget, TimeSource, Verdict,
};
use paceline_testkit::object_runs::{packets_of, pool};
use paceline_vm::Steer;

const EXAMPLES: [&str; 8] =
    ["balancer", "counter", "firewall", "protocols", "reflector", "sampler", "steering", "vlan"];

/// Packets for each program; more with `PACELINE_EXPLANATIONS`.
fn count() -> usize {
    std::env::var("PACELINE_EXPLANATIONS").map_or(120, |count| count.parse().expect("a number"))
}

fn load(object: &Object, engine: Engine) -> Collection {
    object.load(&LoadOptions::default().engine(engine)).expect("maps")
}

fn host() -> Host {
    let mut host = Host::default();
    host.seed(7);
    host.set_time(TimeSource::Packets);
    host
}

/// One packet in a burst, at a time of its own.
fn burst(bytes: &[u8], number: usize) -> Burst {
    let mut burst = Burst::new(1);
    let meta =
        FrameMeta { timestamp_ns: 1_000 * number as u64, original_len: bytes.len() as u32, interface: 0 };
    burst.push(bytes, meta).expect("it fits");
    burst
}

type Fate = (Verdict, u32, Option<Redirect>);

fn fate(burst: &Burst) -> Fate {
    let frame = burst.frame(0);
    (frame.verdict(), frame.code(), frame.redirect().filter(|_| frame.verdict() == Verdict::Redirect))
}

/// An outcome whose redirects have no ids of maps, which differ between collections.
fn without_ids(outcome: &Outcome) -> Outcome {
    let without = |redirect: Redirect| match redirect.target {
        RedirectTarget::Interface { .. } => redirect,
        RedirectTarget::Map { key, .. } => {
            Redirect { target: RedirectTarget::Map { map: 1, key }, ..redirect }
        }
    };
    let [redirect, stored] = [outcome.redirect, outcome.stored].map(|target| target.map(without));
    Outcome { redirect, stored, ..outcome.clone() }
}

/// Redirects without ids of maps, which differ between collections.
fn comparable((verdict, code, redirect): Fate) -> (Verdict, u32, bool) {
    (verdict, code, redirect.is_some())
}

fn packet<'a>(bytes: &'a [u8], burst: &Burst) -> Arrival<'a> {
    Origin::default().ingress(0).arrival(bytes, *burst.frame(0).meta())
}

/// Each program of the examples that returns verdicts.
fn each_program(mut check: impl FnMut(&Object, &str)) {
    for example in EXAMPLES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(format!("{example}.o"));
        let object = Object::open(path).expect("an object");
        let programs =
            object.programs().iter().filter(|spec| spec.kind.rules().meaning != Meaning::BytesKept);
        let names: Vec<_> = programs.map(|spec| spec.name.clone()).collect();
        names.iter().for_each(|name| check(&object, name));
    }
}

#[test]
fn explanations_have_the_outcome_of_a_run() {
    each_program(|object, name| {
        let (native, plain) = (load(object, Engine::best()), load(object, Engine::Plain));
        let program = native.program(Some(name)).expect("it verifies");
        let mut explainer =
            Explainer::new(plain.program_unverified(Some(name)).expect("it binds"), object.shared_btf());
        let mut hosts = (host(), host());
        for (number, input) in packets_of(pool(), 1, count()).iter().enumerate() {
            let mut burst = burst(&input.data, number);
            hosts.0.arrive(&burst);
            let packet = packet(&input.data, &burst);
            let explanation = explainer.explain(&packet, &mut hosts.1).expect("it fits");
            program.run_burst(&mut burst, &mut hosts.0).expect("no fault");
            let ran = RanAs::Program(program.spec().kind.rules().meaning);
            let native = Outcome::of(burst.frame(0), &hosts.0, ran, None);
            assert_eq!(without_ids(&explanation.outcome), without_ids(&native), "{name}, packet {number}");
        }
        for (ours, theirs) in plain.maps().iter().zip(native.maps()) {
            let elements = |map: &paceline::Map| -> Vec<_> {
                let mut keys: Vec<_> = map.keys().into_iter().flatten().collect();
                keys.sort();
                keys.into_iter().map(|key| (map.lookup(&key), key)).collect()
            };
            // Entries of program arrays are numbers of programs, and maps of maps those of maps.
            if !ours.spec().kind.holds_programs() && ours.spec().inner.is_none() {
                assert_eq!(elements(ours), elements(theirs), "{name}: map {}", ours.spec().name);
            }
        }
    });
}

/// Runs a program with the conditional jump of an index inverted, on maps of its own.
fn inverted(object: &Object, name: &str, bytes: &[u8], branch: Option<usize>) -> Option<Fate> {
    let collection = load(object, Engine::Plain);
    let program: Program = collection.program_unverified(Some(name)).expect("it binds");
    let (mut burst, mut host, mut jumps) = (burst(bytes, 0), host(), 0);
    host.arrive(&burst);
    let run = program.run_steered(&mut burst.frame_mut(0), &mut host, |observed| {
        let is_jump = matches!(observed.insn(), Some(Insn::JumpIf { .. }));
        jumps += usize::from(is_jump);
        match is_jump && Some(jumps - 1) == branch {
            true => Steer::Invert,
            false => Steer::Follow,
        }
    });
    run.is_ok().then(|| fate(&burst))
}

/// Where a later branch makes the same outcome, such as two checks that drop the packet, the first one decides.
#[test]
fn the_outcome_is_another_one_without_the_branch_that_decides() {
    let (mut decided, mut same) = (0, Vec::new());
    each_program(|object, name| {
        for (number, input) in packets_of(pool(), 2, count() / 4).iter().enumerate() {
            let collection = load(object, Engine::Plain);
            let program = collection.program_unverified(Some(name)).expect("it binds");
            let mut explainer = Explainer::new(program, object.shared_btf());
            let (burst, mut host) = (burst(&input.data, 0), host());
            let packet = packet(&input.data, &burst);
            let explanation = explainer.explain(&packet, &mut host).expect("it fits");
            let Some(&decision) = explanation.cause().and_then(|cause| cause.events.last()) else { continue };
            decided += 1;
            let before = explanation.events.iter().take(decision);
            let index = before.filter(|event| matches!(event, Event::Branch(_))).count();
            let (with, without) =
                (inverted(object, name, &input.data, None), inverted(object, name, &input.data, Some(index)));
            let (with, without) = (with.map(comparable), without.map(comparable));
            if with == without {
                same.push(format!("{name}, packet {number}: {}", explanation.sentence()));
            }
        }
    });
    assert!(decided > 100, "only {decided} packets were decided by a branch");
    assert!(same.len() * 5 < decided, "{} of {decided}: {}", same.len(), same.join("\n"));
}

/// The lines of explanations and those of coverage come from different code: an observer, and counters.
#[test]
fn explanations_and_coverage_name_the_same_lines() {
    each_program(|object, name| {
        let plain = load(object, Engine::Plain);
        let mut explainer =
            Explainer::new(plain.program_unverified(Some(name)).expect("it binds"), object.shared_btf());
        let counted = object.clone().with_coverage(Counting::Plain).expect("counters");
        let counted = load(&counted, Engine::best());
        let program = counted.program(Some(name)).expect("it verifies");
        let mut hosts = (host(), host());
        let mut explained = BTreeSet::new();
        for (number, input) in packets_of(pool(), 3, count()).iter().enumerate() {
            let mut burst = burst(&input.data, number);
            hosts.0.arrive(&burst);
            let packet = packet(&input.data, &burst);
            let explanation = explainer.explain(&packet, &mut hosts.1).expect("it fits");
            program.run_burst(&mut burst, &mut hosts.0).expect("no fault");
            let lines = explanation.events.iter().filter_map(|event| match event {
                Event::Line(at) => explanation.line(*at).map(|line| (line.file.to_string(), line.line)),
                _ => None,
            });
            explained.extend(lines);
        }
        let report = Report::new(&counted.coverage());
        let files = report.files.iter();
        let covered =
            files.flat_map(|(name, file)| file.lines.iter().map(move |(number, line)| (name, number, line)));
        let covered = covered.filter(|(_, _, line)| line.count > 0);
        let covered: BTreeSet<_> = covered.map(|(name, number, _)| (name.clone(), *number)).collect();
        assert_eq!(explained, covered, "{name}");
    });
}
