//! Archives: many captures, scanned by several threads, and parts of captures for other processes.

mod captures;
mod columns;
mod failure;
pub(crate) mod losses;
mod machines;
pub(crate) mod maps;
pub(crate) mod scan;
mod source;
pub(crate) mod split;
