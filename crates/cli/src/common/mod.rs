//! The common part of the commands: it knows none of them.

pub(crate) mod args;
pub(crate) mod capture;
pub(crate) mod console;
pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod line;
pub(crate) mod outcome;
pub(crate) mod packets;
pub(crate) mod rate;
pub(crate) mod reasons;
pub(crate) mod report;
pub(crate) mod suggest;
pub(crate) mod watch;
