//! The page of the benchmarks: prose by hand, and between markers the tables that the records give.

mod dispatcher;
mod summary;

use std::error::Error;
use std::fs;
use std::path::Path;

use crate::record::{self, Record};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/BENCHMARKS.md");

const BEGIN: &str = "<!-- begin ";
const CLOSE: &str = " -->";

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
    let mut names = Vec::new();
    while let Some(start) = rest.find(BEGIN) {
        let after = &rest[start + BEGIN.len()..];
        let name = &after[..after.find(CLOSE).ok_or("a marker is not closed")?];
        let end = format!("<!-- end {name} -->");
        let stop = after.find(&end).ok_or_else(|| format!("part {name} does not end"))?;
        made += &format!("{}{BEGIN}{name}{CLOSE}\n{}{end}", &rest[..start], part(name, records)?);
        rest = &after[stop + end.len()..];
        names.push(name);
    }
    match records.iter().find(|record| !names.contains(&&*record.table)) {
        Some(missing) => Err(format!("the page has no part for the record of {}", missing.table).into()),
        None => Ok(made + rest),
    }
}

/// A generated part.
fn part(name: &str, records: &[Record]) -> Result<String, Box<dyn Error>> {
    if name == "summary" {
        return Ok(summary::markdown(records));
    }
    let table = name.split('/').next().unwrap_or(name);
    let record = records.iter().find(|record| record.table == table);
    let record = record.ok_or_else(|| format!("there is no record of {table}"))?;
    match name {
        "dispatcher/patches" => dispatcher::markdown(record),
        name if name == table => Ok(tables(record)),
        _ => Err(format!("nothing generates {name}").into()),
    }
}

/// How to repeat the run, where it was made, and its tables.
fn tables(record: &Record) -> String {
    format!("`{}`\n\n{}\n\n{}", record.run.command, record.run.description(), record.markdown())
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
        let page = "prose\n<!-- begin engines -->\nold\n<!-- end engines -->\nmore\n";
        let made = render(page, &[record("engines")]).unwrap();
        assert!(made.starts_with("prose\n<!-- begin engines -->\n`command`\n"), "{made}");
        assert!(made.ends_with("|\n<!-- end engines -->\nmore\n") && !made.contains("old"), "{made}");
        assert_eq!(render(&made, &[record("engines")]).unwrap(), made);
    }

    #[test]
    fn pages_and_records_fit() {
        let fails = |page: &str| render(page, &[record("engines")]).unwrap_err().to_string();
        assert!(fails("prose").contains("no part for the record of engines"));
        assert!(fails("<!-- begin maps --><!-- end maps -->").contains("no record of maps"));
        assert!(fails("<!-- begin engines -->").contains("does not end"));
        assert!(fails("<!-- begin engines/x --><!-- end engines/x -->").contains("nothing generates"));
    }
}
