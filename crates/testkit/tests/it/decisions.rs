//! Explanations name the conditions that decide by programs that record their own dependences: their sources were instrumented, by reading
//! the source alone, and each condition can be inverted from outside. The explained object is the one without instrumentation.

use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use paceline::explain::Explainer;
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

struct Candidate {
    number: u32,
    standing: Standing,
    can_turn: bool,
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
            if place.kind != "cond" || place.subject.is_empty() || (&place.subject, &place.file) != (&of.subject, &of.file) {
                break;
            }
            found.push(next);
            next = before.control;
        }
        found
    }

    /// What the only part of a condition is made of.
    fn made_of(&self, node: &Node) -> Option<[u32; 3]> {
        Some(self.node(node.operands[0])?.operands)
    }

    /// Whether an earlier condition of the path has told already what a condition tests.
    fn is_implied(&self, places: &[Place], node: &Node) -> bool {
        let of = &places[node.place];
        let mut next = node.control;
        while let Some(before) = self.node(next) {
            let place = &places[before.place];
            if place.kind == "cond"
                && !place.subject.is_empty()
                && place.subject == of.subject
                && place.file == of.file
                && (place.equal == Some(before.value) || place.equal == Some(2))
                && self.made_of(before) == self.made_of(node)
            {
                return true;
            }
            next = before.control;
        }
        false
    }

    /// Conditions, tail calls and values from outside that the end of the run depends on, nearest first.
    fn candidates(&self, places: &[Place]) -> Vec<Candidate> {
        let (mut work, mut seen, mut found) = (BinaryHeap::new(), HashSet::new(), Vec::new());
        work.push((self.returned & !OUTSIDE, true));
        while let Some((number, is_value)) = work.pop() {
            let Some(node) = self.node(number).filter(|_| seen.insert(number)) else { continue };
            let place = &places[node.place];
            let is_outside = node.operands.iter().any(|operand| operand & OUTSIDE != 0);
            work.push((node.control, false));
            let own = node.operands.iter().any(|operand| *operand == OUTSIDE);
            let standing = match (place.sort.as_str(), place.weak) {
                ("setting", _) => Standing::Weak,
                (_, Some(weak)) if weak == node.value => Standing::Weak,
                _ => Standing::Strong,
            };
            match place.kind.as_str() {
                "cond" if self.is_implied(places, node) => continue,
                "cond" if is_outside && place.sort != "null" && place.sort != "code" => {
                    found.push(Candidate { number, standing, can_turn: true });
                    continue;
                }
                "tail" => found.push(Candidate { number, standing, can_turn: false }),
                "value" if own && is_value => {
                    found.push(Candidate { number, standing: Standing::Strong, can_turn: false });
                }
                _ => {}
            }
            let value = is_value && place.kind != "cond";
            work.extend(node.operands.iter().map(|operand| (operand & !OUTSIDE, value)));
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
        if !candidate.can_turn {
            return true;
        }
        let Some(node) = run.node(candidate.number).copied() else { return false };
        let place = &self.places[node.place];
        let others = match place.cases {
            0 => vec![1 - node.value.min(1)],
            cases => (0..cases).collect(),
        };
        for other in others {
            if self.runs >= MOST_RUNS || inverted.len() >= 15 {
                return false;
            }
            inverted.push((candidate.number, other));
            let turned = self.rehearse(packet, host, inverted);
            let differs = turned.outcome.fault.is_some() || !turned.outcome.fares_as(&run.outcome);
            let decides = differs || {
                let later = turned.candidates(self.places).into_iter();
                let later = later.filter(|later| {
                    later.number > candidate.number && later.standing == Standing::Strong
                });
                let later: Vec<_> = later.collect();
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
            if is_first || place.kind == "cond" || (place.kind == "value" && place.boolean) {
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
        println!("{name}: {figures:?}");
    }
    let sum = |of: fn(&Figures) -> usize| all.values().map(of).sum::<usize>();
    let (wrong, packets) = (sum(|f| f.wrong), sum(|f| f.packets));
    println!("all: {packets}, right {}, unknown {}, wrong {wrong}", sum(|f| f.right), sum(|f| f.unknown));
    assert!(wrong * 100 <= packets, "{wrong} of {packets}");
}

fn open(path: &Path, round: usize) -> Object {
    let mut object = Object::open(path).expect("an object");
    size_maps(&mut object.specs_mut().maps);
    fill_from_seed(&mut object, round as u64);
    object
}

fn compare(folder: &Path, packets: usize) -> BTreeMap<String, Figures> {
    const ROUND: usize = 250;
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
            let (plain, marked) = (open(&folder.join("plain.o"), round), open(&folder.join("prog.o"), round));
            let options = LoadOptions::default().engine(Engine::Plain);
            let (ours, theirs) = (plain.load(&options).expect("maps"), marked.load(&options).expect("maps"));
            if let Err(error) = ours.program(Some(&name)) {
                eprintln!("{}: {name}: {error}", folder.display());
                break;
            }
            let log = theirs.maps().iter().find(|map| map.spec().name.ends_with(".decided")).expect("a record");
            let bound = |collection: &paceline::Collection| {
                collection.program_unverified(Some(&name)).expect("it binds")
            };
            let mut explainer = Explainer::new(bound(&ours), plain.shared_btf());
            let mut program = Program {
                explainer: Explainer::new(bound(&theirs), None),
                log: Arc::clone(log),
                places: &places,
                runs: 0,
            };
            let mut hosts = (Host::new(0), Host::new(0));
            for (number, input) in packets_of(pool(), round as u64, ROUND).iter().enumerate() {
                let meta = FrameMeta { original_len: input.data.len() as u32, ..FrameMeta::default() };
                let packet = Origin::default().arrival(&input.data, meta);
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
                figures.packets += 1;
                let line = explanation.cause().and_then(|cause| explanation.line(cause.at));
                let lines = decision.as_ref().map(|decision| program.lines(&run, decision.number));
                let is_right = match (line, &lines) {
                    (None, None) => true,
                    (Some(line), Some(lines)) => lines
                        .iter()
                        .any(|(file, a, b)| line.file.ends_with(file.as_str()) && (*a..=*b).contains(&line.line)),
                    _ => false,
                };
                if is_right {
                    figures.right += 1;
                } else if explanation.cause().is_none() && !explanation.is_known {
                    figures.unknown += 1;
                } else {
                    figures.wrong += 1;
                    let nearest: Vec<_> = run
                        .candidates(&places)
                        .iter()
                        .take(8)
                        .map(|one| {
                            let place = &places[run.node(one.number).expect("a node").place];
                            format!("{}:{} {:?} {}", place.kind, place.first, one.standing, place.sort)
                        })
                        .collect();
                    let json = serde_json::json!({
                        "program": name, "round": round, "packet": number, "lines": lines, "runs": program.runs,
                        "nearest": nearest, "sentence": explanation.sentence(),
                        "data": input.data.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
                    });
                    writeln!(out, "{json}").expect("it is written");
                }
            }
        }
    }
    all
}
