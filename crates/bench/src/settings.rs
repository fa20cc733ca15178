//! Settings that all tables share.

use super::report::{Report, Row};

/// Settings of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Run each row once and briefly.
    pub(crate) smoke: bool,
}

/// Contenders that run programs over the same maps, each with a host and so with a CPU of its own, at most.
pub(crate) const CONTENDERS: usize = 32;

/// Result of a part of a table.
pub(crate) type Rows = Result<Vec<Row>, Box<dyn std::error::Error>>;

/// Result of a table.
pub(crate) type Table = Result<Report, Box<dyn std::error::Error>>;
