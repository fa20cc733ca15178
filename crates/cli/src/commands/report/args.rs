//! Arguments of `paceline report`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;

use crate::chain::SourceArgs;
use crate::world::WorldArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline report firewall.o --in traffic.pcap -o report.html
  paceline report firewall.o balancer.o --in traffic.pcap -o report.html
  paceline report firewall.o --against vlan.o:vlan_pop --in traffic.pcap --bench -o report.html
  paceline report firewall.o --map rules=rules.json --explain 500 -o report.html

The page needs nothing else: no network, no other file. Keys: numbers choose a view, / the filter, j and k a packet.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// Capture to read, pcap or pcapng; `-` is standard input. A small built-in one if left out.
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) input: Option<PathBuf>,
    /// Page to write.
    #[arg(long, short, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub(super) output: PathBuf,
    /// Packets that are explained, from the first one on.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(super) explain: usize,
    /// Also show what another object or chain file does with the packets, as `paceline diff` does.
    #[arg(long, value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(super) against: Option<OsString>,
    /// Also measure, as `paceline bench` does, and show the times of all rounds.
    #[arg(long)]
    pub(super) bench: bool,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}
