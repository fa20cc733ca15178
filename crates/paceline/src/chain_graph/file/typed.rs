//! Values of TOML by type, with their positions.

use std::ops::Range;
use std::path::PathBuf;

use paceline_frame::Verdict;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::contents::Located;
use super::error::{FileError, FilePlace, FileProblem};
use super::places::Places;
use crate::chain_graph::actions::Actions;

/// A value with its span.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// The file's text, and the lines and columns in it.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) source: &'a str,
    pub(super) places: &'a Places,
}

impl Text<'_> {
    /// The position of a byte range.
    pub(super) fn place(self, span: Range<usize>) -> FilePlace {
        self.places.at(self.source, span.start)
    }

    pub(super) fn error(self, span: Range<usize>, problem: FileProblem) -> FileError {
        FileError { at: self.place(span), problem }
    }

    pub(super) fn located<T>(self, span: Range<usize>, value: T) -> Located<T> {
        Located { at: self.place(span), value }
    }

    /// An error about a reference to a nonexistent item.
    pub(super) fn unknown<'n>(
        self,
        span: Range<usize>,
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> FileError {
        self.error(span, FileProblem::unknown(what, name, known))
    }
}

/// A table with a fixed set of keys.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) text: Text<'a>,
    pub(super) span: (usize, usize),
    inner: &'a DeTable<'a>,
    /// Description for error messages.
    what: &'static str,
}

impl<'a> Table<'a> {
    /// The root table.
    pub(super) fn root(
        text: Text<'a>,
        root: &'a Spanned<DeTable<'a>>,
        known: &[&str],
    ) -> Result<Self, FileError> {
        let what = "a chain file";
        Self { text, span: (0, 0), inner: root.get_ref(), what }.only(known)
    }

    /// A value that must be a table with these keys only.
    pub(super) fn of(
        text: Text<'a>,
        value: &'a Value<'a>,
        what: &'static str,
        known: &[&str],
    ) -> Result<Self, FileError> {
        Self::any(text, value, what)?.only(known)
    }

    /// A value that must be a table, with any keys.
    pub(super) fn any(text: Text<'a>, value: &'a Value<'a>, what: &'static str) -> Result<Self, FileError> {
        let span = value.span();
        match value.get_ref() {
            DeValue::Table(inner) => Ok(Self { text, span: (span.start, span.end), inner, what }),
            _ => Err(text.error(span, FileProblem::Type { key: what.to_owned(), expected: "a table" })),
        }
    }

    fn only(self, known: &[&str]) -> Result<Self, FileError> {
        let unknown = self.inner.iter().filter(|(key, _)| !known.contains(&key.get_ref().as_ref()));
        // The table is sorted by key; report the first unknown key in file order.
        let Some((key, _)) = unknown.min_by_key(|(key, _)| key.span().start) else { return Ok(self) };
        let suggestion = paceline_suggest::nearest(key.get_ref(), known.iter().copied()).map(str::to_owned);
        let name = key.get_ref().to_string();
        Err(self.text.error(key.span(), FileProblem::UnknownKey { key: name, table: self.what, suggestion }))
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value<'a>> {
        self.inner.get(key)
    }

    /// Keys and values, in file order.
    pub(super) fn entries(&self) -> Vec<(Located<String>, &'a Value<'a>)> {
        let mut entries: Vec<_> = self.inner.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let located = |key: &Spanned<_>| self.text.located(key.span(), ToString::to_string(key.get_ref()));
        entries.into_iter().map(|(key, value)| (located(key), value)).collect()
    }

    pub(super) fn missing(&self, key: &'static str) -> FileError {
        self.text.error(self.span.0..self.span.1, FileProblem::Missing { table: self.what, key })
    }

    fn wrong(&self, value: &Value<'_>, key: &str, expected: &'static str) -> FileError {
        self.text.error(value.span(), FileProblem::Type { key: key.to_owned(), expected })
    }

    /// A nonempty string.
    pub(super) fn text(&self, key: &str) -> Result<Option<Located<String>>, FileError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => {
                Ok(Some(self.text.located(value.span(), text.to_string())))
            }
            _ => Err(self.wrong(value, key, "a text")),
        }
    }

    pub(super) fn path(&self, key: &str) -> Result<Option<Located<PathBuf>>, FileError> {
        let text = self.text(key)?;
        Ok(text.map(|text| Located { at: text.at, value: PathBuf::from(text.value) }))
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<u32>, FileError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = match value.get_ref() {
            DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| self.wrong(value, key, "a number from 0 to 4294967295"))
    }

    /// A 64-bit number.
    pub(super) fn revision(&self, key: &str) -> Result<Option<u64>, FileError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number
            .map(Some)
            .ok_or_else(|| self.wrong(value, key, "a number, as `paceline chain show --json` tells it"))
    }

    /// A list of verdicts.
    pub(super) fn actions(&self, key: &str) -> Result<Option<Actions>, FileError> {
        const EXPECTED: &str = "a list of verdicts, such as [\"pass\", \"tx\"]";
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::Array(list) = value.get_ref() else { return Err(self.wrong(value, key, EXPECTED)) };
        let verdict = |value: &Value<'_>| match value.get_ref() {
            DeValue::String(name) => verdict(self.text, value.span(), name),
            _ => Err(self.wrong(value, key, EXPECTED)),
        };
        list.iter().map(verdict).collect::<Result<Actions, _>>().map(Some)
    }
}

/// A verdict by name.
pub(super) fn verdict(text: Text<'_>, span: Range<usize>, name: &str) -> Result<Verdict, FileError> {
    let found = Verdict::ALL.into_iter().find(|verdict| verdict.name() == name);
    found.ok_or_else(|| text.unknown(span, "verdict", name, Verdict::ALL.map(Verdict::name)))
}
