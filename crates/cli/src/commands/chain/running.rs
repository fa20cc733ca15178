//! `paceline chain running`: the chain of a live run.

use std::process::ExitCode;

use super::args::RunningArgs;
use crate::common::failure::Failure;
use crate::common::report;
use crate::control::{ChainForm, Request, request};

/// Prints the chain of a live run, which draws it itself.
pub(crate) fn running(args: &RunningArgs) -> Result<ExitCode, Failure> {
    let form = match args {
        RunningArgs { explain: true, .. } => ChainForm::Explain,
        RunningArgs { dot: true, .. } => ChainForm::Dot,
        RunningArgs { svg: true, .. } => ChainForm::Svg,
        RunningArgs { json: true, .. } => ChainForm::Json,
        _ => ChainForm::Text,
    };
    let chain = request(&args.control, &Request::Chain(form))?;
    report::print(|out| match chain.as_str() {
        Some(text) => out.write_all(text.as_bytes()),
        None => writeln!(out, "{chain}"),
    })
}
