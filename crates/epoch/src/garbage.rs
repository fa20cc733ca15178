//! Retired values that wait for the end of their grace period: limits and reports.
//!
//! Each retirement frees up to 64 values whose grace period is over. `Domain::admit` is asked before a program, an inner map or a
//! callback is replaced: while a worker stalls and the limit is reached, the change is refused (`UpdateError::Stalled`,
//! `InstallError::Stalled`, `ENOMEM` from maps). Removals are not refused, because each follows an addition that was admitted.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// Number of waiting values at which a retirement runs the heavy fence, which interrupts other CPUs.
const BATCH: usize = 32;
/// Maximum number of values that one retirement frees: the backlog of a stall shrinks faster than new values arrive, but no single
/// writer frees all of it.
pub(crate) const AT_ONCE: usize = 64;
/// Number of waiting bytes at which a retirement runs the fence in any case.
const BATCH_BYTES: usize = 1 << 20;

/// Limit of waiting values in a [`Domain`](crate::Domain), at which [`Domain::admit`](crate::Domain::admit) refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Number of retired values.
    pub objects: usize,
    /// Sum of their sizes in bytes, as given at retirement.
    pub bytes: usize,
}

impl Default for Limit {
    /// 32768 values and 128 MiB: seconds of changes while a worker stalls.
    fn default() -> Self {
        Self { objects: 1 << 15, bytes: 128 << 20 }
    }
}

/// The values of a domain that wait for the end of their grace period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of retired values.
    pub objects: usize,
    /// Sum of their sizes in bytes, as given at retirement ([`Domain::retire_sized`](crate::Domain::retire_sized)).
    pub bytes: usize,
    /// Age of the oldest one: the reader that holds it back was pinned before that.
    pub age: Option<Duration>,
    /// The thread that registered the reader which has been pinned the longest, by name or id; `None` if no reader is pinned.
    pub holder: Option<String>,
    /// Number of readers that have not pinned themselves since `membarrier(2)` was denied. Until each has, or is dropped, no grace
    /// period ends.
    pub unfenced: usize,
}

impl fmt::Display for Backlog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, bytes, age, holder, unfenced } = self;
        write!(f, "{objects} replaced objects of {bytes} bytes wait for workers")?;
        if let Some(age) = age {
            write!(f, ", the oldest for {} ms", age.as_millis())?;
        }
        if let Some(holder) = holder {
            write!(f, "; in a burst since before: the worker of thread {holder}")?;
        }
        if *unfenced != 0 {
            write!(f, "; membarrier(2) was denied, and {unfenced} workers have not run a burst since")?;
        }
        Ok(())
    }
}

/// Stalled workers hold back too many values: a replaced value could not be freed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled(pub Backlog);

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for Stalled {}

/// A retired value.
pub(crate) struct Retired {
    /// Whether its drop calls no user code and takes no lock that a collecting thread may hold.
    pub(crate) is_inert: bool,
    pub(crate) _value: Box<dyn Send>,
}

struct Waiting {
    tag: u64,
    bytes: usize,
    since: Instant,
    value: Retired,
}

/// Retired values, by increasing tag.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    pub(crate) limit: Limit,
    /// The tag that a writer has already waited for; writers do not wait for it again.
    pub(crate) waited_for: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, tag: u64, bytes: usize, value: Retired) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push_back(Waiting { tag, bytes, since: Instant::now(), value });
    }

    /// Whether a retirement should collect.
    pub(crate) fn is_due(&self) -> bool {
        self.len() >= BATCH || self.bytes >= BATCH_BYTES
    }

    pub(crate) fn is_within_limit(&self) -> bool {
        self.len() < self.limit.objects && self.bytes < self.limit.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn oldest(&self) -> Option<u64> {
        self.waiting.front().map(|first| first.tag)
    }

    /// Removes at most `most` values with this tag or an earlier one.
    pub(crate) fn take(&mut self, passed: u64, most: usize) -> Vec<Retired> {
        let count = self.waiting.partition_point(|entry| entry.tag <= passed).min(most);
        let taken: Vec<Waiting> = self.waiting.drain(..count).collect();
        self.bytes -= taken.iter().map(|entry| entry.bytes).fold(0, usize::saturating_add).min(self.bytes);
        if self.waiting.is_empty() {
            // A stall may have grown the queue.
            self.waiting.shrink_to(BATCH);
        }
        taken.into_iter().map(|entry| entry.value).collect()
    }

    pub(crate) fn backlog(&self) -> Backlog {
        let age = self.waiting.front().map(|first| first.since.elapsed());
        Backlog { objects: self.len(), bytes: self.bytes, age, ..Backlog::default() }
    }
}
