//! Arguments of `paceline verify`.

use std::ffi::OsString;

use clap::ValueHint;

use crate::object::ObjectArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline verify firewall.o
  paceline verify vlan.o:vlan_push --log | less                     every instruction, with the register values
  paceline verify --json firewall.o | jq '.programs[] | select(.verdict == \"refused\").cause'

Exit status: 0 all programs are accepted, 1 one is refused or something could not be done, 2 wrong usage.";

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Object file, and one of its programs; all of them if none is named.
    #[arg(value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(super) target: OsString,
    #[command(flatten)]
    pub(super) how: ObjectArgs,
    /// Print every instruction as it is verified, with the abstract values of its registers.
    #[arg(long, conflicts_with = "json")]
    pub(super) log: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
