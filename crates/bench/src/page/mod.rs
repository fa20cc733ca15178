//! The page of the benchmarks: prose by hand, and between markers what it shows of the records.
//!
//! `<!-- begin bulk: a burst against one call | in a pipeline -->` shows the rows whose name, with what they are compared
//! with, has one of the texts; without texts all. `<!-- begin dispatcher/matrix: 1 | 16 -->` shows columns of the matrix. A
//! part ends with `<!-- end -->`.

mod summary;

use std::error::Error;
use std::fs;
use std::path::Path;

use summary::brief;

use crate::record::{self, Entry, Record};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/BENCHMARKS.md");

const BEGIN: &str = "<!-- begin ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// Writes the generated parts of the page anew.
pub(crate) fn write() -> Result<(), Box<dyn Error>> {
    Ok(fs::write(PAGE, current()?.1)?)
}

/// The page as it is, and as the records give it.
fn current() -> Result<(String, String), Box<dyn Error>> {
    let page = fs::read_to_string(PAGE)?;
    let made = render(&page, &Record::read_all(Path::new(record::FOLDER))?)?;
    Ok((page, made))
}

/// A page with all generated parts made anew.
///
/// # Errors
/// A part that nothing generates, or that does not end; a record that the page does not show.
fn render(page: &str, records: &[Record]) -> Result<String, Box<dyn Error>> {
    let mut made = String::new();
    let mut rest = page;
    let mut tables = Vec::new();
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(CLOSE).ok_or("a marker is not closed")?;
        let (_, after) = after.split_once(END).ok_or_else(|| format!("part {name} does not end"))?;
        made += &format!("{before}{BEGIN}{name}{CLOSE}\n{}{END}", part(name, records)?);
        tables.extend(name.split(['/', ':']).next());
        rest = after;
    }
    match records.iter().find(|record| !tables.contains(&&*record.table)) {
        Some(missing) => Err(format!("the page has no part for the record of {}", missing.table).into()),
        None => Ok(made + rest),
    }
}

/// A generated part.
fn part(name: &str, records: &[Record]) -> Result<String, Box<dyn Error>> {
    if name == "summary" {
        return Ok(summary::markdown(records));
    }
    let (name, texts) = name.split_once(": ").unwrap_or((name, ""));
    let texts: Vec<&str> = texts.split(" | ").filter(|text| !text.is_empty()).collect();
    let (table, is_matrix) = name.strip_suffix("/matrix").map_or((name, false), |table| (table, true));
    let record = records.iter().find(|record| record.table == table);
    let record = record.ok_or_else(|| format!("there is no record of {table}"))?;
    if is_matrix {
        let matrix = record.matrix(&texts).ok_or_else(|| format!("the record of {table} has no matrix"))?;
        return Ok(matrix.split_inclusive('|').map(brief).collect());
    }
    rows(record, &texts)
}

/// Rows that have one of the texts: a line for each figure of ours, with the ratio to each contender.
///
/// # Errors
/// A text that no row has.
fn rows(record: &Record, texts: &[&str]) -> Result<String, Box<dyn Error>> {
    let mut unseen = texts.to_vec();
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for [name, ours, against, _, ratio, ..] in record.entries.iter().map(Entry::cells) {
        let row = format!("{name} against {against}");
        unseen.retain(|text| !row.contains(text));
        if !texts.is_empty() && !texts.iter().any(|text| row.contains(text)) {
            continue;
        }
        let line = format!("| {name} | {} |", brief(&ours));
        let index = lines.iter().position(|(other, _)| *other == line).unwrap_or_else(|| {
            lines.push((line, Vec::new()));
            lines.len() - 1
        });
        if !ratio.is_empty() {
            lines[index].1.push(format!("{}: {ratio}", brief(&against)));
        }
    }
    if let Some(text) = unseen.first() {
        return Err(format!("no row of {} has {text:?}", record.table).into());
    }
    let lines: String =
        lines.iter().map(|(line, others)| format!("{line} {} |\n", others.join("; "))).collect();
    Ok(format!("| | median | ratio to |\n|---|---|---|\n{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn the_page_is_made_of_the_records() {
        if std::env::var_os("PACELINE_WRITE_DOCS").is_some() {
            write().unwrap();
        }
        let (page, made) = current().unwrap();
        let differs = page.lines().zip(made.lines()).find(|(is, should)| is != should);
        assert!(
            page == made,
            "docs/BENCHMARKS.md is not what the records give, `paceline-bench report` writes it: {differs:?}"
        );
    }

    #[test]
    fn parts_are_made_anew_and_prose_stays() {
        let page = "prose\n<!-- begin engines: met | missed -->\nold\n<!-- end -->\nmore\n";
        let made = render(page, &[record("engines")]).unwrap();
        assert_eq!(
            made,
            "prose\n<!-- begin engines: met | missed -->\n| | median | ratio to |\n|---|---|---|\n\
             | met | 0.50 ns | other 1: 4.00 |\n| missed | 1.00 ns | other 1: 2.00 |\n<!-- end -->\nmore\n"
        );
        assert_eq!(render(&made, &[record("engines")]).unwrap(), made);
    }

    #[test]
    fn columns_are_chosen() {
        let made = part("engines/matrix: W1", &[record("engines")]).unwrap();
        assert_eq!(made, "| ns, median | W1 |\n|---|---|\n| jit | 2.0 |\n");
    }

    #[test]
    fn pages_and_records_fit() {
        let fails = |page: &str| render(page, &[record("engines")]).unwrap_err().to_string();
        assert!(fails("prose").contains("no part for the record of engines"));
        assert!(fails("<!-- begin maps --><!-- end -->").contains("no record of maps"));
        assert!(fails("<!-- begin engines -->").contains("does not end"));
        assert!(fails("<!-- begin engines: nowhere --><!-- end -->").contains("no row of engines"));
    }
}
