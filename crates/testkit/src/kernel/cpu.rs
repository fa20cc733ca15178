//! Which CPU programs run on, because per-CPU maps are compared on that one.

use std::fs;

use super::sys::{self, CpuSet};

/// How many CPUs the kernel keeps per-CPU values for (`/sys/devices/system/cpu/possible`); 1 if it does not say.
#[must_use]
pub fn possible_cpus() -> usize {
    fs::read_to_string("/sys/devices/system/cpu/possible")
        .ok()
        .and_then(|list| count_cpus(list.trim()))
        .unwrap_or(1)
}

/// Counts a list such as `0-3,8`: per-CPU values are laid out up to the highest number.
fn count_cpus(list: &str) -> Option<usize> {
    let last = list.rsplit([',', '-']).next()?;
    last.parse::<usize>().ok()?.checked_add(1)
}

/// Keeps the calling thread on one CPU until it is dropped.
pub struct Pinned {
    cpu: usize,
    before: Option<CpuSet>,
}

/// Keeps the calling thread on the first CPU, or on the one it runs on if it may not run there: test runs happen on
/// the CPU that asks for them, and programs see its number and its per-CPU values.
#[must_use]
pub fn pin() -> Pinned {
    let before = sys::affinity().ok();
    let cpu = if sys::set_affinity(&CpuSet::one(0)).is_ok() { 0 } else { sys::current_cpu() };
    if cpu != 0 {
        // That it fails again means that no other CPU is allowed either.
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
