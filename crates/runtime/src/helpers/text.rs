//! `bpf_strncmp` (`kernel/bpf/helpers.c`).

use super::mem::{ReadMem, Text};
use crate::host::Host;

/// `long bpf_strncmp(s1, s1_size, s2)`
pub(super) fn strncmp(_: &mut Host, s1: ReadMem<'_>, s2: Text<'_>) -> u64 {
    compare(&s1.read(), &s2.read()) as u64
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
