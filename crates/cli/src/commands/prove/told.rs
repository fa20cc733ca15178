//! Proofs as text, JSON and a test.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use paceline::generate::Confirmed;
use paceline::packet::to_text;
use paceline::prove::{Proof, Property};
use paceline::{Object, ProgramSpec};
use serde_json::{Value as Json, json};

use crate::common::console::shown;
use crate::inputs::{Unexplored, UnsaidError, bounds_json, case, contents, followed, toml, variables_given};
use crate::maps::Form;
use crate::object::ObjectArgs;

/// A program with what is known of the property.
pub(super) struct Told {
    pub(super) program: ProgramSpec,
    pub(super) proof: Proof,
    pub(super) time: Duration,
}

/// What is known of all programs.
pub(super) struct Report<'r> {
    pub(super) property: &'r Property,
    /// Name of the object.
    pub(super) name: &'r str,
    pub(super) object: &'r Object,
    pub(super) told: Vec<Told>,
    /// Programs of which nothing is known.
    pub(super) unexplored: Vec<Unexplored>,
    /// Most inputs that are looked for.
    pub(super) most: usize,
}

impl Report<'_> {
    pub(super) fn is_proved(&self) -> bool {
        self.unexplored.is_empty() && self.told.iter().all(|told| told.proof.is_proved())
    }

    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.told.iter().try_for_each(|told| self.write_program(out, told))
    }

    fn write_program(&self, out: &mut dyn Write, told: &Told) -> io::Result<()> {
        let Proof { refuting, unconfirmed, left, is_cut, paths, bounds, vacuous } = &told.proof;
        let what = match (refuting.len(), told.proof.is_proved()) {
            (0, true) => format!("proved for {bounds}"),
            (0, false) => "not proved, and no input was found with which it does not hold".to_owned(),
            (1, _) => "does not hold with 1 input".to_owned(),
            (count, _) => format!("does not hold with {count} inputs"),
        };
        let name = format!("{}:{}", self.name, told.program.name);
        writeln!(out, "{}: {what}; {} in {:.1?}", shown(&name), followed(*paths), told.time)?;
        for premise in vacuous {
            writeln!(out, "  warning: this says nothing of any run: `{}` never holds", shown(premise))?;
        }
        for confirmed in refuting {
            self.write_input(out, confirmed)?;
        }
        if *is_cut {
            writeln!(out, "  and perhaps with more: the search ends after {}", self.most)?;
        }
        if !left.is_empty() {
            writeln!(out, "  not known of paths from:")?;
        }
        let lines: BTreeSet<_> = left
            .iter()
            .map(|place| format!("    {}  [{}]", at(&told.program, place.slot), place.why))
            .collect();
        lines.iter().try_for_each(|line| writeln!(out, "{}", shown(line)))?;
        for input in unconfirmed {
            writeln!(out, "  FAILED: an input with which it holds: {}", shown(&to_text(&input.packet)))?;
        }
        Ok(())
    }

    fn write_input(&self, out: &mut dyn Write, confirmed: &Confirmed) -> io::Result<()> {
        let input = &confirmed.input;
        writeln!(out, "  {}: {}", confirmed.verdict.name(), shown(&to_text(&input.packet)))?;
        if confirmed.bytes != input.packet {
            writeln!(out, "    out: {}", shown(&to_text(&confirmed.bytes)))?;
        }
        for (name, elements) in self.maps(confirmed, Form::Written) {
            writeln!(out, "    with {} = {}", shown(&name), shown(&elements.to_string()))?;
        }
        Ok(())
    }

    /// The elements that maps have before the run, by the maps' names.
    fn maps(&self, confirmed: &Confirmed, form: Form) -> serde_json::Map<String, Json> {
        let maps = confirmed.input.maps.iter().filter_map(|(map, elements)| {
            let spec = self.object.maps().get(*map)?;
            Some((spec.name.clone(), contents(self.object, *map, elements, form)))
        });
        maps.collect()
    }

    pub(super) fn to_json(&self) -> Json {
        let unexplored = self.unexplored.iter().map(|unexplored| {
            let mut json = unexplored.to_json();
            json["proved"] = false.into();
            json
        });
        let programs: Vec<_> = self.told.iter().map(|told| self.program(told)).chain(unexplored).collect();
        json!({ "object": self.name, "property": self.property.to_string(), "programs": programs })
    }

    fn program(&self, told: &Told) -> Json {
        let proof = &told.proof;
        let refuted = proof.refuting.iter().map(|confirmed| {
            let input = &confirmed.input;
            json!({
                "packet": hex(&input.packet),
                "maps": self.maps(confirmed, Form::Typed),
                "time_ns": input.time_ns,
                "seed": input.seed,
                "ingress": input.ingress,
                "queue": input.queue,
                "verdict": confirmed.verdict.name(),
                "returns": confirmed.returned,
                "out": hex(&confirmed.bytes),
            })
        });
        let left = proof.left.iter().map(|place| {
            json!({ "place": at(&told.program, place.slot), "slot": place.slot, "reason": place.why.to_string() })
        });
        json!({
            "program": told.program.name,
            "proved": proof.is_proved(),
            "refuted": refuted.collect::<Vec<_>>(),
            "left": left.collect::<Vec<_>>(),
            "failed": proof.unconfirmed.len(),
            "paths": proof.paths,
            "bounds": bounds_json(&proof.bounds),
            "vacuous": proof.vacuous,
        })
    }

    /// A test file of the first input with which the property does not hold, at a path.
    pub(super) fn test(&self, path: &Path, args: &ObjectArgs) -> Result<Option<String>, UnsaidError> {
        let first = |told: &Told| Some((told.program.name.clone(), told.proof.refuting.first()?.clone()));
        let Some((program, confirmed)) = self.told.iter().find_map(first) else { return Ok(None) };
        let object = format!("{}:{program}", from(path, Path::new(self.name)));
        let mut text = format!(
            "# An input with which this does not hold: {}\nobject = {}\n",
            self.property.to_string().replace(|c: char| c.is_control(), " "),
            toml::string(&object)
        );
        if let Some(seed) = confirmed.input.seed {
            text += &format!("seed = {seed}\n");
        }
        text += &variables_given(args, self.object, &|file| from(path, file))?;
        let inline = &mut |_: &str, json: &Json, _: usize| toml::value(json).unwrap_or_default();
        case(&mut text, self.object, ("the property does not hold", ""), &confirmed, None, inline);
        Ok(Some(text))
    }
}

/// File and line of a slot.
fn at(program: &ProgramSpec, slot: usize) -> String {
    match program.line_of(slot).filter(|line| line.line > 0) {
        Some(line) => format!("{}:{}", line.file.rsplit('/').next().unwrap_or(&line.file), line.line),
        None => format!("{}+{slot}", program.name),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A path as a test file names it: as it is if that is in this folder, absolute otherwise.
fn from(file: &Path, path: &Path) -> String {
    let is_here = file.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    match std::path::absolute(path) {
        Ok(absolute) if !is_here => absolute.display().to_string(),
        _ => path.display().to_string(),
    }
}
