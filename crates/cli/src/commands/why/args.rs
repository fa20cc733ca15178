//! Arguments of `paceline why`.

use std::path::PathBuf;

use clap::ValueHint;

use crate::chain::SourceArgs;
use crate::world::WorldArgs;

use super::selection::Selection;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline why firewall.o --in traffic.pcap --packet 3
  paceline why firewall.o --in traffic.pcap --packet 1-100 --brief
  paceline why firewall.o --in traffic.pcap --packet drop
  paceline why firewall.o --in traffic.pcap --packet drop --count
  paceline why firewall.o --map rules=rules.json --new 'eth / ipv4 / tcp dport=23'
  paceline why chain.toml --in traffic.pcap --packet 7 --json | jq .packets[0].sentence

The packets before run first, so that maps are as they were. The branch that decides is found by a backward slice from the
returned value: the nearest one that it depends on and whose other side was possible. Runs with the branch inverted tell whether it
could have been otherwise. Their changes to maps are undone, but for the order of use in LRU maps, and queues, stacks and
ring buffers. Programs run on the plain interpreter, and time is that of the packets.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// Capture with the packets, pcap or pcapng; `-` is standard input. A small built-in one if left out.
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) input: Option<PathBuf>,
    /// Packets to explain: numbers from 1, such as `1,5-7`, or a verdict: `drop` is the first packet that is dropped, `drop:5` the
    /// first five, `drop:all` all of them. The first packet if left out, and all of them with --count.
    #[arg(long, value_name = "PACKETS")]
    pub(super) packet: Option<Selection>,
    /// Print the reasons and how many packets have each, in place of the packets: of all packets, or of all with the verdict of
    /// --packet.
    #[arg(long, conflicts_with_all = ["new", "brief", "all"])]
    pub(super) count: bool,
    /// Print what the decision depends on in turn, branch after branch.
    #[arg(long, conflicts_with_all = ["brief", "json"])]
    pub(super) all: bool,
    /// A packet in words instead of a capture, such as `eth / ipv4 src=10.0.0.1 / tcp dport=23`.
    #[arg(long, value_name = "LAYERS", conflicts_with_all = ["input", "packet"])]
    pub(super) new: Option<String>,
    /// Print one line for each packet: the sentence.
    #[arg(long, conflicts_with = "json")]
    pub(super) brief: bool,
    /// Print the maps after the last packet.
    #[arg(long, conflicts_with = "brief")]
    pub(super) maps: bool,
    #[command(flatten)]
    pub(super) world: WorldArgs,
    /// Explain a program that was not verified.
    #[arg(long)]
    pub(super) unverified: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
