//! Finding test files.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::TestError;

const SUFFIX: &str = ".test.toml";

/// The test files that paths name, in the order of their names in each folder.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, TestError> {
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
    let failed = |source| TestError::Read { name: folder.display().to_string(), source };
    let mut entries: Vec<_> =
        fs::read_dir(folder).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && !name.starts_with('.') && name != "target" && name != "node_modules" {
            search(&entry.path(), files)?;
        } else if !is_folder && name.ends_with(SUFFIX) {
            files.push(entry.path().strip_prefix("./").map_or_else(|_| entry.path(), Path::to_path_buf));
        }
    }
    Ok(())
}
