//! `paceline chain running`: the chain of a live run.

use std::process::ExitCode;

use serde_json::json;

use super::args::RunningArgs;
use crate::common::failure::Failure;
use crate::common::report;
use crate::control::request;

/// Prints the chain of a live run, which draws it itself.
pub(crate) fn running(args: &RunningArgs) -> Result<ExitCode, Failure> {
    let form = match args {
        RunningArgs { explain: true, .. } => "explain",
        RunningArgs { dot: true, .. } => "dot",
        RunningArgs { svg: true, .. } => "svg",
        RunningArgs { json: true, .. } => "json",
        _ => "text",
    };
    let chain = request(&args.control, json!({ "command": "chain", "form": form }))?;
    report::print(|out| match chain.as_str() {
        Some(text) => out.write_all(text.as_bytes()),
        None => writeln!(out, "{chain}"),
    })
}
