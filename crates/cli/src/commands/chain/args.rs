//! Arguments of `paceline chain`.

use std::path::PathBuf;

use clap::ValueHint;

use crate::chain::SourceArgs;
use crate::control::ControlArgs;
use crate::object::ObjectArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline chain show firewall.o balancer.o
  paceline chain show chain.toml --svg > chain.svg
  paceline chain explain firewall.o balancer.o
  paceline chain status chain.toml --in traffic.pcap
  paceline chain trace firewall.o balancer.o --in traffic.pcap --trace 1,5-7
  paceline chain diff chain.toml next.toml
  paceline chain running --control pl.sock

docs/CHAINS.md has the format of chain files.";

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// Print the graph in DOT, for Graphviz.
    #[arg(long, conflicts_with_all = ["svg", "json"])]
    pub(super) dot: bool,
    /// Print the graph as a picture, in SVG.
    #[arg(long, conflicts_with = "json")]
    pub(super) svg: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunningArgs {
    #[command(flatten)]
    pub(super) control: ControlArgs,
    /// Print the order of the programs and the reason for each place.
    #[arg(long, conflicts_with_all = ["dot", "svg", "json"])]
    pub(super) explain: bool,
    /// Print the graph in DOT, for Graphviz.
    #[arg(long, conflicts_with_all = ["svg", "json"])]
    pub(super) dot: bool,
    /// Print the graph as a picture, in SVG.
    #[arg(long, conflicts_with = "json")]
    pub(super) svg: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// Chain file that is there.
    #[arg(value_name = "OLD.toml", value_hint = ValueHint::FilePath)]
    pub(super) old: PathBuf,
    /// Chain file in its place.
    #[arg(value_name = "NEW.toml", value_hint = ValueHint::FilePath)]
    pub(super) new: PathBuf,
    #[command(flatten)]
    pub(super) how: ObjectArgs,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
