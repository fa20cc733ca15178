//! The inputs as test files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use paceline::Object;
use paceline::generate::{Confirmed, Goal, Variant, network_text};

use serde_json::Value as Json;

use super::folder::{Folder, MARK, file_name};
use super::found::Found;
use crate::common::failure::Failure;
use crate::inputs::{case, toml, variables_given};
use crate::object::ObjectArgs;

/// Most elements of a map that are written into the test itself; others get a file of their own.
const INLINE: usize = 64;

/// An input with its goal, and what is special about it.
type Wanted<'f> = (Goal, Option<Variant>, &'f Confirmed);

/// A file that is written: its name and its text.
type Text = (String, String);

/// The files of networks, by their text.
type Networks = BTreeMap<String, String>;

/// Writes the tests of all programs into a folder.
pub(super) fn write(
    folder: &Path,
    object: &Path,
    args: &ObjectArgs,
    of: &Object,
    all: &[Found],
) -> Result<usize, Failure> {
    let target = Folder::open(folder)?;
    let given = variables_given(args, of, &|path| relative(folder, path).display().to_string())?;
    let mut files = Vec::new();
    for found in all {
        files.extend(texts(folder, object, &given, of, found));
    }
    let programs: Vec<_> = all.iter().map(|found| file_name(&found.program.name)).collect();
    target.replace(&programs, &files)?;
    Ok(files.len())
}

/// The test files of a program, one for each seed, and the files of large maps.
fn texts(folder: &Path, object: &Path, given: &str, of: &Object, found: &Found) -> Vec<Text> {
    let mut by_seed: BTreeMap<Option<u64>, Vec<Wanted<'_>>> = BTreeMap::new();
    for wanted in found.inputs() {
        by_seed.entry(wanted.2.input.seed).or_default().push(wanted);
    }
    let (mut texts, mut networks) = (Vec::new(), Networks::new());
    for (seed, inputs) in by_seed {
        let program = &found.program.name;
        let path = relative(folder, object);
        let mut text =
            format!("{MARK}\nobject = {}\n", toml::string(&format!("{}:{program}", path.display())));
        if let Some(seed) = seed {
            let _ = writeln!(text, "seed = {seed}");
        }
        text.push_str(given);
        for wanted in inputs {
            texts.extend(test(&mut text, of, found, wanted, &mut networks));
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
fn test(
    text: &mut String,
    of: &Object,
    found: &Found,
    wanted: Wanted<'_>,
    networks: &mut Networks,
) -> Vec<Text> {
    let (goal, variant, confirmed) = wanted;
    let name = found.purpose(goal, variant);
    let mut files = Vec::new();
    let network = confirmed.input.route.as_ref().map(|route| {
        let text = network_text(route);
        let file = networks.entry(text.clone()).or_insert_with(|| {
            let file = format!("{}.{}.network.json", file_name(&found.program.name), part(goal, variant));
            files.push((file.clone(), text));
            file
        });
        toml::string(file)
    });
    let beside = &mut |map: &str, json: &Json, elements: usize| {
        let inline = toml::value(json).filter(|_| elements <= INLINE);
        inline.unwrap_or_else(|| {
            let (program, map) = (file_name(&found.program.name), file_name(map));
            let file = format!("{program}.{map}.{}.json", part(goal, variant));
            files.push((file.clone(), json.to_string()));
            toml::string(&file)
        })
    };
    case(text, of, (&name, found.text(goal.slot())), confirmed, network.as_deref(), beside);
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
        Some(Variant::Whole) => format!("{goal}-whole"),
        Some(Variant::AtJump(slot, edge)) => format!("{goal}-{edge:?}-{slot}"),
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
