//! Explanations name the conditions that decide by programs that record their own dependences: their sources were instrumented, by reading
//! the source alone, and each condition can be inverted from outside. The explained object is the one without instrumentation.

use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use paceline::explain::{Explainer, Explanation};
use paceline::isa::Insn;
use paceline::scenario::Origin;
use paceline::{Arrival, Engine, FrameMeta, Host, LoadOptions, Map, Object, Outcome};
use paceline_testkit::object_runs::{fill_from_seed, packets_of, pool, size_maps};
use paceline_vm::Steer;

/// A value that has data from outside in it, beside its node.
const OUTSIDE: u32 = 1 << 31;

/// Nodes that a program records.
const MOST_NODES: usize = 4096;

/// Most runs for one packet.
const MOST_RUNS: usize = 400;

/// Words before the nodes: count, control, returned, inversions; then which and with what.
const HEAD: usize = 4 + 16 + 16;

/// A place of the source that records nodes.
#[derive(Debug)]
struct Place {
    kind: String,
    file: String,
    first: u32,
    last: u32,
    /// Of a condition: `bounds`, `array`, `null`, `code`, `acts`, `setting`, or nothing.
    sort: String,
    /// The value for which the condition goes without saying.
    weak: Option<u32>,
    /// The ways that a `switch` has; 0 for another condition.
    cases: u32,
    /// The one value that a condition compares with constants, as text.
    subject: String,
    /// Whether the condition holds if the value is one of them.
    equal: Option<u32>,
    /// Whether a value is a comparison.
    boolean: bool,
    /// Text of a part of a condition.
    text: String,
    /// Whether a function returns here what it does not call for.
    returns: bool,
}

impl Place {
    fn of(json: &serde_json::Value) -> Self {
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| json[key].as_u64().map(|number| number as u32);
        Self {
            kind: text("kind"),
            file: text("file"),
            first: number("first").unwrap_or(0),
            last: number("last").unwrap_or(0),
            sort: text("sort"),
            weak: number("weak"),
            cases: number("cases").unwrap_or(0),
            subject: text("subject"),
            equal: number("equal"),
            boolean: json["boolean"].as_bool().unwrap_or(false),
            text: text("text"),
            returns: number("ret") == Some(1),
        }
    }
}

/// What happened at a place.
#[derive(Clone, Copy)]
struct Node {
    place: usize,
    value: u32,
    control: u32,
    operands: [u32; 3],
}

/// A run that recorded itself.
struct Recorded {
    outcome: Outcome,
    nodes: Vec<Node>,
    returned: u32,
    is_whole: bool,
}

/// A condition or value of a run, nearest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Weak,
    Strong,
}

/// A decision of a run.
struct Candidate {
    number: u32,
    standing: Standing,
    /// The parts of its condition that can be inverted; none if it is no condition.
    turning: Vec<u32>,
    /// Later conditions that had no choice after it.
    also: Vec<u32>,
}

/// For what a node is followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Control,
    /// For the check of an error.
    Code,
    /// For what it tells of a later condition.
    Told,
    /// For the returned value.
    Value,
}

