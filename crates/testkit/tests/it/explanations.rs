//! Explanations are those of the run that they explain, and the branch that decides does.

use std::collections::BTreeSet;
use std::path::Path;

use paceline::coverage::{Counting, Report};
use paceline::explain::{Branch, CauseKind, Event, Explainer, Explanation, Fact, FactKind};
use paceline::isa::Insn;
use paceline::scenario::Origin;
use paceline::{
    Arrival, Burst, Collection, Engine, FrameMeta, Host, LoadOptions, Meaning, Object, Outcome, Program,
    RanAs, Redirect, RedirectTarget, TimeSource, Verdict,
};
use paceline_engine::Steer;
use paceline_testkit::object_runs::{packets_of, pool};

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
    let [redirect, stored] = [outcome.redirect, outcome.stored].map(|target| target.map(without_id));
    Outcome { redirect, stored, ..outcome.clone() }
}

fn without_id(redirect: Redirect) -> Redirect {
    match redirect.target {
        RedirectTarget::Interface { .. } => redirect,
        RedirectTarget::Map { key, .. } => {
            Redirect { target: RedirectTarget::Map { map: 1, key }, ..redirect }
        }
    }
}

/// Redirects without ids of maps, which differ between collections.
fn comparable((verdict, code, redirect): Fate) -> Fate {
    (verdict, code, redirect.map(without_id))
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

/// Runs a program with conditional jumps inverted, given by their numbers in the run, on maps of its own. Also the number of jumps.
fn inverted(object: &Object, name: &str, bytes: &[u8], branches: &[usize]) -> (Option<Fate>, usize) {
    let collection = load(object, Engine::Plain);
    let program: Program = collection.program_unverified(Some(name)).expect("it binds");
    let (mut burst, mut host, mut jumps) = (burst(bytes, 0), host(), 0);
    host.arrive(&burst);
    let run = program.run_steered(&mut burst.frame_mut(0), &mut host, |observed| {
        let is_jump = matches!(observed.insn(), Some(Insn::JumpIf { .. }));
        jumps += usize::from(is_jump);
        match is_jump && branches.contains(&(jumps - 1)) {
            true => Steer::Invert,
            false => Steer::Follow,
        }
    });
    (run.is_ok().then(|| comparable(fate(&burst))), jumps)
}

/// A packet whose outcome a branch decides: the numbers of the branches of its condition, and of all that came after.
struct Decided<'a> {
    object: &'a Object,
    name: &'a str,
    bytes: &'a [u8],
    explanation: &'a Explanation,
    parts: Vec<usize>,
}

impl Decided<'_> {
    fn without(&self, branches: &[usize]) -> Option<Fate> {
        inverted(self.object, self.name, self.bytes, branches).0
    }

    fn branches(&self) -> impl Iterator<Item = (usize, &Branch)> {
        let branches = self.explanation.events.iter().filter_map(|event| match event {
            Event::Branch(branch) => Some(branch),
            _ => None,
        });
        branches.enumerate()
    }

    /// Whether the outcome is another one with a branch of the condition inverted.
    fn decides(&self, fate: &Option<Fate>) -> bool {
        self.parts.iter().any(|part| self.without(&[*part]) != *fate)
    }

    /// Whether the same outcome is made anew, by branches that come later and decide then: it is another one with at most this many of
    /// them inverted too.
    fn is_decided_anew(&self, fate: &Option<Fate>) -> bool {
        self.parts.iter().any(|part| self.is_other(fate, &mut vec![*part], 3))
    }

    fn is_other(&self, fate: &Option<Fate>, branches: &mut Vec<usize>, most: usize) -> bool {
        let (_, jumps) = inverted(self.object, self.name, self.bytes, branches);
        let last = branches.last().copied().unwrap_or(0);
        let later: Vec<_> = (last + 1..jumps.min(last + 40)).collect();
        let with =
            |branches: &mut Vec<usize>, later: usize, check: &mut dyn FnMut(&mut Vec<usize>) -> bool| {
                branches.push(later);
                let found = check(branches);
                branches.pop();
                found
            };
        let is_other =
            |branches: &mut Vec<usize>| self.without(branches).is_some_and(|other| Some(other) != *fate);
        later.iter().any(|later| with(branches, *later, &mut |branches| is_other(branches)))
            || (most > 1
                && later.iter().any(|later| {
                    with(branches, *later, &mut |branches| self.is_other(fate, branches, most - 1))
                }))
    }
}

