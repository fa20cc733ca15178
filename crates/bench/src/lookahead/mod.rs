//! Look-ups ahead of bursts: programs whose tables are larger than the caches, with bursts in stages and without.
//!
//! All contenders of a row run bursts of 64 packets, whose addresses and ports are random in each burst, and written before it; that is part of
//! what is measured, and the same for all.

mod array;
mod balancer;
mod flow;
#[cfg(feature = "native")]
mod native;
mod routes;
mod traffic;

use crate::settings::{Settings, Table};

pub(crate) fn table(settings: Settings) -> Table {
    let mut rows = balancer::rows(settings)?;
    rows.extend(routes::rows(settings)?);
    rows.extend(array::rows(settings)?);
    Ok(rows.into())
}
