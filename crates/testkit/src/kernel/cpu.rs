//! Which CPU programs run on, because per-CPU maps are compared on that one.

use std::fs;

use super::KernelError;
use super::sys;

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

/// The CPU that the calling thread runs on.
#[must_use]
pub fn running_cpu() -> usize {
    sys::current_cpu()
}

/// Keeps the calling thread on the CPU it runs on, so that every test run uses the same per-CPU values; the CPU.
///
/// # Errors
/// What `sched_setaffinity(2)` says.
pub fn pin_to_current_cpu() -> Result<usize, KernelError> {
    let cpu = sys::current_cpu();
    sys::pin(cpu).map_err(|errno| KernelError::new("pin thread", errno))?;
    Ok(cpu)
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