/// Explains packets whose outcome a branch decides.
fn each_decided(seed: u64, mut check: impl FnMut(&Decided<'_>, &str)) {
    each_program(|object, name| {
        for (number, input) in packets_of(pool(), seed, count() / 4).iter().enumerate() {
            let collection = load(object, Engine::Plain);
            let program = collection.program_unverified(Some(name)).expect("it binds");
            let mut explainer = Explainer::new(program, object.shared_btf());
            explainer.want_all_causes(true);
            let (burst, mut host) = (burst(&input.data, 0), host());
            let packet = packet(&input.data, &burst);
            let explanation = explainer.explain(&packet, &mut host).expect("it fits");
            let number_of = |event: &usize| {
                let before = explanation.events.iter().take(*event);
                before.filter(|event| matches!(event, Event::Branch(_))).count()
            };
            let Some(cause) = explanation.cause().filter(|cause| cause.kind == CauseKind::Condition) else {
                continue;
            };
            let parts = cause.events.iter().map(number_of).collect();
            let decided = Decided { object, name, bytes: &input.data, explanation: &explanation, parts };
            check(&decided, &format!("{name}, packet {number}: {}", explanation.sentence()));
        }
    });
}

/// Without the branch that decides the outcome is another one. Where it is the same, as of two checks that drop a packet the first one
/// decides, the explanation has the decision that makes it then, and there is one. It has none where another value of what is named makes
/// another outcome, though the branch inverted does not: less than one in a hundred. `rewrites` looks at those.
#[test]
fn the_outcome_is_another_one_without_the_branch_that_decides() {
    let (mut decided, mut anew, mut untold, mut wrong) = (0, 0, Vec::new(), Vec::new());
    each_decided(2, |packet, text| {
        decided += 1;
        let fate = packet.without(&[]);
        if packet.decides(&fate) {
            return;
        }
        anew += 1;
        match (packet.is_decided_anew(&fate), &packet.explanation.otherwise) {
            (true, Some(_)) => {}
            (true, None) => untold.push(text.to_owned()),
            (is_anew, otherwise) => wrong.push(format!("{text} ({is_anew}, {otherwise:?})")),
        }
    });
    eprintln!("{decided} are decided by a branch, {anew} of them anew without it");
    assert!(decided > 100, "only {decided} packets were decided by a branch");
    assert!(wrong.is_empty(), "{} of {decided}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(untold.len() * 100 < decided, "{} of {decided}:\n{}", untold.len(), untold.join("\n"));
}

/// No branch after the one that decides changes the outcome by itself, but checks that go without saying, and those of what the path set.
#[test]
fn no_later_branch_decides() {
    let mut wrong = Vec::new();
    each_decided(4, |packet, text| {
        let fate = packet.without(&[]);
        let last = packet.parts.iter().max().copied().unwrap_or(0);
        for (number, branch) in packet.branches().filter(|(number, _)| *number > last) {
            let goes_without_saying = |fact: &Fact| {
                fact.name == "the packet's length"
                    || fact.kind == FactKind::Result
                    || (fact.kind == FactKind::Element && fact.value == "present")
            };
            if branch.facts.iter().any(goes_without_saying) || branch.facts.is_empty() {
                continue;
            }
            if packet.without(&[number]).is_some_and(|other| Some(other) != fate) {
                let place = packet.explanation.place(branch.at);
                wrong.push(format!("{text}, but {place}: {:?}", branch.facts));
            }
        }
    });
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
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
