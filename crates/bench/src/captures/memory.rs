//! Checks that memory does not depend on the length of a capture.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::work::{copy, read};
use super::workload::{Format, write};
use crate::machine;
use crate::report::{Bar, Figure, Row, Unit};
use crate::settings::{Rows, Settings};

/// Environment variable that makes a run of this program read or copy the capture named in it and print its peak of memory.
const PEAK_OF: &str = "PACELINE_BENCH_PEAK_OF";
const PEAK_HOW: &str = "PACELINE_BENCH_PEAK_HOW";

/// Maximum additional memory for a capture ten times as long. Two equal runs differ by some hundred KiB, depending on the
/// kernel's mappings; the larger capture is longer by more than 100 MiB.
const SLACK_KIB: u64 = 1024;

/// Does the work of a run that was started to measure its memory; `None` in other runs.
pub(crate) fn child() -> Option<ExitCode> {
    let file = PathBuf::from(std::env::var_os(PEAK_OF)?);
    let work = if std::env::var_os(PEAK_HOW).is_some_and(|how| how == "read") { read } else { copy };
    if let Err(error) = work(&file) {
        eprintln!("{}: {error}", file.display());
        return Some(ExitCode::FAILURE);
    }
    println!("{}", machine::line_of("/proc/self/status", "VmHWM").unwrap_or_default());
    Some(ExitCode::SUCCESS)
}

/// Peak resident memory in KiB of a process that handles a capture.
fn peak(file: &Path, how: &str) -> Result<u64, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).env(PEAK_OF, file).env(PEAK_HOW, how).output()?;
    let text = String::from_utf8(output.stdout)?;
    let kib = text.split_whitespace().next().ok_or("the measured run printed nothing")?;
    Ok(kib.parse()?)
}

pub(crate) fn rows(settings: Settings, folder: &Path) -> Rows {
    let packets = if settings.smoke { 2_000 } else { 200_000 };
    let mut rows = Vec::new();
    for format in [Format::Pcap, Format::Pcapng] {
        let (small, large) = (folder.join("small"), folder.join("large"));
        write(&small, format, packets, 64)?;
        write(&large, format, packets * 10, 64)?;
        for how in ["read", "read and write"] {
            let (ours, against) = (peak(&large, how)?, peak(&small, how)?);
            let name = format!("peak memory to {how} {} packets of {}", packets * 10, format.name());
            let figure = Figure::Size { ours, against: Some(against), unit: Unit::KiB };
            let bar = Bar::Most((against + SLACK_KIB) as f64);
            rows.push(Row::new(name, format!("{packets} packets"), figure).with_bar(Some(bar)));
        }
    }
    Ok(rows)
}
