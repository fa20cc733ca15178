//! Replaces parameters in lines, and uses of snippets by their lines.

use std::collections::BTreeMap;

use super::line::{Line, is_blank_or_comment};
use super::snippet::{Signature, Snippet, is_name};
use super::table::{Row, Table, expand_runs};
use crate::case::error::{ExpandError, ParseError, Problem};

/// Maximum depth of snippets that use snippets.
const MAX_DEPTH: usize = 8;

/// The row of `each` of an instance of a case.
#[derive(Default)]
pub(super) struct Scope<'a> {
    columns: &'a [String],
    pub(super) row: Option<&'a Row>,
    /// The first cells of all rows, which are their names.
    names: Vec<&'a str>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(each: &'a Table, row: &'a Row) -> Self {
        let names = each.rows.iter().filter_map(|row| row.cells.first()).map(String::as_str).collect();
        Self { columns: &each.columns, row: Some(row), names }
    }

    /// The line with parameters replaced by the cells of the row.
    pub(super) fn substitute(&self, line: &Line) -> Result<Line, ParseError> {
        let Some(row) = self.row else { return Ok(line.clone()) };
        let mut line = line.clone();
        if is_blank_or_comment(&line.text) || !line.text.contains('$') {
            return Ok(line);
        }
        line.origin.row = Some(row.origin.line);
        let value = |name: &str| {
            let at = self.columns.iter().position(|column| column == name)?;
            row.cells.get(at).cloned()
        };
        line.text = substitute(&line.text, value).map_err(|error| line.origin.error(error.into()))?;
        Ok(line)
    }
}

/// The lines of a case, or of its prelude, for one row.
pub(super) fn instance(
    lines: &[Line],
    scope: &Scope<'_>,
    snippets: &BTreeMap<String, Snippet>,
) -> Result<Vec<Line>, ParseError> {
    let mut expansion = Expansion { snippets, uses: 0, lines: Vec::new() };
    for line in lines {
        let substituted = scope.substitute(line)?;
        // A line that only has an empty cell is removed.
        if !substituted.text.trim().is_empty() || line.text.trim().is_empty() {
            expansion.line(substituted, 0)?;
        }
    }
    let name = scope.row.and_then(|row| row.cells.first()).map(String::as_str);
    expand_runs(expansion.lines, name, &scope.names)
}

struct Expansion<'a> {
    snippets: &'a BTreeMap<String, Snippet>,
    /// Number of uses of snippets so far: `$use` in their lines.
    uses: usize,
    lines: Vec<Line>,
}

impl Expansion<'_> {
    fn line(&mut self, line: Line, depth: usize) -> Result<(), ParseError> {
        let Some(call) = line.text.trim_start().strip_prefix('@') else {
            self.lines.push(line);
            return Ok(());
        };
        let (call, mark) = match call.find('#') {
            Some(at) => call.split_at(at),
            None => (call, ""),
        };
        let failed = |problem| line.origin.error(problem);
        let Signature { name, arguments } = Signature::parse(call).map_err(failed)?;
        let snippet = self.snippets.get(&name);
        let snippet = snippet.ok_or_else(|| failed(ExpandError::NoSnippet(name.clone()).into()))?;
        let (found, expected) = (arguments.len(), snippet.parameters.len());
        if depth == MAX_DEPTH {
            return Err(failed(ExpandError::Recursion(name).into()));
        }
        if found != expected {
            return Err(failed(ExpandError::Arguments { name, found, expected }.into()));
        }
        self.uses += 1;
        let number = self.uses.to_string();
        let value = |parameter: &str| {
            let at = snippet.parameters.iter().position(|known| known == parameter);
            at.and_then(|at| arguments.get(at).cloned())
                .or_else(|| (parameter == "use").then(|| number.clone()))
        };
        let indent = line.text.len() - line.text.trim_start().len();
        for used in &snippet.lines {
            let origin = line.origin.using(&used.origin);
            let text = substitute(&used.text, value).map_err(|error| origin.error(Problem::from(error)))?;
            self.line(Line { text: format!("{}{text}", " ".repeat(indent)), origin }, depth + 1)?;
        }
        // Text after the use is appended to its last line.
        if let Some(last) = self.lines.last_mut().filter(|_| mark.starts_with("#!")) {
            last.text = format!("{} {mark}", last.text);
        }
        Ok(())
    }
}

/// Replaces `$name` and `${name}`; `$$` is a dollar.
fn substitute(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        result.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            result.push('$');
            rest = after;
            continue;
        }
        let (name, next) = match after.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
            Some(split) => split,
            None => after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len())),
        };
        result.push_str(&value(name).ok_or_else(|| ExpandError::NoParameter(name.to_owned()))?);
        rest = next;
    }
    result.push_str(rest);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::substitute;

    #[test]
    fn parameters_are_replaced() {
        let value = |name: &str| (name == "op").then(|| "+=".to_owned());
        assert_eq!(substitute("r1 $op 1 ${op}64 $$5", value).as_deref(), Ok("r1 += 1 +=64 $5"));
        assert!(substitute("$other", value).is_err());
    }
}
