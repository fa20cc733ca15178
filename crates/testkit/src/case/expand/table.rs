//! Tables: columns and rows, with cells between `|`.

use std::collections::BTreeMap;

use super::line::{Line, Origin};
use crate::case::directive::{is_directive, without_comment};
use crate::case::error::{ExpandError, ParseError};

/// A row of a table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) origin: Origin,
    pub(super) cells: Vec<String>,
}

/// Rows with one cell per column.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Row>,
    /// Whether it is declared in the case that uses it.
    is_own: bool,
}

impl Table {
    /// Reads the columns and the rows, one per line.
    pub(super) fn parse(columns: &str, head: &Origin, block: &[Line]) -> Result<Self, ParseError> {
        let columns = cells(columns);
        let mut rows = Vec::new();
        for line in block {
            let text = without_comment(&line.text);
            if text.trim().is_empty() {
                continue;
            }
            let (cells, expected) = (cells(text), columns.len());
            if cells.len() != expected {
                return Err(line.origin.error(ExpandError::Cells { found: cells.len(), expected }.into()));
            }
            rows.push(Row { origin: line.origin.clone(), cells });
        }
        if rows.is_empty() {
            return Err(head.error(ExpandError::NoRows.into()));
        }
        Ok(Self { columns, rows, is_own: false })
    }

    /// The first column of a case's own table that no line of the case uses.
    pub(super) fn unused_column<'a>(
        &self,
        name: &str,
        lines: impl Iterator<Item = &'a Line> + Clone,
    ) -> Option<&str> {
        let is_used = |column: &&String| {
            let (plain, braced) = (format!("${column}"), format!("${{{column}}}"));
            let uses = |text: &str| text.contains(&plain) || text.contains(&braced);
            uses(name) || lines.clone().any(|line| uses(&line.text))
        };
        // The first column is also used, to name rows in columns of `runs`.
        let mut columns = self.columns.iter().skip(1).filter(|_| self.is_own);
        columns.find(|column| !is_used(column)).map(String::as_str)
    }
}

/// Removes `each` and its rows from a case; its value is a list of columns, or the name of a table.
pub(super) fn take_each(
    body: &[Line],
    tables: &BTreeMap<String, Table>,
) -> Result<(Option<Table>, Vec<Line>), ParseError> {
    // A label may have this name; the directive has a value.
    let Some(at) = body.iter().position(|line| line.text.starts_with("each: ")) else {
        return Ok((None, body.to_vec()));
    };
    let (before, rest) = body.split_at(at);
    let end = 1 + rest.iter().skip(1).take_while(|line| !is_first_column(&line.text)).count();
    let (each, after) = rest.split_at(end);
    let [head, block @ ..] = each else { return Ok((None, body.to_vec())) };
    let value = without_comment(&head.text).trim_start_matches("each:").trim();
    let table = match tables.get(value) {
        Some(table) => table.clone(),
        None if block.iter().all(|line| without_comment(&line.text).trim().is_empty()) => {
            return Err(head.origin.error(ExpandError::NoTable(value.to_owned()).into()));
        }
        None => Table { is_own: true, ..Table::parse(value, &head.origin, block)? },
    };
    Ok((Some(table), [before, after].concat()))
}

/// Replaces each `runs` by directives, one run per row. A column is a directive, or `DIRECTIVE ROW` for one row of `each`
/// only; an empty cell omits the directive.
pub(super) fn expand_runs(
    lines: Vec<Line>,
    row: Option<&str>,
    all_rows: &[&str],
) -> Result<Vec<Line>, ParseError> {
    let mut expanded = Vec::new();
    let mut lines = lines.into_iter().peekable();
    while let Some(line) = lines.next() {
        let Some(columns) = line.text.strip_prefix("runs: ") else {
            expanded.push(line);
            continue;
        };
        let mut block = Vec::new();
        while let Some(next) = lines.next_if(|next| !is_first_column(&next.text)) {
            block.push(next);
        }
        let table = Table::parse(without_comment(columns), &line.origin, &block)?;
        let heads: Vec<_> = table.columns.iter().map(|column| split_column(column)).collect();
        if let Some((_, Some(unknown))) =
            heads.iter().find(|(_, only)| only.is_some_and(|only| !all_rows.contains(&only)))
        {
            return Err(line.origin.error(ExpandError::NoRow((*unknown).to_owned()).into()));
        }
        for Row { origin, cells } in table.rows {
            for ((directive, only), cell) in heads.iter().zip(cells) {
                if !cell.is_empty() && (only.is_none() || *only == row) {
                    expanded.push(Line { text: format!("{directive}: {cell}"), origin: origin.clone() });
                }
            }
        }
    }
    Ok(expanded)
}

/// The directive of a column, and the only row that it applies to.
fn split_column(column: &str) -> (&str, Option<&str>) {
    match column.split_once(' ') {
        Some((directive, only)) => (directive, Some(only.trim())),
        None => (column, None),
    }
}

fn is_first_column(text: &str) -> bool {
    !text.trim().is_empty() && !text.starts_with('#') && is_directive(text)
}

/// Trimmed parts between `|`, outside of strings.
fn cells(text: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut in_string = false;
    let padded: Vec<char> = format!(" {} ", text.trim()).chars().collect();
    for window in padded.windows(3) {
        let &[before, c, after] = window else { continue };
        in_string ^= c == '"';
        match cells.last_mut() {
            _ if c == '|' && !in_string && before.is_whitespace() && after.is_whitespace() => {
                cells.push(String::new());
            }
            Some(cell) => cell.push(c),
            None => {}
        }
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::cells;

    #[test]
    fn cells_stand_between_bars() {
        assert_eq!(cells("a | b c |  | d"), ["a", "b c", "", "d"]);
        assert_eq!(cells("a | "), ["a", ""]);
        assert_eq!(cells("r0 |= r1 | x|y | \" | \""), ["r0 |= r1", "x|y", "\" | \""]);
    }
}
