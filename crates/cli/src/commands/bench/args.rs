//! Arguments of `paceline bench`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;
use paceline::Engine;

use crate::common::args::engine_names;
use crate::object::ObjectArgs;
use crate::world::WorldArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline bench firewall.o --in traffic.pcap
  paceline bench firewall.o --against vlan.o:vlan_push --rounds 20
  paceline bench firewall.o --engine threaded --by-verdict --json | jq .bursts.median_ns
  paceline bench firewall.o --in traffic.pcap --by-line
  paceline bench firewall.o --max-ns 100000 || echo too slow

Times are of the program alone: packets are filled in before the clock starts. Rounds of two programs alternate, and the
verdict on them is that of the ratio of each pair of rounds: its median, and the interval that has the true one with a
probability of 95%. Nothing is called faster or slower within 2%.

Exit status: 0 done, 1 slower than --max-ns or --max-ratio allow or something could not be done, 2 wrong usage.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// Object file, and which of its programs where it has several, or a chain file. A built-in firewall if left out.
    #[arg(value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(super) target: Option<OsString>,
    /// Capture with the packets, pcap or pcapng; `-` is standard input. A small built-in one if left out.
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) input: Option<PathBuf>,
    /// Another object or chain file, to be compared with.
    #[arg(long, value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(super) against: Option<OsString>,
    /// Engine; the default is the fastest.
    #[arg(long, value_name = "NAME", value_parser = engine_names())]
    pub(super) engine: Option<Engine>,
    /// Engine of the other program.
    #[arg(long, value_name = "NAME", value_parser = engine_names(), requires = "against")]
    pub(super) against_engine: Option<Engine>,
    /// Rounds, after one that warms up.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(5..=10_000))]
    pub(super) rounds: u32,
    /// Milliseconds of runs in a round, less where filling packets in takes eight times as long.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) round_ms: u32,
    /// Also measure the packets of each verdict by themselves.
    #[arg(long)]
    pub(super) by_verdict: bool,
    /// Also show the lines that instructions are spent on: counts, as no clock is fine enough for a line.
    #[arg(long)]
    pub(super) by_line: bool,
    /// Also measure with cold caches: 64 MiB are written before each burst.
    #[arg(long)]
    pub(super) cold: bool,
    /// Also show the time that the running kernel measures for its own test runs, which takes root.
    #[arg(long, conflicts_with = "unverified")]
    pub(super) kernel: bool,
    /// Fail if the median time of a packet in bursts is greater, in nanoseconds.
    #[arg(long, value_name = "N")]
    pub(super) max_ns: Option<f64>,
    /// Fail if the program takes more than so many times the time of the other one, beyond noise.
    #[arg(long, value_name = "RATIO", requires = "against")]
    pub(super) max_ratio: Option<f64>,
    #[command(flatten)]
    pub(super) world: WorldArgs,
    /// Measure a program that was not verified, on the engine `plain`.
    #[arg(long)]
    pub(super) unverified: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(super) object: ObjectArgs,
}
