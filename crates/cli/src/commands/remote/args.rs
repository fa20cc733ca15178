//! Arguments of requests to a live run.

use std::time::Duration;

use crate::common::args::parse_seconds;
use crate::control::ControlArgs;

pub(crate) const STATUS_EXAMPLES: &str = "\
Examples:
  paceline status --control pl.sock
  paceline status --control pl.sock --json | jq .verdicts

The socket is that of `paceline live --control PATH`; PACELINE_CONTROL names it where --control does not.";

pub(crate) const STATS_EXAMPLES: &str = "\
Examples:
  paceline stats --control pl.sock --count 3
  paceline stats --control pl.sock --every 0.5 --count 2 --json | jq .ports

Without --count it goes on until the run ends.
Rates are packets per second. PACELINE_CONTROL names the socket where --control does not.";

pub(crate) const STOP_EXAMPLES: &str = "\
Examples:
  paceline stop --control pl.sock";

pub(crate) const MAP_EXAMPLES: &str = "\
Examples:
  paceline map list --control pl.sock
  paceline map set rules '{\"port\": 80, \"protocol\": 17}' '{\"action\": 1}' --control pl.sock
  paceline map dump rules --control pl.sock
  paceline map delete rules '{\"port\": 80, \"protocol\": 17}' --control pl.sock

Keys and values are JSON by the types of the object, as `paceline run --map` reads them: 22, '{\"port\": 22, \"protocol\": 6}',
10.0.0.0/8. What is no JSON is text. A map is named MAP, or OBJECT:MAP where several objects have one of the name.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(super) control: ControlArgs,
    /// Print the answer as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(super) control: ControlArgs,
    /// Time between two lines, in seconds.
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_seconds)]
    pub(super) every: Duration,
    /// End after this many lines.
    #[arg(long, value_name = "N")]
    pub(super) count: Option<u64>,
    /// Print JSON objects, one in a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(super) control: ControlArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MapArgs {
    #[command(subcommand)]
    pub(super) command: MapCommand,
}

#[derive(Clone, Debug, clap::Subcommand)]
pub(super) enum MapCommand {
    /// List the maps.
    List(StatusArgs),
    /// Print what a map is, and how many entries it has now.
    Show {
        #[command(flatten)]
        status: StatusArgs,
        /// Name of the map.
        map: String,
    },
    /// Print all elements, one in a line.
    Dump {
        #[command(flatten)]
        control: ControlArgs,
        /// Name of the map.
        map: String,
    },
    /// Print the value of a key.
    Get {
        #[command(flatten)]
        control: ControlArgs,
        /// Name of the map.
        map: String,
        /// The key.
        key: String,
    },
    /// Set the value of a key.
    Set {
        #[command(flatten)]
        control: ControlArgs,
        /// Name of the map.
        map: String,
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// Remove the element of a key.
    Delete {
        #[command(flatten)]
        control: ControlArgs,
        /// Name of the map.
        map: String,
        /// The key.
        key: String,
    },
}

impl MapArgs {
    /// Whether standard output is to be JSON: it is that of elements anyway.
    pub(crate) fn prints_json(&self) -> bool {
        match &self.command {
            MapCommand::List(args) | MapCommand::Show { status: args, .. } => args.json,
            _ => false,
        }
    }
}
