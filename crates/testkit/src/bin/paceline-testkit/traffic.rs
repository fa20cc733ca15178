//! `traffic`: writes the shipped capture, `traffic.pcap` and `traffic.pcapng`.

use std::path::PathBuf;
use std::process::ExitCode;

use paceline_testkit::traffic::{pcap, pcapng};

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The directory to write them to
    directory: PathBuf,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let packets = pcap().map_err(|error| paceline::with_causes(&error))?;
    for (name, bytes) in [("traffic.pcap", packets), ("traffic.pcapng", pcapng())] {
        let path = options.directory.join(name);
        std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
