//! `list`: the engines that run on this machine, and the reasons why others do not.

use std::process::ExitCode;

use paceline_testkit::AnyEngine;
use paceline_testkit::compare::EngineSubject;
use paceline_testkit::say;

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {}

pub(crate) fn run(_: &Options) -> Outcome {
    for engine in AnyEngine::ALL {
        match EngineSubject::probe(engine) {
            Ok(()) => say!("{engine}"),
            Err(reason) => say!("{engine}: {reason}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}
