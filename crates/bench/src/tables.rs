//! All tables.

use crate::settings::{Settings, Table};
use crate::{
    bulk, captures, chains, code, coverage, dispatcher, engines, helpers, live, lookahead, maps, verification,
};

/// The function of a table.
pub(crate) type Make = fn(Settings) -> Table;

/// All tables.
pub(crate) const TABLES: &[(&str, Make)] = &[
    ("bulk", bulk::table),
    ("captures", captures::table),
    ("chains", chains::table),
    ("classic", engines::classic::table),
    ("code", code::table),
    ("coverage", coverage::table),
    ("dispatcher", dispatcher::table),
    ("engines", engines::table),
    ("helpers", helpers::table),
    ("live", live::table),
    ("lookahead", lookahead::table),
    ("maps", maps::table),
    ("verification", verification::table),
];
