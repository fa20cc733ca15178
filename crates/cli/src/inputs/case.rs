//! Inputs as tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use paceline::Object;
use paceline::generate::{Confirmed, Element, Event, Target};
use paceline::packet::{build, to_text};
use serde_json::{Value as Json, json};

use super::elements::{contents, expected};
use super::toml;
use crate::maps::Form;

/// Adds a test of an input to a test file: its name, a comment, the input, and what comes out. `beside` gives the text for the elements of
/// a map, by its name, their JSON and their number, and `network` that of the network, if it needs one. A test at a time that test files cannot say becomes a comment.
pub(crate) fn case(
    text: &mut String,
    of: &Object,
    (name, comment): (&str, &str),
    confirmed: &Confirmed,
    network: Option<&str>,
    beside: &mut dyn FnMut(&str, &Json, usize) -> String,
) {
    let input = &confirmed.input;
    let Some(seconds) = toml::seconds(input.time_ns) else {
        let _ = writeln!(text, "\n# {name}: at {} ns, a time that tests cannot say.", input.time_ns);
        return;
    };
    let _ = writeln!(text, "\n[[test]]\nname = {}", toml::string(name));
    if !comment.is_empty() {
        let _ = writeln!(text, "# {}", comment.replace(|c: char| c.is_control(), " "));
    }
    let _ = writeln!(text, "packet = {}", packet(&input.packet));
    if seconds > 0.0 {
        let _ = writeln!(text, "wait = {seconds:?}");
    }
    if input.ingress != 1 {
        let _ = writeln!(text, "ingress = {}", input.ingress);
    }
    if input.queue != 0 {
        let _ = writeln!(text, "queue = {}", input.queue);
    }
    if let Some(network) = network {
        let _ = writeln!(text, "network = {network}");
    }
    for (map, elements) in &input.maps {
        let Some(name) = of.maps().get(*map).map(|spec| spec.name.clone()) else { continue };
        let value = beside(&name, &contents(of, *map, elements, Form::Written), elements.len());
        let _ = writeln!(text, "maps.{} = {value}", toml::string(&name));
    }
    expectations(text, of, confirmed);
}

/// The expectations of a test: verdict, packet, target, changed elements, events.
fn expectations(text: &mut String, of: &Object, confirmed: &Confirmed) {
    let _ = writeln!(text, "verdict = {}", toml::string(confirmed.verdict.name()));
    if confirmed.bytes == confirmed.input.packet {
        let _ = writeln!(text, "out = \"same\"");
    } else {
        let _ = writeln!(text, "out = {}", packet(&confirmed.bytes));
    }
    match &confirmed.redirect {
        Some(Target::Interface { index, .. }) => drop(writeln!(text, "redirect = {index}")),
        Some(Target::Element { map, key }) => {
            let _ = writeln!(text, "redirect = {{ map = {}, key = {key} }}", toml::string(map));
        }
        None => {}
    }
    after(text, of, confirmed);
    if !confirmed.events.is_empty() {
        let event = |Event { map, data, .. }: &Event| {
            let bytes: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{{ map = {}, bytes = \"{bytes}\" }}", toml::string(map))
        };
        let events: Vec<_> = confirmed.events.iter().map(event).collect();
        let _ = writeln!(text, "events = [{}]", events.join(", "));
    }
}

/// The elements that the run changed.
fn after(text: &mut String, of: &Object, confirmed: &Confirmed) {
    let mut changed: BTreeMap<usize, (Vec<Element>, Vec<Element>)> = BTreeMap::new();
    for ((map, key), value) in &confirmed.changes {
        let Some(spec) = of.maps().get(*map) else { continue };
        let (there, gone) = changed.entry(*map).or_default();
        match value {
            Some(value) => {
                let value = value.iter().copied().take(spec.value_size as usize).collect();
                there.push(Element { key: key.clone(), value });
            }
            None => gone.push(Element { key: key.clone(), value: vec![0; spec.value_size as usize] }),
        }
    }
    for (map, (there, gone)) in changed {
        let Some(spec) = of.maps().get(map) else { continue };
        let mut json = if there.is_empty() { Json::Array(Vec::new()) } else { expected(of, map, &there) };
        if let Json::Array(elements) = &mut json {
            let absent = contents(of, map, &gone, Form::Written);
            for element in absent.as_array().into_iter().flatten() {
                elements.push(json!({ "key": element["key"], "absent": true }));
            }
        }
        // Numbers that TOML does not have are left out.
        if let Some(value) = toml::value(&json) {
            let _ = writeln!(text, "after.{} = {value}", toml::string(&spec.name));
        }
    }
}

/// The words of a packet, if they make the same packet again.
fn words(bytes: &[u8]) -> Option<String> {
    let words = to_text(bytes);
    let is_same = build(&words).is_ok_and(|built| built == bytes);
    // A brace is a variable to test files.
    (is_same && !words.contains('{')).then_some(words)
}

fn packet(bytes: &[u8]) -> String {
    match words(bytes) {
        Some(words) => toml::string(&words),
        None => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{{ hex = \"{hex}\" }}")
        }
    }
}
