//! Files of coverage.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use paceline::coverage::Report;

use crate::common::console;
use crate::common::failure::CommandError;
use crate::common::files::{FileError, Opened, Taken, name};

/// Coverage cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{name}")]
pub(crate) struct CoverageFileError {
    name: String,
    source: io::Error,
}

impl CommandError for CoverageFileError {
    fn is_closed_pipe(&self) -> bool {
        self.source.kind() == io::ErrorKind::BrokenPipe
    }
}

/// The file that coverage is written to when a command is done.
pub(crate) struct CoverageFile {
    file: Opened,
    path: PathBuf,
}

impl CoverageFile {
    /// Opens the file; until the report is there it stays as it was.
    pub(crate) fn open(path: &Path, taken: &mut Vec<Taken>) -> Result<Self, FileError> {
        Ok(Self { file: Opened::open_text(path, "--coverage", taken)?, path: path.to_owned() })
    }

    /// Writes a report, in the form that the file's name asks for, and its totals to standard error.
    pub(crate) fn write(self, report: &Report, test: &str) -> Result<(), crate::common::failure::Failure> {
        let is_listing = self.path.extension().is_some_and(|extension| extension == "txt");
        let name = name(&self.path);
        let (file, _) = self.file.start_text()?;
        let mut out = BufWriter::new(file);
        let written = match is_listing {
            true => report.write_listing(&mut out, |path| fs::read_to_string(path).ok()),
            false => report.write_lcov(&mut out, test),
        };
        written.and_then(|()| out.flush()).map_err(|source| CoverageFileError { name, source })?;
        if report.files.is_empty() {
            console::note("no coverage: the objects have no source lines; compile them with `clang -g`");
        }
        console::warnings(|out| report.write_summary(out));
        Ok(())
    }
}
