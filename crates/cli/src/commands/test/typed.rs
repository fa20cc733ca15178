//! Tables of a test file, with the places of their values.

use std::collections::BTreeMap;
use std::ops::Range;

use paceline_suggest::nearest;
use serde_json::{Map, Value as Json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Place, Problem, TestError};

/// A value of a file, and the bytes that it takes there.
#[derive(Clone, Debug)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

/// The text of a file, for the places of errors.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl<'a> Text<'a> {
    pub(super) fn error(self, span: &Range<usize>, problem: Problem) -> TestError {
        TestError::File { name: self.name.to_owned(), at: self.place(span), problem: Box::new(problem) }
    }

    pub(super) fn place(self, span: &Range<usize>) -> Place {
        Place::of(self.text, span.start)
    }

    /// The root table.
    pub(super) fn root(self) -> Result<Table<'a>, TestError> {
        let parsed = DeTable::parse(self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            self.error(&span, Problem::Syntax(error.message().trim().to_owned()))
        })?;
        let span = parsed.span();
        Ok(self.keys("a test file", parsed.into_inner(), span))
    }

    fn keys(self, table: &'static str, entries: DeTable<'_>, span: Range<usize>) -> Table<'a> {
        let owned =
            |value: Spanned<DeValue<'_>>| Located { span: value.span(), value: owned(value.into_inner()) };
        let entries = entries.into_iter().map(|(key, value)| {
            let name = key.get_ref().to_string();
            (name, (key.span(), owned(value)))
        });
        Table { text: self, table, entries: entries.collect(), span }
    }
}

/// A value that does not borrow the text.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Plain(Json),
    List(Vec<Located<Value>>),
    Table(Vec<(String, Range<usize>, Located<Value>)>),
}

fn owned(value: DeValue<'_>) -> Value {
    let located =
        |value: Spanned<DeValue<'_>>| Located { span: value.span(), value: owned(value.into_inner()) };
    match value {
        DeValue::String(text) => Value::Plain(Json::from(text.into_owned())),
        DeValue::Integer(number) => {
            let parsed = i128::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok();
            let number = parsed.and_then(|n| {
                u64::try_from(n).map(Json::from).or_else(|_| i64::try_from(n).map(Json::from)).ok()
            });
            Value::Plain(number.unwrap_or(Json::Null))
        }
        DeValue::Float(number) => {
            Value::Plain(number.as_str().replace('_', "").parse::<f64>().map_or(Json::Null, Json::from))
        }
        DeValue::Boolean(truth) => Value::Plain(Json::from(truth)),
        DeValue::Datetime(time) => Value::Plain(Json::from(time.to_string())),
        DeValue::Array(elements) => Value::List(elements.into_iter().map(located).collect()),
        DeValue::Table(entries) => {
            let entry = |(key, value): (Spanned<_>, _)| {
                (ToString::to_string(key.get_ref()), key.span(), located(value))
            };
            let mut entries: Vec<_> = entries.into_iter().map(entry).collect();
            // The order of the file.
            entries.sort_by_key(|(_, span, _): &(String, Range<usize>, Located<Value>)| span.start);
            Value::Table(entries)
        }
    }
}

impl Value {
    /// The value as JSON, as map files have it.
    pub(super) fn to_json(&self) -> Json {
        match self {
            Self::Plain(json) => json.clone(),
            Self::List(elements) => elements.iter().map(|element| element.value.to_json()).collect(),
            Self::Table(entries) => Json::Object(
                entries
                    .iter()
                    .map(|(key, _, value)| (key.clone(), value.value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

/// A table whose keys are taken one by one; what is left is an error.
pub(super) struct Table<'a> {
    pub(super) text: Text<'a>,
    table: &'static str,
    entries: BTreeMap<String, (Range<usize>, Located<Value>)>,
    pub(super) span: Range<usize>,
}

impl<'a> Table<'a> {
    /// A value that must be a table.
    pub(super) fn of(text: Text<'a>, table: &'static str, value: &Located<Value>) -> Result<Self, TestError> {
        let Value::Table(entries) = &value.value else {
            return Err(text.error(&value.span, Problem::Type { key: table.to_owned(), expected: "a table" }));
        };
        let entries = entries.iter().map(|(key, span, value)| (key.clone(), (span.clone(), value.clone())));
        Ok(Self { text, table, entries: entries.collect(), span: value.span.clone() })
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Located<Value>> {
        self.entries.remove(key).map(|(_, value)| value)
    }

    /// All keys that are left, in the order of the file.
    pub(super) fn rest(&mut self) -> Vec<(String, Located<Value>)> {
        let mut rest: Vec<_> = std::mem::take(&mut self.entries).into_iter().collect();
        rest.sort_by_key(|(_, (span, _))| span.start);
        rest.into_iter().map(|(key, (_, value))| (key, value)).collect()
    }

    pub(super) fn string(&mut self, key: &str) -> Result<Option<Located<String>>, TestError> {
        self.converted(key, "a text", |json| json.as_str().map(str::to_owned))
    }

    pub(super) fn number(&mut self, key: &str) -> Result<Option<Located<u64>>, TestError> {
        self.converted(key, "a whole number from 0 on", Json::as_u64)
    }

    pub(super) fn seconds(&mut self, key: &str) -> Result<Option<Located<f64>>, TestError> {
        let seconds = |json: &Json| json.as_f64().filter(|seconds| (0.0..1e9).contains(seconds));
        self.converted(key, "a number of seconds", seconds)
    }

    /// A list, or nothing.
    pub(super) fn list(&mut self, key: &str) -> Result<Vec<Located<Value>>, TestError> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Located { value: Value::List(elements), .. }) => Ok(elements),
            Some(other) => Err(self.wrong(key, &other.span, "a list")),
        }
    }

    fn converted<T>(
        &mut self,
        key: &str,
        expected: &'static str,
        convert: impl Fn(&Json) -> Option<T>,
    ) -> Result<Option<Located<T>>, TestError> {
        let Some(Located { value, span }) = self.take(key) else { return Ok(None) };
        let converted = match &value {
            Value::Plain(json) => convert(json),
            _ => None,
        };
        match converted {
            Some(value) => Ok(Some(Located { value, span })),
            None => Err(self.wrong(key, &span, expected)),
        }
    }

    pub(super) fn wrong(&self, key: &str, span: &Range<usize>, expected: &'static str) -> TestError {
        self.text.error(span, Problem::Type { key: key.to_owned(), expected })
    }

    pub(super) fn missing(&self, what: &'static str) -> TestError {
        self.text.error(&self.span, Problem::Missing { table: self.table, what })
    }

    /// Refuses a key that nothing took; `known` are all that there could be.
    pub(super) fn finish(self, known: &[&str]) -> Result<(), TestError> {
        let first = self.entries.into_iter().min_by_key(|(_, (span, _))| span.start);
        let Some((key, (span, _))) = first else { return Ok(()) };
        let hint = nearest(&key, known.iter().copied()).map(str::to_owned);
        Err(self.text.error(&span, Problem::Unknown { key, table: self.table, hint }))
    }
}
