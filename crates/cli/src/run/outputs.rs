//! The captures that are written. Nothing is emptied before it is certain that nothing needed is lost.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use paceline::capture::{CaptureWriter, Header};

use crate::args::RunArgs;
use crate::failure::Failure;

/// The option for the file that events go to.
const EVENTS: &str = "--events";

/// A file that is in use, by device and inode: names differ where links are.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    device: u64,
    inode: u64,
    what: String,
}

impl Taken {
    /// `None` for what may be used twice: devices such as `/dev/null`, and sockets, which go both ways.
    pub(crate) fn of(metadata: &Metadata, what: &str) -> Option<Self> {
        let what = what.to_owned();
        let is_single = metadata.is_file() || metadata.file_type().is_fifo();
        is_single.then(|| Self { device: metadata.dev(), inode: metadata.ino(), what })
    }

    /// `None` as well when there is no such file.
    pub(crate) fn of_path(path: &Path, what: &str) -> Option<Self> {
        Self::of(&fs::metadata(path).ok()?, what)
    }

    /// Refuses a file that is in use already, as an option names it.
    pub(crate) fn check(
        metadata: &Metadata,
        option: &'static str,
        path: &Path,
        taken: &[Self],
    ) -> Result<Option<Self>, Failure> {
        let file = Self::of(metadata, &format!("{option} {}", path.display()));
        match file.as_ref().and_then(|file| taken.iter().find(|other| other.is(file))) {
            Some(other) => Err(Failure::SameFile { option, name: name(path), other: other.what.clone() }),
            None => Ok(file),
        }
    }

    fn is(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// The captures that are written.
pub(super) struct Writers {
    pub(super) passed: Option<CaptureWriter<File>>,
    pub(super) dropped: Option<CaptureWriter<File>>,
    /// What events go to, and its name.
    pub(super) events: Option<(File, String)>,
}

/// What they are called in messages.
pub(super) struct OutputNames {
    passed: Option<PathBuf>,
    dropped: Option<PathBuf>,
    events: Option<PathBuf>,
    /// Where the maps go.
    saved: Option<PathBuf>,
}

impl OutputNames {
    pub(super) fn passed(&self) -> String {
        self.passed.as_deref().map(name).unwrap_or_default()
    }

    pub(super) fn dropped(&self) -> String {
        self.dropped.as_deref().map(name).unwrap_or_default()
    }

    /// Whether packets, events or maps go to standard output, so that nothing else may.
    pub(super) fn use_stdout(&self) -> bool {
        [&self.passed, &self.dropped, &self.events, &self.saved]
            .into_iter()
            .flatten()
            .any(|path| is_stdout(path))
    }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// What a message calls an output.
pub(crate) fn name(path: &Path) -> String {
    if is_stdout(path) { "standard output".to_owned() } else { path.display().to_string() }
}

/// Creates the outputs and writes their headers. Fails, and changes no file, if one of them is a file that is in use
/// already or both are the same.
pub(super) fn create(
    args: &RunArgs,
    header: &Header,
    mut taken: Vec<Taken>,
) -> Result<(Writers, OutputNames), Failure> {
    let mut open =
        |path: Option<&Path>, option| path.map(|path| Opened::open(path, option, &mut taken)).transpose();
    let passed = open(args.out.as_deref(), "--out")?;
    let dropped = open(args.drops.as_deref(), "--drops")?;
    let events = open(args.events.as_deref(), EVENTS)?;
    let writers = Writers {
        passed: passed.map(|output| output.start(header)).transpose()?,
        dropped: dropped.map(|output| output.start(header)).transpose()?,
        events: events.map(Opened::start_events).transpose()?,
    };
    let [passed, dropped, events, saved] =
        [&args.out, &args.drops, &args.events, &args.save_maps].map(Clone::clone);
    let names = OutputNames { passed, dropped, events, saved };
    Ok((writers, names))
}

/// An output that is open and still has what was in it.
pub(crate) struct Opened {
    file: File,
    path: PathBuf,
    /// Whether it was not there before; it goes again if nothing comes of it.
    is_new: bool,
}

impl Opened {
    pub(crate) fn open(path: &Path, option: &'static str, taken: &mut Vec<Taken>) -> Result<Self, Failure> {
        let failed = |source| Failure::CreateOutput { name: name(path), source };
        let (file, is_new) = if is_stdout(path) {
            // Events are text there.
            if io::stdout().is_terminal() && option != EVENTS {
                return Err(Failure::Terminal { option, name: path.display().to_string() });
            }
            (io::stdout().as_fd().try_clone_to_owned().map_err(failed)?.into(), false)
        } else {
            open_without_emptying(path).map_err(failed)?
        };
        let opened = Self { file, path: path.to_owned(), is_new };
        opened.claim(option, taken)?;
        Ok(opened)
    }

    /// Enters the file among those in use, unless it is there.
    fn claim(&self, option: &'static str, taken: &mut Vec<Taken>) -> Result<(), Failure> {
        let failed = |source| Failure::CreateOutput { name: name(&self.path), source };
        let metadata = self.file.metadata().map_err(failed)?;
        taken.extend(Taken::check(&metadata, option, &self.path, taken)?);
        Ok(())
    }

    /// Empties the file.
    fn emptied(&self) -> Result<File, Failure> {
        let failed = |source| Failure::CreateOutput { name: name(&self.path), source };
        let file = self.file.try_clone().map_err(failed)?;
        // What the shell opened for us is the shell's to empty or not.
        if !is_stdout(&self.path) && file.metadata().map_err(failed)?.is_file() {
            file.set_len(0).map_err(failed)?;
        }
        Ok(file)
    }

    /// Empties the file that events go to, and gives it with its name.
    fn start_events(mut self) -> Result<(File, String), Failure> {
        let file = self.emptied()?;
        self.is_new = false;
        Ok((file, name(&self.path)))
    }

    /// Empties the file and starts the capture.
    pub(crate) fn start(mut self, header: &Header) -> Result<CaptureWriter<File>, Failure> {
        let file = self.emptied()?;
        let writer = CaptureWriter::new(file, header)
            .map_err(|source| Failure::Write { name: name(&self.path), source })?;
        self.is_new = false;
        Ok(writer)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.is_new {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn open_without_emptying(path: &Path) -> io::Result<(File, bool)> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        // Also for a link to a file that is not there yet.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            Ok((file, false))
        }
        Err(error) => Err(error),
    }
}
