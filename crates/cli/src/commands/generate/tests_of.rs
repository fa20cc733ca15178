//! The inputs as test files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use paceline::Object;
use paceline::generate::{Confirmed, Element, Event, Goal, Target, Variant};
use paceline::packet::{build, to_text};

use serde_json::{Value as Json, json};

use super::folder::{Folder, FolderError, MARK, file_name};
use super::found::Found;
use crate::inputs::{contents, expected, toml};
use crate::maps::MapFile;

/// Most elements of a map that are written into the test itself; others get a file of their own.
const INLINE: usize = 64;

/// An input with its goal, and what is special about it.
type Wanted<'f> = (Goal, Option<Variant>, &'f Confirmed);

/// A file that is written: its name and its text.
type Text = (String, String);

/// Writes the tests of all programs into a folder.
pub(super) fn write(
    folder: &Path,
    object: &Path,
    given: &[MapFile],
    of: &Object,
    all: &[Found],
) -> Result<usize, FolderError> {
    let target = Folder::open(folder)?;
    let mut files = Vec::new();
    for found in all {
        files.extend(texts(folder, object, given, of, found));
    }
    let programs: Vec<_> = all.iter().map(|found| file_name(&found.program.name)).collect();
    target.replace(&programs, &files)?;
    Ok(files.len())
}

/// The test files of a program, one for each seed, and the files of large maps.
fn texts(folder: &Path, object: &Path, given: &[MapFile], of: &Object, found: &Found) -> Vec<Text> {
    let mut by_seed: BTreeMap<Option<u64>, Vec<Wanted<'_>>> = BTreeMap::new();
    for wanted in found.inputs() {
        by_seed.entry(wanted.2.input.seed).or_default().push(wanted);
    }
    let mut texts = Vec::new();
    for (seed, inputs) in by_seed {
        let program = &found.program.name;
        let path = relative(folder, object);
        let mut text =
            format!("{MARK}\nobject = {}\n", toml::string(&format!("{}:{program}", path.display())));
        if let Some(seed) = seed {
            let _ = writeln!(text, "seed = {seed}");
        }
        for file in given {
            let path = relative(folder, &file.path);
            let _ = writeln!(
                text,
                "maps.{} = {}",
                toml::string(&file.map),
                toml::string(&path.display().to_string())
            );
        }
        for wanted in inputs {
            texts.extend(test(&mut text, of, found, wanted));
        }
        let program = file_name(program);
        let name = match seed {
            Some(seed) => format!("{program}.seed-{seed}.test.toml"),
            None => format!("{program}.test.toml"),
        };
        texts.push((name, text));
    }
    texts
}

/// Adds a test; returns the files that it needs.
fn test(text: &mut String, of: &Object, found: &Found, wanted: Wanted<'_>) -> Vec<Text> {
    let (goal, variant, confirmed) = wanted;
    let name = found.purpose(goal, variant);
    let input = &confirmed.input;
    let mut files = Vec::new();
    let Some(seconds) = toml::seconds(input.time_ns) else {
        let _ = writeln!(text, "\n# {name}: at {} ns, a time that tests cannot say.", input.time_ns);
        return files;
    };
    let _ = writeln!(text, "\n[[test]]\nname = {}", toml::string(&name));
    let source = found.text(goal.slot());
    if !source.is_empty() {
        let _ = writeln!(text, "# {}", source.replace(|c: char| c.is_control(), " "));
    }
    let _ = writeln!(text, "packet = {}", packet(&input.packet));
    if seconds > 0.0 {
        let _ = writeln!(text, "wait = {seconds:?}");
    }
    if input.ingress != 0 {
        let _ = writeln!(text, "ingress = {}", input.ingress);
    }
    if input.queue != 0 {
        let _ = writeln!(text, "queue = {}", input.queue);
    }
    for (map, elements) in &input.maps {
        let Some(name) = of.maps().get(*map).map(|spec| spec.name.clone()) else { continue };
        let json = contents(of, *map, elements);
        let inline = toml::value(&json).filter(|_| elements.len() <= INLINE);
        let value = inline.unwrap_or_else(|| {
            let (program, map) = (file_name(&found.program.name), file_name(&name));
            let file = format!("{program}.{map}.{}.json", part(goal, variant));
            files.push((file.clone(), json.to_string()));
            toml::string(&file)
        });
        let _ = writeln!(text, "maps.{} = {value}", toml::string(&name));
    }
    expectations(text, of, confirmed);
    files
}

/// The part of a file's name that names an input.
fn part(goal: Goal, variant: Option<Variant>) -> String {
    let slot = goal.slot();
    let goal = match goal {
        Goal::Side(side) => format!("slot-{slot}-{}", u8::from(side.taken)),
        Goal::Return { verdict, .. } => format!("slot-{slot}-{}", verdict.name()),
        Goal::Operation { meets, .. } => format!("slot-{slot}-{meets:?}"),
        Goal::Path { number, .. } => format!("slot-{slot}-path-{number}"),
    };
    match variant {
        None => goal,
        Some(Variant::Filled) => format!("{goal}-filled"),
        Some(Variant::Inverted) => format!("{goal}-inverted"),
        Some(Variant::At(edge)) => format!("{goal}-{edge:?}"),
    }
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
            let absent = contents(of, map, &gone);
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

/// A path from a folder to a file, where both exist; the file's own path otherwise.
fn relative(folder: &Path, file: &Path) -> PathBuf {
    let (Ok(folder), Ok(target)) = (folder.canonicalize(), file.canonicalize()) else {
        return file.to_owned();
    };
    let common = folder.components().zip(target.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    up.chain(target.components().skip(common)).collect()
}
