//! The maps of a run, kept in a file from one run to the next.
//!
//! The file is what `--maps --json` prints, with an element in each line: `{"maps": {NAME: ELEMENTS, ...}}`, and in chains of
//! several objects the same by object.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use paceline::contents::{ContentsError, MapContents, SavedMaps};
use paceline::{Collection, MapSpec, Object};
use serde_json::Value as Json;

use super::show::{is_restorable, write_state};
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::files::{FileError, Taken, is_stdout, name};
use crate::common::report::StdoutError;

/// The contents of an object's maps that an earlier run saved; the object is one of several if it has a name.
pub(crate) fn restored(
    saved: &SavedMaps,
    object: &Object,
    one_of: Option<&str>,
) -> Result<Vec<MapContents>, ContentsError> {
    let (contents, constants) = saved.of(object, one_of)?;
    for name in constants {
        console::note(format_args!(
            "--restore-maps: {name} is left out: constants are the object's own; `--map {name}=FILE` sets them"
        ));
    }
    Ok(contents)
}

/// The names of objects, told apart where one is there several times: `a.o`, `a.o#2`.
pub(crate) fn distinct_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        let numbered = (2..).map(|number: u32| format!("{name}#{number}"));
        let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
        distinct.extend(candidates.find(|candidate| !distinct.contains(candidate)));
    }
    distinct
}

/// The file that maps are saved to after a run. Until then it stays as it was.
pub(crate) struct SaveTo {
    path: PathBuf,
    /// The new file beside it, gone again if nothing comes of it; `None` for standard output.
    beside: Option<PathBuf>,
    file: Option<File>,
}

impl SaveTo {
    /// Makes the new file, which shows that there is a place for it.
    pub(crate) fn open(path: &Path, taken: &[Taken]) -> Result<Self, FileError> {
        if is_stdout(path) {
            let failed = |source| FileError::Io { name: name(path), source };
            let file = io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(failed)?;
            Taken::check(&file.metadata().map_err(failed)?, OPTION, path, taken)?;
            return Ok(Self { path: path.to_owned(), beside: None, file: Some(file) });
        }
        // The target of a link is replaced, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let failed = |source| FileError::Io { name: name(&path), source };
        if let Ok(metadata) = fs::metadata(&path) {
            Taken::check(&metadata, OPTION, &path, taken)?;
            if !metadata.is_file() {
                return Err(failed(io::Error::other("this is no file that could be replaced")));
            }
        }
        let file_name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(file_name);
        hidden.push(format!(".{}", std::process::id()));
        let beside = path.with_file_name(hidden);
        let file = File::options().write(true).create_new(true).open(&beside).map_err(failed)?;
        Ok(Self { path, beside: Some(beside), file: Some(file) })
    }

    /// Standard output, where it is that.
    pub(crate) fn standard_output(&self) -> Option<Taken> {
        let file = self.file.as_ref().filter(|_| self.beside.is_none())?;
        Taken::of(&file.metadata().ok()?, "--save-maps -")
    }

    /// Writes the maps of all objects, and replaces the file.
    pub(crate) fn save(mut self, objects: &[(&str, &Collection)]) -> Result<(), Failure> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let saved = write_file(file, objects).and_then(|file| match &self.beside {
            Some(beside) => file.sync_all().and_then(|()| fs::rename(beside, &self.path)),
            None => Ok(()),
        });
        saved.map_err(|source| match self.beside {
            Some(_) => FileError::Io { name: name(&self.path), source }.into(),
            None => Failure::from(StdoutError(source)),
        })?;
        for (_, collection) in objects {
            announce_missing(collection);
        }
        Ok(())
    }
}

impl Drop for SaveTo {
    fn drop(&mut self) {
        // A renamed file no longer exists here.
        let _ = self.beside.as_ref().map(fs::remove_file);
    }
}

const OPTION: &str = "--save-maps";

fn write_file(file: File, objects: &[(&str, &Collection)]) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    write!(out, "{{\"maps\": {{")?;
    match objects {
        [(_, only)] => write_state(&mut out, only, "  ")?,
        several => {
            let names = distinct_names(several.iter().map(|(name, _)| *name));
            let mut separator = "";
            for (name, (_, collection)) in names.into_iter().zip(several) {
                write!(out, "{separator}\n  {}: {{", Json::from(name))?;
                write_state(&mut out, collection, "    ")?;
                write!(out, "\n  }}")?;
                separator = ",";
            }
        }
    }
    writeln!(out, "\n}}}}")?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Notes the maps that cannot be restored in a later run.
fn announce_missing(collection: &Collection) {
    let holds_events = |spec: &MapSpec| spec.kind.is_ring_buffer() || spec.kind.holds_events();
    for map in collection.maps() {
        let spec = map.spec();
        if !is_restorable(map) && !map.is_frozen() && !holds_events(spec) {
            console::note(format_args!(
                "{OPTION}: map {} is left out: what is in a {} cannot be {}",
                spec.name,
                spec.kind,
                if spec.kind.tests_membership() { "listed" } else { "both read and written" }
            ));
        }
    }
}