impl Recorded {
    fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get((number & !OUTSIDE).checked_sub(1)? as usize)
    }

    /// The conditions that a condition is control dependent on, as long as each tests the same value.
    fn ladder(&self, places: &[Place], node: &Node) -> Vec<u32> {
        let (mut found, mut next) = (Vec::new(), node.control);
        while let Some(before) = self.node(next) {
            let place = &places[before.place];
            let of = &places[node.place];
            if place.kind != "cond"
                || place.subject.is_empty()
                || (&place.subject, &place.file) != (&of.subject, &of.file)
            {
                break;
            }
            found.push(next);
            next = before.control;
        }
        found
    }

    /// The parts of a condition that were tested.
    fn parts(&self, places: &[Place], number: u32) -> Vec<u32> {
        let (mut found, mut work) = (Vec::new(), vec![number]);
        while let Some(next) = work.pop() {
            let Some(node) = self.node(next) else { continue };
            match places[node.place].kind.as_str() {
                "leaf" => found.push(next & !OUTSIDE),
                "cond" | "phi" => work.extend(node.operands),
                _ => {}
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What a value is made of, before it is joined with what other branches would have made.
    fn root(&self, places: &[Place], mut operand: u32) -> u32 {
        while let Some(node) = self.node(operand).filter(|node| places[node.place].kind == "phi") {
            operand = node.operands[0];
        }
        operand
    }

    /// Whether an earlier part of a condition has told already what a part tests: the same, or another constant of the same value.
    fn implied_by(&self, places: &[Place], number: u32) -> Option<u32> {
        let node = self.node(number)?;
        let of = &places[node.place];
        let roots = |node: &Node| node.operands.map(|operand| self.root(places, operand));
        let before = self.nodes.iter().zip(1..).take((number & !OUTSIDE).saturating_sub(1) as usize);
        let mut before = before.filter(|(before, _)| places[before.place].kind == "leaf");
        let found = before.find(|(before, _)| {
            let place = &places[before.place];
            let is_same = place.text == of.text;
            let is_found =
                !place.subject.is_empty() && place.subject == of.subject && place.equal == Some(before.value);
            place.file == of.file && (is_same || is_found) && roots(before) == roots(node)
        })?;
        Some(found.1)
    }

    /// The parts of a condition whose other side was possible, and the earlier parts that told the others.
    fn turning(&self, places: &[Place], number: u32) -> (Vec<u32>, Vec<u32>) {
        let is_outside = |part: &u32| {
            self.node(*part).is_some_and(|node| {
                let sort = places[node.place].sort.as_str();
                sort != "null" && sort != "code" && node.operands.iter().any(|operand| operand & OUTSIDE != 0)
            })
        };
        let parts = self.parts(places, number).into_iter().filter(is_outside);
        let (mut turning, mut told) = (Vec::new(), Vec::new());
        for part in parts {
            match self.implied_by(places, part) {
                Some(by) => told.push(by),
                None => turning.push(part),
            }
        }
        (turning, told)
    }

    /// Conditions, tail calls and values from outside that the end of the run depends on, nearest first.
    fn candidates(&self, places: &[Place]) -> Vec<Candidate> {
        let (mut work, mut seen, mut found) = (BinaryHeap::new(), HashSet::new(), Vec::new());
        let mut implied: HashMap<u32, Vec<u32>> = HashMap::new();
        work.push((self.returned & !OUTSIDE, Role::Value));
        while let Some((number, role)) = work.pop() {
            let Some(node) = self.node(number).filter(|_| seen.insert(number)) else { continue };
            let place = &places[node.place];
            work.push((node.control, Role::Control));
            let own = node.operands.contains(&OUTSIDE);
            let standing = match (place.sort.as_str(), place.weak) {
                // All elements of an array are there.
                ("array", Some(weak)) if weak == node.value => continue,
                ("setting", _) => Standing::Weak,
                (_, Some(weak)) if weak == node.value => Standing::Weak,
                _ => Standing::Strong,
            };
            let turning = match (place.kind.as_str(), place.cases) {
                ("cond", 0) => {
                    let (turning, told) = self.turning(places, number);
                    for by in told.into_iter().filter(|_| turning.is_empty()) {
                        implied.entry(by).or_default().push(number);
                        work.push((by, Role::Told));
                    }
                    turning
                }
                ("leaf", _) if role == Role::Told => vec![number],
                ("cond", _) if node.operands.iter().any(|one| one & OUTSIDE != 0) => vec![number],
                _ => Vec::new(),
            };
            match place.kind.as_str() {
                "cond" | "leaf" if !turning.is_empty() => {
                    let also = implied.remove(&number).unwrap_or_default();
                    found.push(Candidate { number, standing, turning, also });
                    continue;
                }
                "tail" => found.push(Candidate { number, standing, turning, also: Vec::new() }),
                "value" if own && role == Role::Value => {
                    found.push(Candidate { number, standing, turning, also: Vec::new() });
                }
                _ => {}
            }
            // How a function ended, not what it returned, decides about a check for an error.
            if role == Role::Code && place.returns {
                continue;
            }
            let role = match (place.sort.as_str(), place.kind.as_str(), role) {
                ("code", ..) => Role::Code,
                (_, "cond" | "leaf", _) => Role::Control,
                (_, _, Role::Told) => Role::Control,
                (_, _, role) => role,
            };
            work.extend(node.operands.iter().map(|operand| (operand & !OUTSIDE, role)));
        }
        found
    }
}

/// A program that records itself.
struct Program<'a> {
    explainer: Explainer,
    log: Arc<Map>,
    places: &'a [Place],
    runs: usize,
    /// Whether a run with something inverted had another outcome, and no fault.
    differs: bool,
}

impl Program<'_> {
    fn reset(&self, inverted: &[(u32, u32)]) {
        let mut words = vec![0_u32; HEAD + 6 * MOST_NODES];
        words[3] = inverted.len() as u32;
        for (index, (number, value)) in inverted.iter().enumerate() {
            (words[4 + index], words[20 + index]) = (*number, *value);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.log.update(&0_u32.to_ne_bytes(), &bytes, 0).expect("it is written");
    }

    /// A run with conditions inverted, which leaves maps and host as they were.
    fn rehearse(&mut self, packet: &Arrival<'_>, host: &mut Host, inverted: &[(u32, u32)]) -> Recorded {
        self.reset(inverted);
        self.runs += 1;
        let (log, mut bytes, mut left) = (Arc::clone(&self.log), Vec::new(), 1_000_000);
        let outcome = self.explainer.rehearsed(packet, host, |observed| {
            left -= 1;
            if matches!(observed.insn(), Some(Insn::Exit)) && observed.depth() == 0 {
                bytes = log.lookup(&0_u32.to_ne_bytes()).expect("the only value");
            }
            if left == 0 { Steer::Stop } else { Steer::Follow }
        });
        recorded(outcome.expect("it fits"), &bytes)
    }

    /// The candidate that decided: the nearest whose inversion changes the outcome, or leads to another decision.
    fn decision(&mut self, packet: &Arrival<'_>, host: &mut Host) -> (Recorded, Option<Candidate>) {
        self.runs = 0;
        let run = self.rehearse(packet, host, &[]);
        let mut weak = None;
        for candidate in run.candidates(self.places) {
            if candidate.standing == Standing::Weak && weak.is_some() {
                continue;
            }
            if self.decides(packet, host, &run, &candidate, &mut Vec::new()) {
                match candidate.standing {
                    Standing::Strong => return (run, Some(candidate)),
                    Standing::Weak => weak = Some(candidate),
                }
            }
        }
        (run, weak)
    }

    fn decides(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
        run: &Recorded,
        candidate: &Candidate,
        inverted: &mut Vec<(u32, u32)>,
    ) -> bool {
        if candidate.turning.is_empty() {
            return true;
        }
        let last = inverted.last().map_or(0, |(number, _)| *number);
        let turns = candidate.turning.iter().filter(|part| **part > last).flat_map(|part| {
            let node = run.node(*part).copied().expect("a part");
            let values = match self.places[node.place].cases {
                0 => 1 - node.value.min(1)..2 - node.value.min(1),
                cases => 0..cases,
            };
            values.map(|value| (*part, value))
        });
        let turns: Vec<_> = turns.collect();
        for (part, value) in turns {
            if self.runs >= MOST_RUNS || inverted.len() >= 15 {
                return false;
            }
            inverted.push((part, value));
            let turned = self.rehearse(packet, host, inverted);
            self.differs |= turned.outcome.fault.is_none() && !turned.outcome.fares_as(&run.outcome);
            let differs = turned.outcome.fault.is_some() || !turned.outcome.fares_as(&run.outcome);
            let decides = differs || {
                let later = turned.candidates(self.places).into_iter();
                let later: Vec<_> =
                    later.filter(|later| later.number > part && later.standing == Standing::Strong).collect();
                later.iter().any(|later| self.decides(packet, host, &turned, later, inverted))
            };
            inverted.pop();
            if decides {
                return true;
            }
        }
        false
    }

    /// The lines of a decision: those of the condition, and of comparisons whose results it tests.
    fn lines(&self, run: &Recorded, number: u32) -> Vec<(String, u32, u32)> {
        let (mut lines, mut work, mut seen) = (Vec::new(), vec![(number, true)], HashSet::new());
        while let Some((number, is_first)) = work.pop() {
            let Some(node) = run.node(number).filter(|_| seen.insert(number)) else { continue };
            let place = &self.places[node.place];
            if is_first
                || matches!(place.kind.as_str(), "cond" | "leaf")
                || (place.kind == "value" && place.boolean)
            {
                lines.push((place.file.clone(), place.first, place.last));
                if is_first {
                    // An `else if` of the same value is the same decision: compilers make one `switch` of them.
                    work.extend(run.ladder(self.places, node).into_iter().map(|number| (number, false)));
                }
                work.extend(node.operands.iter().map(|operand| (operand & !OUTSIDE, false)));
            }
        }
        lines
    }
}

fn recorded(outcome: Outcome, bytes: &[u8]) -> Recorded {
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().expect("4 bytes"))).collect();
    let word = |index: usize| words.get(index).copied().unwrap_or(0);
    let count = word(0) as usize;
    let nodes = words.get(HEAD..).unwrap_or_default().chunks_exact(6).take(count);
    let nodes = nodes.map(|word| Node {
        place: word[0] as usize,
        value: word[1],
        control: word[2],
        operands: [word[3], word[4], word[5]],
    });
    let returned = if word(2) == 0 { word(1) } else { word(2) };
    Recorded { outcome, nodes: nodes.collect(), returned, is_whole: count <= MOST_NODES }
}

