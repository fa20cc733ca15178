//! Time for which other threads had the processor of this one.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The scheduler's counts of the thread that made this (`/proc/thread-self/schedstat`, proc(5) and
/// `Documentation/scheduler/sched-stats.rst`).
#[derive(Debug)]
pub struct Waits {
    file: Option<File>,
    last: Duration,
}

impl Waits {
    /// The waits of this thread from now on. Without that file there are none.
    #[must_use]
    pub fn of_this_thread() -> Self {
        let mut waits = Self { file: File::open("/proc/thread-self/schedstat").ok(), last: Duration::ZERO };
        waits.last = waits.in_all().unwrap_or_default();
        waits
    }

    /// The time that the thread has waited for a processor since it began; `None` if the kernel does not count it.
    #[must_use]
    pub fn in_all(&self) -> Option<Duration> {
        let mut text = [0; 80];
        let len = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        parse(text.get(..len)?)
    }

    /// The time that it has waited since this was asked last.
    pub fn since(&mut self) -> Duration {
        let Some(now) = self.in_all() else { return Duration::ZERO };
        let before = std::mem::replace(&mut self.last, now);
        now.saturating_sub(before)
    }
}

/// The second of three numbers: nanoseconds in a queue for a processor.
fn parse(text: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(text).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(parse(b"4026 103071 7\n"), Some(Duration::from_nanos(103_071)));
        assert_eq!(parse(b"4026\n"), None);
    }
}
