//! Snippets, preludes and tables of case files, expanded as text before the rest of the parser reads it.
//!
//! A file is a list of items that begin in the first column: `include`, `snippet`, `table`, `prelude` and `case`. A case
//! expands to one case, or to one for each row of its `each`; `tests/cases/README.md` has the rules.

mod instance;
mod line;
mod merge;
mod snippet;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use instance::{Scope, instance};
use line::{Line, Origin, dedent, is_blank_or_comment};
use merge::merge;
use snippet::{Signature, Snippet};
use table::Table;

use super::directive::without_comment;
use super::error::{ExpandError, ParseError, Problem};

/// A text without snippets, preludes and tables, and the origin of each line.
pub(super) struct Expanded {
    text: String,
    origins: Vec<Origin>,
}

impl Expanded {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The line of the file for a line of the text.
    pub(super) fn line(&self, line: usize) -> usize {
        self.origin(line).map_or(line, |origin| origin.line)
    }

    /// An error in the text, with the line of the file.
    pub(super) fn place(&self, error: ParseError) -> ParseError {
        match self.origin(error.line) {
            Some(origin) => origin.error(error.problem),
            None => error,
        }
    }

    fn origin(&self, line: usize) -> Option<&Origin> {
        self.origins.get(line.checked_sub(1)?)
    }

    fn push(&mut self, line: Line) {
        self.text.push_str(&line.text);
        self.text.push('\n');
        self.origins.push(line.origin);
    }
}

/// The definitions so far.
#[derive(Default)]
struct Definitions {
    snippets: BTreeMap<String, Snippet>,
    tables: BTreeMap<String, Table>,
    prelude: Vec<Line>,
}

/// Expands a file whose includes are relative to a directory.
///
/// # Errors
/// The first line that is wrong.
pub(super) fn expand(text: &str, directory: Option<&Path>) -> Result<Expanded, ParseError> {
    let mut expanded = Expanded { text: String::new(), origins: Vec::new() };
    let mut definitions = Definitions::default();
    for item in items(text, None) {
        match item.kind {
            ItemKind::Include => definitions.include(&item, directory)?,
            ItemKind::Snippet => definitions.snippet(item)?,
            ItemKind::Table => definitions.table(&item)?,
            ItemKind::Prelude => definitions.prelude = dedent(item.body),
            ItemKind::Case => definitions.case(&item, &mut expanded)?,
            ItemKind::Other => item.body.into_iter().for_each(|line| expanded.push(line)),
        }
    }
    Ok(expanded)
}

/// Finds the first case without a comment line directly above it with its purpose.
///
/// # Errors
/// A case has none.
pub(super) fn check_purposes(text: &str) -> Result<(), ParseError> {
    let mut above = "";
    for (index, line) in text.lines().enumerate() {
        let name = line.split_once(':').filter(|(name, _)| item_kind(name) == Some(ItemKind::Case));
        let is_purpose = above.strip_prefix('#').is_some_and(|text| !text.trim().is_empty());
        if let (Some((_, name)), false) = (name, is_purpose) {
            let name = without_comment(name).trim().to_owned();
            return Err(ParseError { line: index + 1, problem: Problem::NoPurpose(name) });
        }
        above = line;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Include,
    Snippet,
    Table,
    Prelude,
    Case,
    /// Lines before the first item.
    Other,
}

struct Item {
    kind: ItemKind,
    /// The value after the colon, without a comment.
    value: String,
    head: Line,
    body: Vec<Line>,
}

impl Item {
    fn error(&self, error: impl Into<Problem>) -> ParseError {
        self.head.origin.error(error.into())
    }
}

/// Splits a file, or an included file named `file`, into its items. Comments above an item belong to it.
fn items(text: &str, file: Option<&str>) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let line = Line { text: text.to_owned(), origin: Origin::written(file, index + 1) };
        let content = without_comment(text);
        let head = content.split_once(':').and_then(|(name, value)| Some((item_kind(name)?, value)));
        match (head, items.last_mut()) {
            (Some((kind, value)), _) => {
                items.push(Item { kind, value: value.trim().to_owned(), head: line, body: Vec::new() });
            }
            (None, Some(item)) => item.body.push(line),
            (None, None) => {
                let head = line.clone();
                items.push(Item { kind: ItemKind::Other, value: String::new(), head, body: vec![line] });
            }
        }
    }
    items
}

