//! The machine of the measurements.

use std::fs;
use std::process::Command;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

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

/// Information for comparisons of figures: processor, core, kernel, compiler, date.
pub(crate) fn description(cores: Cores) -> String {
    let processor = line_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned());
    format!(
        "{processor}, core {} of {}, Linux {}, {}, {}, on {}",
        cores.pinned,
        cores.usable,
        kernel(),
        output_of("rustc", &["--version"]),
        if cfg!(debug_assertions) { "NOT OPTIMIZED" } else { "optimized" },
        output_of("date", &["-u", "+%Y-%m-%d"]),
    )
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

fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or_else(|| format!("{program} unknown"), |text| text.trim().to_owned())
}
