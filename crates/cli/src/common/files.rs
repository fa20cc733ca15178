//! Files of a command: inputs that no output may replace, and outputs, which are not emptied before all of them are open.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use paceline::capture::{CaptureWriter, Header, WriteError};

use super::failure::CommandError;

/// The reason why an output cannot be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("{name}")]
    Io { name: String, source: io::Error },
    #[error("{name}")]
    Write { name: String, source: WriteError },
    #[error("{option} {name} is the same file as {other}")]
    SameFile { option: &'static str, name: String, other: String },
    #[error("{option} {name}: packets are not written to a terminal")]
    Terminal { option: &'static str, name: String },
}

impl CommandError for FileError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::SameFile { .. } => Some("nothing was written; give another name".to_owned()),
            Self::Terminal { .. } => Some("send standard output to a file or another command".to_owned()),
            Self::Io { name, source } if source.kind() == ErrorKind::NotFound => {
                let folder = Path::new(name).parent().filter(|folder| !folder.as_os_str().is_empty())?;
                (!folder.exists()).then(|| format!("there is no folder `{}`", folder.display()))
            }
            Self::Io { .. } | Self::Write { .. } => None,
        }
    }

    fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Write { source: WriteError::BrokenPipe, .. })
    }
}

/// A file that is in use, by device and inode: names differ where links are.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    device: u64,
    inode: u64,
    what: String,
}

impl Taken {
    /// `None` for files that may be used twice: devices such as `/dev/null`, and sockets.
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
    ) -> Result<Option<Self>, FileError> {
        let file = Self::of(metadata, &format!("{option} {}", path.display()));
        match file.as_ref().and_then(|file| taken.iter().find(|other| other.is(file))) {
            Some(other) => Err(FileError::SameFile { option, name: name(path), other: other.what.clone() }),
            None => Ok(file),
        }
    }

    fn is(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// Whether a path names standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// The name of an output in messages.
pub(crate) fn name(path: &Path) -> String {
    if is_stdout(path) { "standard output".to_owned() } else { path.display().to_string() }
}

/// An output that is open but not yet truncated.
pub(crate) struct Opened {
    file: File,
    path: PathBuf,
    /// Whether it is new: it is removed again if the command fails.
    is_new: bool,
}

impl Opened {
    /// Opens an output for packets.
    pub(crate) fn open(path: &Path, option: &'static str, taken: &mut Vec<Taken>) -> Result<Self, FileError> {
        if is_stdout(path) && io::stdout().is_terminal() {
            return Err(FileError::Terminal { option, name: path.display().to_string() });
        }
        Self::open_text(path, option, taken)
    }

    /// Opens an output for text, which may go to a terminal.
    pub(crate) fn open_text(
        path: &Path,
        option: &'static str,
        taken: &mut Vec<Taken>,
    ) -> Result<Self, FileError> {
        let failed = |source| FileError::Io { name: name(path), source };
        let (file, is_new) = if is_stdout(path) {
            (io::stdout().as_fd().try_clone_to_owned().map_err(failed)?.into(), false)
        } else {
            open_without_emptying(path).map_err(failed)?
        };
        let opened = Self { file, path: path.to_owned(), is_new };
        opened.claim(option, taken)?;
        Ok(opened)
    }

    /// Adds the file to those in use, unless it is among them.
    fn claim(&self, option: &'static str, taken: &mut Vec<Taken>) -> Result<(), FileError> {
        let failed = |source| FileError::Io { name: name(&self.path), source };
        let metadata = self.file.metadata().map_err(failed)?;
        taken.extend(Taken::check(&metadata, option, &self.path, taken)?);
        Ok(())
    }

    /// Empties the file.
    fn emptied(&self) -> Result<File, FileError> {
        let failed = |source| FileError::Io { name: name(&self.path), source };
        let file = self.file.try_clone().map_err(failed)?;
        // A file that the shell opened is not truncated here.
        if !is_stdout(&self.path) && file.metadata().map_err(failed)?.is_file() {
            file.set_len(0).map_err(failed)?;
        }
        Ok(file)
    }

    /// Truncates the file, and returns it with its name.
    pub(crate) fn start_text(mut self) -> Result<(File, String), FileError> {
        let file = self.emptied()?;
        self.is_new = false;
        Ok((file, name(&self.path)))
    }

    /// Replaces the contents of the file with text.
    pub(crate) fn write_text(self, text: &str) -> Result<(), FileError> {
        let (mut file, name) = self.start_text()?;
        file.write_all(text.as_bytes()).map_err(|source| FileError::Io { name, source })
    }

    /// Empties the file and starts the capture.
    pub(crate) fn start(mut self, header: &Header) -> Result<CaptureWriter<'static>, FileError> {
        let file = self.emptied()?;
        let writer = CaptureWriter::new(file, header)
            .map_err(|source| FileError::Write { name: name(&self.path), source })?;
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
