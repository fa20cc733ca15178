//! The commands, which know nothing of each other.

pub(crate) mod bench;
pub(crate) mod capture;
pub(crate) mod chain;
pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod dump;
pub(crate) mod filter;
pub(crate) mod generate;
pub(crate) mod inspect;
pub(crate) mod live;
pub(crate) mod man;
pub(crate) mod prove;
pub(crate) mod remote;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scan;
pub(crate) mod test;
pub(crate) mod top;
pub(crate) mod verify;
pub(crate) mod why;
