//! What bursts are worth (`bulk`): the loop in the program's own code against the C compiler's, and against one call per
//! packet.
//!
//! All contenders run the same bursts of 64 packets: one burst of the packet that the filters let through, again and again
//! (`hit`); 10,000 mixed packets whose buffers lie in random order, which do not fit the first cache (`miss`); or these, and
//! none of their bytes in any cache (`out of cache`). That all come to the same verdicts is seen before anything is timed.

mod cache;
mod loops;
#[cfg(feature = "native")]
mod native;
mod pipeline;

use crate::report::Report;
use crate::{Settings, Table};

pub(crate) fn table(settings: Settings) -> Table {
    let mut report = Report::default();
    report.rows.extend(loops::rows(settings)?);
    report.rows.extend(pipeline::rows(settings)?);
    Ok(report)
}
