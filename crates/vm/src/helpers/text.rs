//! `bpf_strncmp` (`kernel/bpf/helpers.c`).

use super::args;
use crate::host::Host;

/// `long bpf_strncmp(s1, s1_size, s2)`
pub(super) unsafe extern "C" fn strncmp(s1: u64, size: u64, s2: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (first, second) = unsafe { (args::bytes(s1, size as u32 as usize), args::text(s2)) };
    compare(&first, &second) as u64
}

/// -1, 0 or 1, up to the first zero byte or the end of the first text. The second one ends in a zero byte.
fn compare(first: &[u8], second: &[u8]) -> i64 {
    for (a, b) in first.iter().zip(second) {
        match a.cmp(b) {
            std::cmp::Ordering::Equal if *a == 0 => return 0,
            std::cmp::Ordering::Equal => {}
            other => return other as i64,
        }
    }
    0
}
