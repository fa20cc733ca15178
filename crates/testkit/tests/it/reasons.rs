//! The place that an explanation names is the one at which the program says, by counters of its own, that it decided.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use paceline::capture::CaptureReader;
use paceline::explain::Explainer;
use paceline::scenario::Origin;
use paceline::{Burst, Engine, Host, LoadOptions, Map, Object, Verdict};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A source in C that returns members of an enumeration as its reasons.
struct Source {
    lines: Vec<String>,
}

impl Source {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a source");
        Self { lines: text.lines().map(str::to_owned).collect() }
    }

    /// The members of `enum reason`, in order; a member with a value of its own is another name.
    fn reasons(&self) -> Vec<String> {
        let members = self.lines.iter().skip_while(|line| *line != "enum reason {").skip(1);
        let members = members.take_while(|line| *line != "};").filter(|line| !line.contains('='));
        // The last member is their number.
        let mut names: Vec<_> = members.map(|line| line.trim().trim_end_matches(',').to_owned()).collect();
        names.pop();
        names
    }

    /// The lines that decide for a reason: for each line that returns it, the statement that this line belongs to.
    fn lines_of(&self, reason: &str) -> BTreeSet<usize> {
        let returns = |line: &str| {
            let words: Vec<_> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            words.contains(&"return") && words.contains(&reason)
        };
        let found = (1..).zip(&self.lines).filter(|(_, line)| returns(line));
        found.flat_map(|(number, _)| self.statement(number)).flatten().collect()
    }

    /// The statement that decides whether a line runs, with the functions whose result it tests.
    fn statement(&self, number: usize) -> Vec<RangeInclusive<usize>> {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let line = |number: usize| self.lines[number - 1].as_str();
        let before =
            (1..number).rev().filter(|n| !line(*n).trim().is_empty() && !line(*n).trim().starts_with("//"));
        let begins = |n: &usize| {
            let is_control =
                ["if (", "for (", "switch ("].iter().any(|word| line(*n).trim().starts_with(word));
            is_control && indent(line(*n)) < indent(line(number))
        };
        // After a loop, it is the loop that ended.
        let after = before
            .clone()
            .next()
            .filter(|n| line(*n).trim() == "}" && indent(line(*n)) == indent(line(number)));
        let start = match after {
            Some(end) => (1..end)
                .rev()
                .find(|n| indent(line(*n)) == indent(line(number)) && !line(*n).trim().is_empty()),
            None => before.clone().find(begins).filter(|_| !line(number).contains('?')),
        };
        let range = start.unwrap_or(number)..=number;
        let text = range.clone().map(line).collect::<String>();
        let mut ranges = vec![range];
        // A setting is the same for all packets: what surrounds it decides.
        let setting =
            line(start.unwrap_or(number)).trim().strip_prefix("if (").and_then(|rest| rest.strip_suffix(')'));
        let is_setting = |name: &str| {
            self.lines
                .iter()
                .any(|line| line.starts_with("const volatile") && line.contains(&format!(" {name} =")))
        };
        if let Some(start) = start.filter(|_| setting.is_some_and(is_setting)) {
            ranges.extend(self.statement(start));
        }
        // What a check of a pointer tests was returned by `take`.
        let called = ["is_denied", "is_martian_v4"].into_iter().filter(|name| text.contains(name));
        for name in called.chain(text.contains("if (!").then_some("take")) {
            let start = self
                .lines
                .iter()
                .position(|line| line.contains(&format!(" {name}(")) || line.contains(&format!("*{name}(")));
            let start = start.expect("its definition") + 1;
            let end = (start..).find(|n| line(*n) == "}").expect("its end");
            ranges.push(start..=end);
        }
        ranges
    }
}

/// How often each reason was counted.
fn counts(map: &Map, reasons: usize) -> Vec<u64> {
    let key = |reason: usize| (reason as u32).to_ne_bytes();
    let values = (0..reasons).map(|reason| map.lookup(&key(reason)).expect("an element"));
    // Each CPU has a count of packets and one of bytes.
    let packets = |value: &[u8]| {
        value.chunks(16).map(|cpu| u64::from_ne_bytes(cpu[..8].try_into().expect("8 bytes"))).sum()
    };
    values.map(|value| packets(&value)).collect()
}

/// The counters of the firewall say of each packet why it was dropped.
#[test]
fn the_firewall_was_left_where_it_counted() {
    let source = Source::read(&examples().join("firewall.bpf.c"));
    let reasons = source.reasons();
    let object = Object::open(examples().join("firewall.o")).expect("an object");
    let collection = object.load(&LoadOptions::default().engine(Engine::Plain)).expect("maps");
    let program = collection.program_unverified(Some("firewall")).expect("it binds");
    let counters = collection.maps().iter().find(|map| map.spec().name == "counters").expect("counters");
    let mut explainer = Explainer::new(program, object.shared_btf());
    let file = std::fs::File::open(examples().join("traffic.pcap")).expect("a capture");
    let (mut reader, mut burst, mut host) =
        (CaptureReader::new(file).expect("a capture"), Burst::new(1), Host::default());
    let (mut dropped, mut wrong, mut number) = (0, Vec::new(), 0);
    while reader.fill(&mut burst).expect("a packet") > 0 {
        number += 1;
        let before = counts(counters, reasons.len());
        let bytes = burst.frame(0).packet().to_vec();
        let packet = Origin::default().arrival(&bytes, *burst.frame(0).meta());
        let explanation = explainer.explain(&packet, &mut host).expect("it fits");
        let after = counts(counters, reasons.len());
        let counted =
            before.iter().zip(&after).position(|(before, after)| before != after).expect("a reason");
        if explanation.outcome.verdict != Verdict::Drop {
            continue;
        }
        dropped += 1;
        let lines = source.lines_of(&reasons[counted]);
        let line = explanation.line(explanation.decided_at()).map_or(0, |line| line.line as usize);
        if !lines.contains(&line) {
            wrong.push(format!(
                "packet {number}, {}, {lines:?}: {}",
                reasons[counted],
                explanation.sentence()
            ));
        }
    }
    assert_eq!(dropped, 115);
    assert!(wrong.is_empty(), "{} of {dropped}: {}", wrong.len(), wrong.join("\n"));
}
