//! Retired values that wait for the end of their grace period: their limit, and how they are reported.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// So many retired things are let wait before a retirement pays for the heavy fence: it interrupts other CPUs.
const BATCH: usize = 32;
/// So many at most one retirement frees: those of a stall are freed faster than others come, but no writer pays for all of them.
pub(crate) const AT_ONCE: usize = 64;
/// Bytes after which a retirement pays for it in any case.
const BATCH_BYTES: usize = 1 << 20;

/// How much may wait in a [`Domain`](crate::Domain) before [`Domain::admit`](crate::Domain::admit) refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Retired objects.
    pub objects: usize,
    /// Bytes that they were retired with.
    pub bytes: usize,
}

impl Default for Limit {
    /// 32768 objects and 128 MiB: seconds of changes while a worker stalls.
    fn default() -> Self {
        Self { objects: 1 << 15, bytes: 128 << 20 }
    }
}

/// What waits in a domain for the end of its grace period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Retired objects.
    pub objects: usize,
    /// Bytes that they were retired with ([`Domain::retire_sized`](crate::Domain::retire_sized)).
    pub bytes: usize,
    /// How long the oldest has been waiting: a reader that keeps it was pinned before that.
    pub age: Option<Duration>,
    /// The thread that registered the reader which has been pinned the longest, by name or id; `None` while nobody is
    /// pinned.
    pub holder: Option<String>,
    /// Readers that have not pinned themselves since `membarrier(2)` was denied. Until each has, or is dropped, no
    /// grace period ends.
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

/// Too much waits for workers that stall: what would be replaced now could not be freed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalled(pub Backlog);

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for Stalled {}

/// A value that was retired.
pub(crate) struct Retired {
    /// Whether its drop calls nothing of a user's and takes no lock that one who collects may hold.
    pub(crate) is_inert: bool,
    pub(crate) _value: Box<dyn Send>,
}

struct Waiting {
    tag: u64,
    bytes: usize,
    since: Instant,
    value: Retired,
}

/// Retired values, by ascending tag.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    pub(crate) limit: Limit,
    /// The tag that a writer has waited for long enough: nobody waits for it again.
    pub(crate) waited_for: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, tag: u64, bytes: usize, value: Retired) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push_back(Waiting { tag, bytes, since: Instant::now(), value });
    }

    /// Whether a retirement should look for what can be freed.
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

    /// Takes out what has this tag or an earlier one, and so much at most.
    pub(crate) fn take(&mut self, passed: u64, most: usize) -> Vec<Retired> {
        let count = self.waiting.partition_point(|entry| entry.tag <= passed).min(most);
        let taken: Vec<Waiting> = self.waiting.drain(..count).collect();
        self.bytes -= taken.iter().map(|entry| entry.bytes).fold(0, usize::saturating_add).min(self.bytes);
        if self.waiting.is_empty() {
            // A stall may have made it long.
            self.waiting.shrink_to(BATCH);
        }
        taken.into_iter().map(|entry| entry.value).collect()
    }

    pub(crate) fn backlog(&self) -> Backlog {
        let age = self.waiting.front().map(|first| first.since.elapsed());
        Backlog { objects: self.len(), bytes: self.bytes, age, ..Backlog::default() }
    }
}
