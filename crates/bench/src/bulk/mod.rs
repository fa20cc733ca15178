//! What bursts are worth (`bulk`).

mod pipeline;

use crate::report::Report;
use crate::{Settings, Table};

pub(crate) fn table(settings: Settings) -> Table {
    let mut report = Report::default();
    report.rows.extend(pipeline::rows(settings)?);
    Ok(report)
}
