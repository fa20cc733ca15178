//! Gain of bursts (`bulk`): the loop in the program's own code against the C compiler's loop, and against one call per
//! packet.
//!
//! All contenders run the same bursts of 64 packets: one burst of a packet that passes the filters, again and again (`hit`);
//! 10,000 mixed packets with buffers in random order, which exceed the first-level cache (`miss`); or the mixed packets with
//! none of their bytes in any cache (`out of cache`). Before measuring, all contenders must return the same verdicts.

mod cache;
mod loops;
#[cfg(feature = "native")]
mod native;
mod pipeline;

use crate::report::Report;
use crate::settings::{Settings, Table};

pub(crate) fn table(settings: Settings) -> Table {
    let mut report = Report::default();
    report.rows.extend(loops::rows(settings)?);
    report.rows.extend(pipeline::rows(settings)?);
    Ok(report)
}