/// Figures of a program.
#[derive(Debug, Default)]
struct Figures {
    packets: usize,
    right: usize,
    unknown: usize,
    wrong: usize,
    /// Packets whose record is too long, or that fared otherwise, as instrumentation must not make them.
    left_out: usize,
}

/// Compares the explanations of `plain.o` with what `prog.o` records by `table.json`, for each folder below `PACELINE_DECISIONS`; what
/// differs is written to `wrong.jsonl`.
#[test]
fn the_place_named_is_the_one_that_decides_by_the_source() {
    let Ok(folder) = std::env::var("PACELINE_DECISIONS") else { return };
    let count = std::env::var("PACELINE_EXPLANATIONS").map_or(1000, |count| count.parse().expect("a number"));
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let folder = entry.expect("an entry").path();
        if folder.join("table.json").exists() {
            all.extend(compare(&folder, count));
        }
    }
    for (name, figures) in &all {
        eprintln!("{name}: {figures:?}");
    }
    let sum = |of: fn(&Figures) -> usize| all.values().map(of).sum::<usize>();
    let (wrong, packets) = (sum(|f| f.wrong), sum(|f| f.packets));
    eprintln!("all: {packets}, right {}, unknown {}, wrong {wrong}", sum(|f| f.right), sum(|f| f.unknown));
    assert!(wrong * 100 <= packets, "{wrong} of {packets}");
}

