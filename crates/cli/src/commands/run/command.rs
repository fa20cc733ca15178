//! The choice between a run of a single program and one of a chain.

use std::process::ExitCode;

use super::args::RunArgs;
use super::{chain, single};
use crate::common::failure::Failure;

/// Runs a program or a chain over a capture.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let engine = args.engine().unwrap_or_else(|usage| usage.exit());
    if chain::is_wanted(args) { chain::run(args, engine) } else { single::run(args, engine) }
}
