//! The folder of generated tests: files are replaced as a whole, and only those that were made here.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::common::failure::CommandError;

/// The first line of the test files. Those without it are somebody's own.
pub(super) const MARK: &str =
    "# Made by `paceline generate`, which replaces this file as long as this line is its first.";

/// Test files cannot be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum FolderError {
    /// The system's answer.
    #[error("--tests {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A file of this name was not made here, or changed since.
    #[error("--tests {}: the file exists, and is not one that `paceline generate` made", .0.display())]
    Foreign(PathBuf),
}

impl CommandError for FolderError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Io { .. } => None,
            Self::Foreign(_) => Some("nothing was written; give another folder, or move the file".to_owned()),
        }
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    |source| FolderError::Io { path: path.to_owned(), source }
}

/// A name as part of a file's name: only letters, digits, and a few marks stay as they are.
pub(super) fn file_name(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let mut text = String::new();
    for (index, byte) in name.bytes().enumerate() {
        match is_plain(byte) && (index > 0 || byte != b'.') {
            true => text.push(char::from(byte)),
            false => text += &format!("%{byte:02x}"),
        }
    }
    text
}

/// A folder, with the names of the files that were made in it before.
pub(super) struct Folder {
    path: PathBuf,
    /// Test files, and the files of maps that they name.
    made: BTreeSet<String>,
}

impl Folder {
    /// Opens a folder, which is made if it does not exist.
    pub(super) fn open(path: &Path) -> Result<Self, FolderError> {
        fs::create_dir_all(path).map_err(failed(path))?;
        let (mut made, mut others) = (BTreeSet::new(), Vec::new());
        for entry in fs::read_dir(path).map_err(failed(path))? {
            let entry = entry.map_err(failed(path))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.ends_with(".json") {
                others.push(name);
                continue;
            }
            let text = match name.ends_with(".test.toml") {
                true => fs::read_to_string(entry.path()).unwrap_or_default(),
                false => continue,
            };
            if text.lines().next() == Some(MARK) {
                made.insert(name);
                made.extend(named(&text));
            }
        }
        made.retain(|name| !name.ends_with(".json") || others.contains(name));
        Ok(Self { path: path.to_owned(), made })
    }

    /// Writes the files of programs, whose earlier ones are removed.
    pub(super) fn replace(&self, programs: &[String], files: &[(String, String)]) -> Result<(), FolderError> {
        for (name, _) in files {
            let path = self.path.join(name);
            if path.symlink_metadata().is_ok() && !self.made.contains(name) {
                return Err(FolderError::Foreign(path));
            }
        }
        for (name, text) in files {
            let path = self.path.join(name);
            write(&path, text).map_err(failed(&path))?;
        }
        let is_stale = |name: &&String| {
            !files.iter().any(|(new, _)| new == *name) && programs.iter().any(|program| is_of(name, program))
        };
        for name in self.made.iter().filter(is_stale) {
            let path = self.path.join(name);
            fs::remove_file(&path).map_err(failed(&path))?;
        }
        Ok(())
    }
}

/// The files of maps that a test file names.
fn named(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split('"').filter(|name| name.ends_with(".json") && !name.contains('/')).map(str::to_owned)
}

/// Whether a file that was made here is of a program: a test file, or a map for a side.
fn is_of(name: &str, program: &str) -> bool {
    let Some(rest) = name.strip_prefix(program) else { return false };
    let is_seed = |rest: &str| {
        let seed = rest.strip_prefix(".seed-").and_then(|rest| rest.strip_suffix(".test.toml"));
        seed.is_some_and(|seed| seed.parse::<u64>().is_ok())
    };
    let is_map = |rest: &str| rest.starts_with('.') && rest.ends_with(".json") && rest.contains(".slot-");
    rest == ".test.toml" || is_seed(rest) || is_map(rest)
}

/// Replaces a file as a whole.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let written = fs::File::create_new(&beside)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_their_folder() {
        assert_eq!(file_name("xdp_main.cold-1"), "xdp_main.cold-1");
        assert_eq!(file_name("../x"), "%2e.%2fx");
        assert_eq!(file_name("a/b%\0ü"), "a%2fb%25%00%c3%bc");
    }

    #[test]
    fn files_of_other_programs_are_not_stale() {
        for name in ["p.test.toml", "p.seed-7.test.toml", "p.map.slot-3-1.json"] {
            assert!(is_of(name, "p"), "{name}");
        }
        for name in ["pq.test.toml", "p.q.test.toml", "p.seed-x.test.toml", "p.json"] {
            assert!(!is_of(name, "p"), "{name}");
        }
    }
}
