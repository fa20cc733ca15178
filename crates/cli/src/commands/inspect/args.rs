//! Arguments of `paceline inspect`.

use std::path::PathBuf;

use clap::ValueHint;

use crate::object::ObjectArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline inspect firewall.o
  paceline inspect --json firewall.o | jq '.programs[].helpers'
  paceline inspect --json firewall.o | jq -e '.missing == []'       can Paceline run all of it?";

#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// Object file.
    #[arg(value_name = "OBJECT", value_hint = ValueHint::FilePath)]
    pub(super) object: PathBuf,
    #[command(flatten)]
    pub(super) how: ObjectArgs,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
