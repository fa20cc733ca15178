//! Text cases after parsing, before they run on engines. `tests/cases/README.md` describes the format.

mod chain;
mod classic;
mod data;
mod directive;
mod error;
mod expand;
mod layer;
mod map;
mod model;
mod parse;
mod source;
mod types;
mod write;

use std::fs;
use std::path::{Path, PathBuf};

pub use chain::CaseChain;
pub use data::parse_data;
pub use error::{DataError, ExpandError, FileError, ParseError, Problem};
pub use model::{
    ByteOrder, Case, CaseKind, CaseNetwork, Change, Classic, Context, Expect, Note, NoteKind, Run, Verifier,
};
pub use write::{CaseRun, write_case, write_cases};

/// Finds all `.case` files below a directory, in order of their paths.
///
/// # Errors
/// The first directory that cannot be read.
pub fn find_files(root: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    paths.sort();
    Ok(paths)
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) -> Result<(), FileError> {
    let failed = |error| FileError::Read { path: directory.to_owned(), error };
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "case") {
            paths.push(path);
        }
    }
    Ok(())
}

/// Reads the cases of a file, each of which must have a comment line with its purpose directly above it.
///
/// # Errors
/// It cannot be read or is no case file.
pub fn read_file(path: &Path) -> Result<Vec<Case>, FileError> {
    let text = read(path)?;
    let cases = expand::check_purposes(&text).and_then(|()| parse(&text, path.parent()));
    cases.map_err(|error| FileError::Parse { path: path.to_owned(), error })
}

/// The text of a file with snippets, preludes and tables expanded.
///
/// # Errors
/// The file cannot be read or expanded.
pub fn expand_file(path: &Path) -> Result<String, FileError> {
    let text = read(path)?;
    let expanded = expand::expand(&text, path.parent());
    let expanded = expanded.map_err(|error| FileError::Parse { path: path.to_owned(), error })?;
    Ok(expanded.text().to_owned())
}

fn read(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(|error| FileError::Read { path: path.to_owned(), error })
}

/// The cases of a text without includes. Comments with their purpose are not required, because such texts are generated.
///
/// # Errors
/// The first line that is wrong.
pub fn parse_file(text: &str) -> Result<Vec<Case>, ParseError> {
    parse(text, None)
}

/// The cases of a text whose includes are relative to a directory.
fn parse(text: &str, directory: Option<&Path>) -> Result<Vec<Case>, ParseError> {
    let expanded = expand::expand(text, directory)?;
    let mut cases = parse::parse_expanded(expanded.text()).map_err(|error| expanded.place(error))?;
    for case in &mut cases {
        case.line = expanded.line(case.line);
        case.runs.iter_mut().for_each(|run| run.line = expanded.line(run.line));
    }
    Ok(cases)
}
