//! Signs that a machine does other things meanwhile.

use std::fs;
use std::thread::available_parallelism;

use super::statistics::Summary;

/// Processes that run for each processor from which times are said to be those of a busy machine.
const BUSY: f64 = 0.5;

/// The median of the rounds to the best one from which they are said to be uneven.
const UNEVEN: f64 = 1.1;

/// A warning if other programs run on the machine, by its load before the measurement (proc_loadavg(5)).
pub(crate) fn busy_machine() -> Option<String> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split(' ').next()?.parse().ok()?;
    let processors = available_parallelism().ok()?.get();
    (load >= BUSY * processors as f64).then(|| {
        format!("the machine is busy: a load of {load} on {processors} processors; times are too long")
    })
}

/// A warning if rounds differ more than those of a machine that does nothing else.
pub(crate) fn uneven(what: &str, summary: &Summary) -> Option<String> {
    let ratio = summary.median / summary.min.max(f64::MIN_POSITIVE);
    (summary.min > 0.0 && ratio > UNEVEN).then(|| {
        let percent = 100.0 * (ratio - 1.0);
        format!("{what}: the median is {percent:.0}% above the best round; the machine is busy, or its clock changes")
    })
}
