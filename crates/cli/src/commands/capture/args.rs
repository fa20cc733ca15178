//! Arguments of `paceline capture`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;

use crate::common::args::parse_seconds;
use crate::control::ControlArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline capture --control pl.sock --out packets.pcapng --count 100
  paceline capture --control pl.sock --out - --seconds 1 | tcpdump -r -
  paceline capture --control pl.sock --out ssh.pcapng --seconds 1 tcp port 22

A packet that a program changed is there as it was before and after. Comments tell verdict and program, as do the options
epb_verdict, epb_packetid and epb_queue. Until an interrupt, without --count and --seconds. Expressions require libpcap.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CaptureArgs {
    #[command(flatten)]
    pub(super) control: ControlArgs,
    /// Capture to write, in pcapng; - is standard output.
    #[arg(long, short = 'w', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) out: PathBuf,
    /// End after this many packets.
    #[arg(long, short = 'c', value_name = "N")]
    pub(super) count: Option<u64>,
    /// End after this many seconds.
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    pub(super) seconds: Option<Duration>,
    /// Only packets that match, as they were received.
    #[arg(value_name = "EXPRESSION", trailing_var_arg = true)]
    pub(super) expression: Vec<String>,
}
