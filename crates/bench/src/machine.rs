//! The machine of the measurements.

use std::fs;
use std::process::Command;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::record::Run;

/// The measuring core, and the number of cores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    pinned: usize,
    usable: u32,
}

/// Pins this thread to the last core that it may run on: the first ones serve interrupts.
pub(crate) fn pin() -> rustix::io::Result<Cores> {
    let allowed = sched_getaffinity(None)?;
    let pinned = (0..CpuSet::MAX_CPU).rev().find(|&core| allowed.is_set(core)).unwrap_or(0);
    let mut only = CpuSet::new();
    only.set(pinned);
    sched_setaffinity(None, &only)?;
    Ok(Cores { pinned, usable: allowed.count() })
}

/// The circumstances of a run of a table, to judge and to repeat it.
pub(crate) fn run(cores: Cores, table: &str) -> Run {
    Run {
        machine: line_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned()),
        core: cores.pinned as u64,
        cores: u64::from(cores.usable),
        kernel: kernel(),
        rustc: output_of("rustc", &["--version"]).unwrap_or_else(|| "rustc unknown".to_owned()),
        optimized: !cfg!(debug_assertions),
        date: output_of("date", &["-u", "+%Y-%m-%d"]).unwrap_or_default(),
        commit: git(&["rev-parse", "--short=12", "HEAD"]),
        dirty: git(&["status", "--porcelain", "--", ":/", ":!/docs"]).map(|changes| !changes.is_empty()),
        command: command(table),
    }
}

/// The command that runs a table with the features of this build.
fn command(table: &str) -> String {
    let features = [
        ("rivals", cfg!(feature = "rivals")),
        ("native", cfg!(feature = "native")),
        ("libpcap", cfg!(feature = "libpcap")),
        ("dpdk", cfg!(feature = "dpdk")),
        ("kernel", cfg!(feature = "kernel")),
    ];
    let features: Vec<&str> =
        features.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect();
    let features =
        if features.is_empty() { String::new() } else { format!(" --features {}", features.join(",")) };
    format!("cargo run --release -p paceline-bench{features} -- {table}")
}

/// The kernel's release.
pub(crate) fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Value of the first `key: value` line of a file.
pub(crate) fn line_of(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let (_, value) = text.lines().filter_map(|line| line.split_once(':')).find(|(k, _)| k.trim() == key)?;
    Some(value.trim().to_owned())
}

/// Output of git in the sources of this build.
fn git(arguments: &[&str]) -> Option<String> {
    let in_sources = ["-C", env!("CARGO_MANIFEST_DIR")];
    output_of("git", &[&in_sources, arguments].concat())
}

/// Output of a program, without the last line break; `None` if it fails.
fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