fn open(path: &Path, round: usize) -> Object {
    let mut object = Object::open(path).expect("an object");
    size_maps(&mut object.specs_mut().maps);
    fill_from_seed(&mut object, round as u64);
    object
}

/// Packets with one content of the maps.
const ROUND: usize = 250;

fn compare(folder: &Path, packets: usize) -> BTreeMap<String, Figures> {
    let table = std::fs::read(folder.join("table.json")).expect("a table");
    let table: Vec<serde_json::Value> = serde_json::from_slice(&table).expect("a table");
    let places: Vec<_> = table.iter().map(Place::of).collect();
    let mut out = std::fs::File::create(folder.join("wrong.jsonl")).expect("a file");
    let mut all: BTreeMap<String, Figures> = BTreeMap::new();
    let names: Vec<_> =
        open(&folder.join("plain.o"), 0).programs().iter().map(|spec| spec.name.clone()).collect();
    for name in names {
        let short = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let figures = all.entry(format!("{short}/{name}")).or_default();
        for round in 0..packets.div_ceil(ROUND) {
            compare_round(folder, (&name, round), &places, figures, &mut out);
        }
    }
    all
}

/// Compares packets with one content of the maps.
fn compare_round(
    folder: &Path,
    (name, round): (&str, usize),
    places: &[Place],
    figures: &mut Figures,
    out: &mut std::fs::File,
) {
    let (plain, marked) = (open(&folder.join("plain.o"), round), open(&folder.join("prog.o"), round));
    let options = LoadOptions::default().engine(Engine::Plain);
    let (ours, theirs) = (plain.load(&options).expect("maps"), marked.load(&options).expect("maps"));
    if let Err(error) = ours.program(Some(name)) {
        eprintln!("{}: {name}: {error}", folder.display());
        return;
    }
    let log = theirs.maps().iter().find(|map| map.spec().name.ends_with(".decided")).expect("a record");
    let bound =
        |collection: &paceline::Collection| collection.program_unverified(Some(name)).expect("it binds");
    let mut explainer = Explainer::new(bound(&ours), plain.shared_btf());
    let mut program = Program {
        explainer: Explainer::new(bound(&theirs), None),
        log: Arc::clone(log),
        places,
        runs: 0,
        differs: false,
    };
    let mut hosts = (Host::new(0), Host::new(0));
    let inputs = packets_of(pool(), round as u64, ROUND);
    let meta = |data: &[u8]| FrameMeta { original_len: data.len() as u32, ..FrameMeta::default() };
    for input in &inputs {
        if !program.differs {
            program.decision(&Origin::default().arrival(&input.data, meta(&input.data)), &mut hosts.1);
        }
    }
    for (number, input) in inputs.iter().enumerate() {
        let packet = Origin::default().arrival(&input.data, meta(&input.data));
        let (run, decision) = program.decision(&packet, &mut hosts.1);
        program.reset(&[]);
        program.explainer.run(&packet, &mut hosts.1).expect("it fits");
        let explanation = explainer.explain(&packet, &mut hosts.0).expect("it fits");
        if explanation.outcome.fault.is_some()
            || !run.is_whole
            || explanation.outcome.verdict != run.outcome.verdict
            || explanation.outcome.returned != run.outcome.returned
        {
            figures.left_out += 1;
            continue;
        }
        let lines = decision.as_ref().map(|decision| {
            let all = std::iter::once(&decision.number).chain(&decision.also);
            all.flat_map(|one| program.lines(&run, *one)).collect::<Vec<_>>()
        });
        if is_right(&explanation, lines.as_deref()) {
            (figures.packets, figures.right) = (figures.packets + 1, figures.right + 1);
        } else if !program.differs {
            // Whatever is inverted, there are only faults: what decides is not known.
            figures.left_out += 1;
        } else if says_that_it_does_not_know(&explanation) {
            (figures.packets, figures.unknown) = (figures.packets + 1, figures.unknown + 1);
        } else {
            (figures.packets, figures.wrong) = (figures.packets + 1, figures.wrong + 1);
            let nearest = run.candidates(places);
            let nearest = nearest.iter().take(8).map(|one| {
                let place = &places[run.node(one.number).expect("a node").place];
                format!("{}:{} {:?} {}", place.kind, place.first, one.standing, place.sort)
            });
            let json = serde_json::json!({
                "program": name, "round": round, "packet": number, "lines": lines, "runs": program.runs,
                "nearest": nearest.collect::<Vec<_>>(), "sentence": explanation.sentence(),
                "data": input.data.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
            });
            writeln!(out, "{json}").expect("it is written");
        }
    }
}

/// Whether the line that is named is one of a decision, or none where nothing decides.
fn is_right(explanation: &Explanation, lines: Option<&[(String, u32, u32)]>) -> bool {
    let cause = explanation.cause();
    let line = cause.filter(|cause| cause.after.is_none()).and_then(|cause| explanation.line(cause.at));
    match (line, lines) {
        (None, None) => cause.is_none(),
        (Some(line), Some(lines)) => lines
            .iter()
            .any(|(file, a, b)| line.file.ends_with(file.as_str()) && (*a..=*b).contains(&line.line)),
        _ => false,
    }
}

fn says_that_it_does_not_know(explanation: &Explanation) -> bool {
    match explanation.cause() {
        Some(cause) => cause.after.is_some(),
        None => !explanation.is_known,
    }
}
