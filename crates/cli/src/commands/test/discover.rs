//! Finding tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::case::{TestFile, Tests};
use super::error::TestError;
use super::in_c::{find, may_have_tests};
use super::read::read;
use crate::common::failure::Failure;
use crate::object::Opener;

const SUFFIX: &str = ".test.toml";

/// The tests that paths name, in the order of the names in each folder.
pub(super) fn tests(paths: &[PathBuf], opener: &Opener) -> Result<Vec<TestFile>, Failure> {
    files(paths)?.iter().map(|path| tests_of(path, opener)).collect()
}

/// Reads a test file, or the tests of an object.
fn tests_of(path: &Path, opener: &Opener) -> Result<TestFile, Failure> {
    if !is_object(path) {
        return Ok(read(path)?);
    }
    let name = path.display().to_string();
    let object = opener.open(path, None)?;
    let tests = find(&object).map_err(|source| TestError::InC { name: name.clone(), source })?;
    match tests.is_empty() {
        true => Err(TestError::NoTestsInC(name).into()),
        false => Ok(TestFile { path: path.to_owned(), name, tests: Tests::InC(tests) }),
    }
}

/// Test files are text.
fn is_object(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "o")
}

fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, TestError> {
    let here = [PathBuf::from(".")];
    let paths = if paths.is_empty() { &here } else { paths };
    let mut files = Vec::new();
    for path in paths {
        let before = files.len();
        match path.is_dir() {
            true => search(path, &mut files)?,
            false => files.push(path.clone()),
        }
        if files.len() == before {
            return Err(TestError::NoFiles(path.clone()));
        }
    }
    Ok(files)
}

/// Searches a folder and those in it, but for hidden ones and links to folders.
fn search(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), TestError> {
    let failed =
        |source: io::Error| TestError::Read { name: folder.display().to_string(), source: source.into() };
    let mut entries: Vec<_> =
        fs::read_dir(folder).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && !name.starts_with('.') && name != "target" && name != "node_modules" {
            search(&path, files)?;
        } else if !is_folder && (name.ends_with(SUFFIX) || is_object(&path) && has_tests(&path)) {
            files.push(path.strip_prefix("./").map_or_else(|_| path.clone(), Path::to_path_buf));
        }
    }
    Ok(())
}

/// A file that cannot be read is no object with tests.
fn has_tests(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| may_have_tests(&bytes))
}
