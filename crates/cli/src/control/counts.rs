//! The counts of a live run: a row each, from which its JSON, its text, its metrics, its rates and the views are made.

use paceline::{PipelineCounts, PortCounts};
use serde_json::{Map, Value as Json};

/// A count of a run, a port or a worker, whose counts are a `T`.
pub(crate) struct Count<T> {
    /// Name in JSON and in metrics; with spaces the heading of a column.
    pub(crate) name: &'static str,
    /// Description, as the help of a metric.
    pub(crate) help: &'static str,
    /// Value.
    pub(crate) of: fn(&T) -> u64,
}

impl<T> Count<T> {
    /// Heading of a column.
    pub(crate) fn heading(&self) -> String {
        self.name.replace('_', " ")
    }
}

/// The fates of packets that are not lost.
static SENT: [Count<PipelineCounts>; 3] = [
    Count {
        name: "copies",
        help: "Copies of packets redirected to several ports",
        of: |counts| counts.copies,
    },
    Count { name: "sent", help: "Packets that ports took", of: |counts| counts.sent },
    Count {
        name: "released",
        help: "Packets that passed, with no port to take them",
        of: |counts| counts.released,
    },
];

/// Packets that were to be sent or passed, and were not; and those without a verdict.
pub(crate) static LOSSES: [Count<PipelineCounts>; 5] = [
    Count {
        name: "unknown_verdicts",
        help: "Packets aborted for a return value that is no verdict",
        of: |counts| counts.unknown,
    },
    Count { name: "refused", help: "Packets that a port had no room for", of: |counts| counts.refused },
    Count { name: "no_target", help: "Packets redirected to no port", of: |counts| counts.no_target },
    Count {
        name: "stopped",
        help: "Packets dropped by programs of device maps",
        of: |counts| counts.stopped,
    },
    Count { name: "lost", help: "Packets lost by a port that failed", of: |counts| counts.lost },
];

/// Counts of a run besides those of its verdicts.
pub(crate) fn run() -> impl Iterator<Item = &'static Count<PipelineCounts>> {
    SENT.iter().chain(&LOSSES)
}

/// Counts of a port.
pub(crate) static PORT: [Count<PortCounts>; 5] = [
    Count { name: "received", help: "Packets received from the port", of: |counts| counts.received },
    Count { name: "sent", help: "Packets sent to the port", of: |counts| counts.sent },
    Count { name: "refused", help: "Packets that the port had no room for", of: |counts| counts.refused },
    Count {
        name: "dropped",
        help: "Packets that arrived at the port's device and were dropped before they were received",
        of: |counts| counts.dropped,
    },
    Count { name: "copied", help: "Packets copied to be sent", of: |counts| counts.copied },
];

/// Counts of a worker.
pub(crate) static WORKER: [Count<PipelineCounts>; 2] = [
    Count { name: "packets", help: "Packets that ran on the worker", of: PipelineCounts::packets },
    Count { name: "bursts", help: "Bursts that ran on the worker", of: |counts| counts.bursts },
];

/// The counts as members of an object.
pub(crate) fn members<'a, T: 'a>(
    rows: impl IntoIterator<Item = &'a Count<T>>,
    counts: &T,
) -> Map<String, Json> {
    rows.into_iter().map(|count| (count.name.to_owned(), (count.of)(counts).into())).collect()
}
