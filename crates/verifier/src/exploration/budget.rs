//! What an exploration may cost, and costs.

use crate::error::{Cause, Check, reject};
use crate::limits::Options;
use crate::records::Records;
use crate::stats::Stats;

/// The cost so far.
#[derive(Default)]
pub(super) struct Budget {
    pub(super) stats: Stats,
    /// Bytes of the kept and the waiting states.
    held: usize,
}

impl Budget {
    /// Drops all kept states, for paths from another entry point.
    pub(super) fn restart(&mut self) {
        self.held = 0;
    }

    /// Whether another instruction may be simulated, after `work` steps of comparing and keeping states.
    pub(super) fn check(&self, work: usize, options: &Options) -> Check {
        if self.stats.instructions >= options.max_instructions {
            return reject(Cause::TooComplex(self.stats.instructions));
        }
        if work > options.max_work {
            return reject(Cause::TooMuchWork(work));
        }
        Ok(())
    }

    /// Adds the bytes of a state that is kept.
    pub(super) fn hold(&mut self, bytes: usize, records: &Records, options: &Options) -> Check {
        self.held += bytes;
        let all = self.held + records.bytes();
        self.stats.peak_bytes = self.stats.peak_bytes.max(all);
        if all > options.max_bytes {
            return reject(Cause::TooMuchMemory(all));
        }
        Ok(())
    }

    /// Removes the bytes of a state that is no longer kept.
    pub(super) fn release(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
    }
}