fn item_kind(name: &str) -> Option<ItemKind> {
    Some(match name.trim_end() {
        "include" => ItemKind::Include,
        "snippet" => ItemKind::Snippet,
        "table" => ItemKind::Table,
        "prelude" => ItemKind::Prelude,
        "case" => ItemKind::Case,
        _ => return None,
    })
}

impl Definitions {
    fn include(&mut self, item: &Item, directory: Option<&Path>) -> Result<(), ParseError> {
        let path = item.value.clone();
        let failed = |cause: String| item.error(ExpandError::Include { path: path.clone(), cause });
        let directory = directory.ok_or_else(|| failed("this text is in no directory".to_owned()))?;
        let text = fs::read_to_string(directory.join(&path)).map_err(|error| failed(error.to_string()))?;
        for included in items(&text, Some(&path)) {
            let is_empty = included.body.iter().all(|line| is_blank_or_comment(&line.text));
            let added = match included.kind {
                ItemKind::Snippet => self.snippet(included),
                ItemKind::Table => self.table(&included),
                ItemKind::Other if is_empty => Ok(()),
                _ => Err(included.error(ExpandError::NotIncluded)),
            };
            // The message includes the position in the included file.
            added.map_err(|error| ParseError { line: item.head.origin.line, ..error })?;
        }
        Ok(())
    }

    fn snippet(&mut self, item: Item) -> Result<(), ParseError> {
        let signature = Signature::parse(&item.value).map_err(|error| item.error(error))?;
        let name = signature.name.clone();
        if self.snippets.contains_key(&name) {
            return Err(item.error(Problem::Twice(format!("snippet: {name}"))));
        }
        self.snippets.insert(name, Snippet { parameters: signature.arguments, lines: dedent(item.body) });
        Ok(())
    }

    fn table(&mut self, item: &Item) -> Result<(), ParseError> {
        let (name, columns) = item.value.split_once(' ').unwrap_or((&item.value, ""));
        if self.tables.contains_key(name) {
            return Err(item.error(Problem::Twice(format!("table: {name}"))));
        }
        let table = Table::parse(columns, &item.head.origin, &item.body)?;
        self.tables.insert(name.to_owned(), table);
        Ok(())
    }

    /// A case, once per row.
    fn case(&self, item: &Item, expanded: &mut Expanded) -> Result<(), ParseError> {
        let (each, body) = table::take_each(&item.body, &self.tables)?;
        let Some(each) = each else {
            return self.one_case(item, &body, &Scope::default(), expanded);
        };
        if let Some(column) = each.unused_column(&item.value, body.iter().chain(&self.prelude)) {
            return Err(item.error(ExpandError::UnusedColumn(column.to_owned())));
        }
        each.rows.iter().try_for_each(|row| self.one_case(item, &body, &Scope::new(&each, row), expanded))
    }

    fn one_case(
        &self,
        item: &Item,
        body: &[Line],
        scope: &Scope<'_>,
        expanded: &mut Expanded,
    ) -> Result<(), ParseError> {
        let line = scope.row.map_or(item.head.origin.line, |row| row.origin.line);
        let head = scope.substitute(&item.head)?;
        expanded.push(Line { origin: Origin::written(None, line), ..head });
        let own = instance(body, scope, &self.snippets)?;
        let prelude = instance(&self.prelude, scope, &self.snippets)?;
        merge(prelude, own).into_iter().for_each(|line| expanded.push(line));
        Ok(())
    }
}
