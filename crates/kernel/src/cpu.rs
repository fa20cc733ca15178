//! The CPU of test runs; per-CPU maps are compared on that CPU.

use std::fs;

use crate::sys::{self, CpuSet};

/// Number of CPUs for which the kernel has per-CPU values (`/sys/devices/system/cpu/possible`); 1 if unknown.
#[must_use]
pub fn possible_cpus() -> usize {
    fs::read_to_string("/sys/devices/system/cpu/possible")
        .ok()
        .and_then(|list| count_cpus(list.trim()))
        .unwrap_or(1)
}

/// Parses a list such as `0-3,8`: per-CPU values have a place for every number up to the highest.
fn count_cpus(list: &str) -> Option<usize> {
    let last = list.rsplit([',', '-']).next()?;
    last.parse::<usize>().ok()?.checked_add(1)
}

/// Pins the calling thread to one CPU until it is dropped.
pub struct Pinned {
    cpu: usize,
    before: Option<CpuSet>,
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pinned").finish_non_exhaustive()
    }
}

/// Pins the calling thread to the first CPU, or to its current one if the first is not allowed: test runs use the CPU of the
/// caller, and programs read its number and its per-CPU values.
#[must_use]
pub fn pin() -> Pinned {
    let before = sys::affinity().ok();
    let cpu = if sys::set_affinity(&CpuSet::one(0)).is_ok() { 0 } else { sys::current_cpu() };
    if cpu != 0 {
        // If this fails too, the thread may only run where it is.
        let _ = sys::set_affinity(&CpuSet::one(cpu));
    }
    Pinned { cpu, before }
}

impl Pinned {
    /// The CPU's number.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.cpu
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sys::set_affinity(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::count_cpus;

    #[test]
    fn counts_up_to_the_highest_cpu() {
        assert_eq!(count_cpus("0"), Some(1));
        assert_eq!(count_cpus("0-3"), Some(4));
        assert_eq!(count_cpus("0-3,8"), Some(9));
        assert_eq!(count_cpus(""), None);
    }
}
