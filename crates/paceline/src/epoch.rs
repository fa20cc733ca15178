//! Grace periods: when memory that was replaced under running programs is freed.
//!
//! Workers that stall keep it. [`Domain::backlog`] says how much waits, [`Domain::set_limit`] bounds it.

pub use paceline_epoch::{Backlog, Deferral, Domain, Limit, Pin, Reader, Stalled, defer_drops};
