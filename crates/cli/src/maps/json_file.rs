//! Map files as text: JSON of which every part remembers where it is.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use paceline::NoProgram;
use serde_json::value::RawValue;

use super::error::{MapFailure, MapFileError, Place, Problem};
use crate::common::files::Taken;

/// A map and a file with its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapFile {
    pub(crate) map: String,
    pub(crate) path: PathBuf,
}

/// A map file that was read and is JSON.
pub(crate) struct JsonFile {
    /// Map to fill.
    pub(super) map: String,
    /// For messages.
    name: String,
    text: Rc<str>,
    /// The part of the text that is about the map.
    range: Range<usize>,
    /// Whether the map gets exactly the file's contents.
    pub(super) replaces: bool,
    /// The text's line and column in a file that is no JSON itself.
    within: Option<(usize, usize)>,
}

/// Reads all map files first, so that an error in the last one is reported before any map changes.
pub(crate) fn read_files(files: &[MapFile]) -> Result<Vec<JsonFile>, MapFileError> {
    files.iter().map(JsonFile::read).collect()
}

/// The files, which no output may replace.
pub(crate) fn identities(files: &[MapFile]) -> impl Iterator<Item = Taken> {
    files.iter().filter_map(|file| {
        Taken::of_path(&file.path, &format!("the file {} of map {}", file.path.display(), file.map))
    })
}

impl JsonFile {
    fn read(file: &MapFile) -> Result<Self, MapFileError> {
        let name = file.path.display().to_string();
        let failed = |source| MapFileError::new(&name, source);
        let text = fs::read_to_string(&file.path).map_err(|error| failed(MapFailure::Io(error)))?;
        serde_json::from_str::<&RawValue>(&text).map_err(|error| failed(MapFailure::Syntax(error)))?;
        Ok(Self { within: None, ..Self::of_text(&file.map, &name, text) })
    }

    /// JSON of a part of a file, with its line and column there.
    pub(crate) fn inline(map: &str, name: &str, text: String, within: (usize, usize)) -> Self {
        Self { within: Some(within), ..Self::of_text(map, name, text) }
    }

    fn of_text(map: &str, name: &str, text: String) -> Self {
        let range = 0..text.len();
        let (map, name) = (map.to_owned(), name.to_owned());
        Self { map, name, text: text.into(), range, replaces: false, within: None }
    }

    /// A file about several maps, which is JSON.
    pub(super) fn of_several(path: &Path) -> Result<Self, MapFileError> {
        Self::read(&MapFile { map: String::new(), path: path.to_owned() })
    }

    /// A part of this file as the whole contents of a map.
    pub(super) fn about(&self, map: &str, part: &Part<'_>) -> Self {
        let start = self.offset(part.raw);
        let range = start..start + part.raw.get().len();
        let (map, name) = (map.to_owned(), self.name.clone());
        Self { map, name, text: Rc::clone(&self.text), range, replaces: true, within: None }
    }

    /// The offset of a part of the text.
    fn offset(&self, raw: &RawValue) -> usize {
        // The value borrows from the text.
        raw.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }

    /// The map that it is for.
    pub(crate) fn map(&self) -> &str {
        &self.map
    }

    /// Adds the file's name to an error.
    pub(super) fn failure(&self, source: MapFailure) -> MapFileError {
        MapFileError::new(&self.name, source)
    }

    pub(super) fn root(&self) -> Result<Part<'_>, MapFailure> {
        let text = self.text.get(self.range.clone()).unwrap_or_default();
        let raw = serde_json::from_str(text).map_err(MapFailure::Syntax)?;
        Ok(Part { file: self, raw, within: Vec::new() })
    }
}

/// A value in a map file.
#[derive(Clone)]
pub(super) struct Part<'a> {
    file: &'a JsonFile,
    raw: &'a RawValue,
    /// Its names in messages, from the outside in.
    within: Vec<String>,
}

impl<'a> Part<'a> {
    /// Adds a name for it in messages.
    pub(super) fn named(mut self, name: String) -> Self {
        self.within.push(name);
        self
    }

    fn of(&self, raw: &'a RawValue) -> Self {
        Self { raw, ..self.clone() }
    }

    pub(super) fn is_list(&self) -> bool {
        self.raw.get().starts_with('[')
    }

    pub(super) fn is_object(&self) -> bool {
        self.raw.get().starts_with('{')
    }

    /// The elements of a list.
    pub(super) fn list(&self, otherwise: &'static str) -> Result<Vec<Self>, MapFailure> {
        let raw: Result<Vec<&'a RawValue>, _> = serde_json::from_str(self.raw.get());
        let raw = raw.map_err(|_| self.fail(Problem::Shape(otherwise)))?;
        Ok(raw.into_iter().map(|raw| self.of(raw)).collect())
    }

    /// The members of an object.
    pub(super) fn members(&self, otherwise: &'static str) -> Result<BTreeMap<String, Self>, MapFailure> {
        let raw: Result<BTreeMap<String, &'a RawValue>, _> = serde_json::from_str(self.raw.get());
        let raw = raw.map_err(|_| self.fail(Problem::Shape(otherwise)))?;
        Ok(raw.into_iter().map(|(name, raw)| (name, self.of(raw))).collect())
    }

    /// The value as it is.
    pub(super) fn value(&self) -> Result<serde_json::Value, MapFailure> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.fail(Problem::Shape("it is nested too deep")))
    }

    /// A failure at this place.
    pub(super) fn fail(&self, problem: Problem) -> MapFailure {
        MapFailure::At { place: self.place(), problem: Box::new(problem) }
    }

    /// The program named here, for an entry of a program array, cannot be had.
    pub(super) fn no_program(&self, index: u32, source: NoProgram) -> MapFailure {
        MapFailure::Program { place: self.place(), index, source: Box::new(source) }
    }

    fn place(&self) -> Place {
        let text = &self.file.text;
        let at = self.file.offset(self.raw);
        let before = text.get(..at).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        let (line, column) = self.file.within.unwrap_or((before.matches('\n').count() + 1, column));
        Place { line, column, map: self.file.map.clone(), parts: self.within.clone() }
    }
}
