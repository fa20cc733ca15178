//! Arguments of `paceline top`.

use std::time::Duration;

use crate::common::args::parse_seconds;
use crate::control::ControlArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline top --control pl.sock

Keys: q or Esc ends the view, p pauses it. `paceline stats` prints the same numbers for other programs.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(super) control: ControlArgs,
    /// Time between two looks, in seconds.
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_seconds)]
    pub(super) every: Duration,
}
