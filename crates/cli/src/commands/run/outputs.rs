//! The captures that are written.

use std::fs::File;
use std::path::{Path, PathBuf};

use paceline::capture::{CaptureWriter, Header};

use super::args::RunArgs;
use super::verdicts::VerdictLog;
use crate::common::failure::Failure;
use crate::common::files::{FileError, Opened, Taken, is_stdout, name};
use crate::coverage::CoverageFile;

/// The captures that are written.
pub(super) struct Writers {
    pub(super) passed: Option<CaptureWriter<'static>>,
    pub(super) dropped: Option<CaptureWriter<'static>>,
    /// The file for events, and its name.
    pub(super) events: Option<(File, String)>,
    /// The file for coverage.
    pub(super) coverage: Option<CoverageFile>,
    /// The files for verdicts, and the lines for people.
    pub(super) verdicts: Vec<VerdictLog>,
}

/// The names of the outputs in messages.
pub(super) struct OutputNames {
    passed: Option<PathBuf>,
    dropped: Option<PathBuf>,
    events: Option<PathBuf>,
    /// The file that maps are saved to.
    saved: Option<PathBuf>,
    coverage: Option<PathBuf>,
    verdicts: Option<PathBuf>,
    /// Standard output, where packets are printed.
    printed: Option<PathBuf>,
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
        [
            &self.passed,
            &self.dropped,
            &self.events,
            &self.saved,
            &self.coverage,
            &self.verdicts,
            &self.printed,
        ]
        .into_iter()
        .flatten()
        .any(|path| is_stdout(path))
    }
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
    let events = args.events.as_deref();
    let events = events.map(|path| Opened::open_text(path, "--events", &mut taken)).transpose()?;
    let coverage = args.coverage.as_deref();
    let coverage = coverage.map(|path| CoverageFile::open(path, &mut taken)).transpose()?;
    let verdicts = args.verdicts.as_deref();
    let verdicts =
        verdicts.map(|path| Ok::<_, FileError>((path, Opened::open_text(path, "--verdicts", &mut taken)?)));
    let verdicts = verdicts.transpose()?;
    let stdout = args.print.then(|| PathBuf::from("-"));
    let print = stdout.as_deref().map(|path| Opened::open_text(path, "--print", &mut taken)).transpose()?;
    let mut logs = Vec::new();
    if let Some((path, opened)) = verdicts {
        logs.push(VerdictLog::new(path, opened.start_text()?)?);
    }
    if let Some(print) = print {
        logs.push(VerdictLog::print(print.start_text()?));
    }
    let writers = Writers {
        passed: passed.map(|output| output.start(header)).transpose()?,
        dropped: dropped.map(|output| output.start(header)).transpose()?,
        events: events.map(Opened::start_text).transpose()?,
        coverage,
        verdicts: logs,
    };
    let [passed, dropped, events, saved, coverage, verdicts] =
        [&args.out, &args.drops, &args.events, &args.save_maps, &args.coverage, &args.verdicts]
            .map(Clone::clone);
    let names = OutputNames { passed, dropped, events, saved, coverage, verdicts, printed: stdout };
    Ok((writers, names))
}
