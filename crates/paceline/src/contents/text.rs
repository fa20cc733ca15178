//! Contents as text: JSON of which every part remembers where it is.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::error::{ContentsCause, ContentsError, ContentsPlace, ContentsProblem};
use crate::load::ProgramError;
use crate::text_file::{self, end_of};

/// Contents of a map, or values of global variables, as JSON text. The elements are a list of `{"key": ..., "value": ...}`, as
/// `bpftool map dump` prints it, or an object of values by their keys; variables are an object of values by their names.
#[derive(Clone, Debug)]
pub struct MapContents {
    /// Map to fill.
    pub(super) map: String,
    /// For messages.
    name: String,
    text: Arc<str>,
    /// The part of the text that is about the map.
    range: Range<usize>,
    /// Whether the map gets exactly these contents.
    pub(super) replaces: bool,
    /// The text's line and column in a file that is no JSON itself.
    within: Option<(usize, usize)>,
}

impl MapContents {
    /// Reads the contents of a map from a file. Only its syntax is checked.
    ///
    /// # Errors
    /// [`ContentsError`].
    pub fn read(map: &str, path: &Path) -> Result<Self, ContentsError> {
        let name = path.display().to_string();
        let text = text_file::read(path);
        Self::parse(map, &name, text.map_err(|error| ContentsError::new(&name, ContentsCause::Read(error)))?)
    }

    /// The contents of a map from the text of a file, whose name is for messages. Only its syntax is checked.
    ///
    /// # Errors
    /// [`ContentsError`].
    pub fn parse(map: &str, name: &str, text: impl Into<String>) -> Result<Self, ContentsError> {
        let text = text.into();
        let syntax = serde_json::from_str::<&RawValue>(&text);
        syntax.map_err(|error| ContentsError::new(name, ContentsCause::Syntax(error)))?;
        Ok(Self::of_text(map, name, text))
    }

    /// JSON that is made from a part of a file, with the line and column of that part for messages, which are 0 if
    /// there is no file.
    #[must_use]
    pub fn inline(map: &str, name: &str, json: String, (line, column): (usize, usize)) -> Self {
        Self { within: Some((line, column)), ..Self::of_text(map, name, json) }
    }

    fn of_text(map: &str, name: &str, text: String) -> Self {
        let range = 0..text.len();
        let (map, name) = (map.to_owned(), name.to_owned());
        Self { map, name, text: text.into(), range, replaces: false, within: None }
    }

    /// A part of this text as the whole contents of a map.
    pub(super) fn about(&self, map: &str, part: &Part<'_>) -> Self {
        let start = self.offset(part.raw);
        let range = start..start + part.raw.get().len();
        let (map, name) = (map.to_owned(), self.name.clone());
        Self { map, name, text: Arc::clone(&self.text), range, replaces: true, within: None }
    }

    /// The offset of a part of the text.
    fn offset(&self, raw: &RawValue) -> usize {
        // The value borrows from the text.
        raw.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }

    /// Name of the map that they are for.
    #[must_use]
    pub fn map(&self) -> &str {
        &self.map
    }

    /// Adds the name of the file to an error.
    pub(super) fn failure(&self, source: ContentsCause) -> ContentsError {
        ContentsError { at: self.within, ..ContentsError::new(&self.name, source) }
    }

    pub(super) fn root(&self) -> Result<Part<'_>, ContentsCause> {
        let text = self.text.get(self.range.clone()).unwrap_or_default();
        let raw = serde_json::from_str(text).map_err(ContentsCause::Syntax)?;
        Ok(Part { file: self, raw, within: Vec::new() })
    }
}

/// A value in the text.
#[derive(Clone)]
pub(super) struct Part<'a> {
    file: &'a MapContents,
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
    pub(super) fn list(&self, otherwise: &'static str) -> Result<Vec<Self>, ContentsCause> {
        let raw: Result<Vec<&'a RawValue>, _> = serde_json::from_str(self.raw.get());
        let raw = raw.map_err(|_| self.fail(ContentsProblem::Shape(otherwise)))?;
        Ok(raw.into_iter().map(|raw| self.of(raw)).collect())
    }

    /// The members of an object.
    pub(super) fn members(&self, otherwise: &'static str) -> Result<BTreeMap<String, Self>, ContentsCause> {
        let raw: Result<BTreeMap<String, &'a RawValue>, _> = serde_json::from_str(self.raw.get());
        let raw = raw.map_err(|_| self.fail(ContentsProblem::Shape(otherwise)))?;
        Ok(raw.into_iter().map(|(name, raw)| (name, self.of(raw))).collect())
    }

    /// The value as it is.
    pub(super) fn value(&self) -> Result<serde_json::Value, ContentsCause> {
        serde_json::from_str(self.raw.get())
            .map_err(|_| self.fail(ContentsProblem::Shape("it is nested too deep")))
    }

    /// A failure at this place.
    pub(super) fn fail(&self, problem: ContentsProblem) -> ContentsCause {
        ContentsCause::At { place: self.place(), problem: Box::new(problem) }
    }

    /// The program named here, for an entry of a program array, cannot be had.
    pub(super) fn no_program(&self, index: u32, source: ProgramError) -> ContentsCause {
        ContentsCause::Program { place: self.place(), index, source: Box::new(source) }
    }

    fn place(&self) -> ContentsPlace {
        let before = self.file.text.get(..self.file.offset(self.raw)).unwrap_or_default();
        let (line, column) = if self.file.within.is_some() { (0, 0) } else { end_of(before) };
        ContentsPlace { line, column, map: self.file.map.clone(), parts: self.within.clone() }
    }
}
