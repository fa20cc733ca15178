//! Arguments of `paceline diff`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;
use paceline::{Engine, SkBuffMember};

use crate::common::args::engine_names;
use crate::inputs::SearchArgs;
use crate::kernel_side::tells_member;
use crate::object::ObjectArgs;
use crate::sides::Ignored;
use crate::world::WorldArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline diff firewall.o vlan.o --in traffic.pcap || echo they differ
  paceline diff firewall.o firewall.o --new-engine plain --in traffic.pcap
  paceline diff firewall.o --kernel --in traffic.pcap                 does the kernel do the same?
  paceline diff firewall.o firewall.o --ignore maps --ignore ipv4.ttl --ignore map:counters
  paceline diff vlan.o vlan.o --all                                   is there any packet on which they differ?
  paceline diff firewall.o vlan.o --shrink differs.test.toml || paceline test differs.test.toml || true

Both run over the same packets, each with maps of its own that start alike. Packets whose return value, verdict, bytes,
metadata, context (of classifiers), redirect target or events differ are grouped by the branches that decided, with the line after which the programs went different ways.

With --all no packets are read: the solver looks for inputs on which verdict, bytes, metadata, redirect target, maps, events, traces or
tail calls differ. Each is run on both before it is told. Programs that one object alone has are named. Where no path was given up,
there is none within the bounds that are told.

Exit status: 0 nothing differs, with --all if that is proved; 1 something differs, is not known or could not be done; 2 wrong
usage.";

#[derive(Clone, Debug, clap::Args)]
#[command(mut_args(|arg| match arg.get_id().as_str() {
    "limit" | "length" | "workers" => arg.requires("all"),
    _ => arg,
}))]
pub(crate) struct DiffArgs {
    /// The old object, and which of its programs where it has several, or a chain file.
    #[arg(value_name = "OLD", value_hint = ValueHint::FilePath)]
    pub(super) old: OsString,
    /// The new one; with `--kernel` the old one if left out.
    #[arg(value_name = "NEW", value_hint = ValueHint::FilePath, required_unless_present = "kernel")]
    pub(super) new: Option<OsString>,
    /// Capture to read, pcap or pcapng; `-` is standard input. A small built-in one if left out.
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) input: Option<PathBuf>,
    /// Ignore a difference: `verdict`, `returns`, `redirect`, `events`, `bytes`, `metadata`, `context`, one of its fields, as `context:mark`,
    /// `maps`, a field of packets such as `ipv4.ttl`, or one map, as `map:NAME`; may be given several times.
    #[arg(long, value_name = "WHAT", value_parser = Ignored::parse)]
    pub(super) ignore: Vec<Ignored>,
    /// Engine of the old one; the default is the fastest.
    #[arg(long, value_name = "NAME", value_parser = engine_names())]
    pub(super) old_engine: Option<Engine>,
    /// Engine of the new one.
    #[arg(long, value_name = "NAME", value_parser = engine_names())]
    pub(super) new_engine: Option<Engine>,
    /// Run the new one in the running kernel, which takes root: return values, bytes, context and maps are compared, as a test run shows no redirect
    /// targets and no events. Time, random numbers and networks are the kernel's own.
    #[arg(long, conflicts_with_all = ["new_engine", "unverified"])]
    pub(super) kernel: bool,
    /// Write the shortest sequence of the simplest packets that was found to differ as a test file, which expects what the old one
    /// does of the new one.
    #[arg(long, value_name = "FILE.test.toml", value_hint = ValueHint::FilePath, value_parser = test_file, conflicts_with = "restore_maps")]
    pub(super) shrink: Option<PathBuf>,
    /// Look for differences on all inputs, and not on those of a capture: packets, maps, time and random numbers.
    #[arg(long, conflicts_with_all = ["input", "ignore", "old_engine", "new_engine", "kernel", "shrink", "count", "unverified", "network", "ingress", "rx_queue", "context", "clock", "seed"])]
    pub(super) all: bool,
    /// Stop after this many packets.
    #[arg(long, value_name = "N")]
    pub(super) count: Option<u64>,
    #[command(flatten)]
    pub(super) world: WorldArgs,
    /// Run programs that were not verified.
    #[arg(long)]
    pub(super) unverified: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(super) object: ObjectArgs,
    #[command(flatten, next_help_heading = "With --all")]
    pub(super) search: SearchArgs,
}

impl DiffArgs {
    /// The new object or chain file.
    pub(super) fn new_target(&self) -> &OsString {
        self.new.as_ref().unwrap_or(&self.old)
    }

    /// The differences that are ignored: with the kernel also those that a test run does not show.
    pub(super) fn ignored(&self) -> Vec<Ignored> {
        let unseen = [Ignored::Redirect, Ignored::Events].into_iter();
        let members = SkBuffMember::ALL.iter().filter(|member| !tells_member(member.name));
        let unseen = unseen.chain(members.map(|member| Ignored::Member(member.name.to_owned())));
        let unseen = unseen.filter(|_| self.kernel);
        self.ignore.iter().cloned().chain(unseen).collect()
    }
}

/// A path that no object and no capture has.
fn test_file(text: &str) -> Result<PathBuf, &'static str> {
    text.ends_with(".test.toml").then(|| text.into()).ok_or("the name must end in .test.toml")
}
