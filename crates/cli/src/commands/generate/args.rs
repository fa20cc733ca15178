//! Arguments of `paceline generate`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;
use paceline::generate::Goals;

use crate::inputs::SearchArgs;
use crate::object::ObjectArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline generate vlan.o                                            which sides of its branches can packets take?
  paceline generate vlan.o --out inputs.pcapng --tests tests/
  paceline generate vlan.o --goal maps                                look-ups that find something, and that find nothing
  paceline generate vlan.o --goal paths --paths 500 --workers 2 --out inputs.pcapng
  paceline generate vlan.o:vlan_push --json | jq '.programs[].unreachable[]'

Packets, map contents, time and random numbers are solved for; variables (.rodata) are as the object or --map has them.
Each input is run before it is written. A side is called unreachable if no input within the bounds that are told takes it.

Exit status: 0 all programs were explored, also if goals are given up, which the table tells; 1 a program is refused, lacks a map or
is of another type, an input does not do what it was made for, or something could not be done; 2 wrong usage.";

/// The kind of goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Goal {
    Sides,
    Paths,
    Verdicts,
    Maps,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GenerateArgs {
    /// Object file, and one of its programs; all of them if none is named.
    #[arg(value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(super) target: OsString,
    #[command(flatten)]
    pub(super) how: ObjectArgs,
    /// Write the packets to a pcapng capture, with what they are for in their comments.
    #[arg(long, value_name = "FILE.pcapng", value_hint = ValueHint::FilePath)]
    pub(super) out: Option<PathBuf>,
    /// Write the inputs as files for `paceline test` into this folder, which is made if it does not exist. Files that were generated
    /// before are replaced, others never.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) tests: Option<PathBuf>,
    /// The goals that inputs are looked for: `sides` of conditional jumps; whole `paths`; each of the `verdicts` at each exit of the program; what each
    /// operation of `maps` may meet: an element, none, a full map.
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Goal::Sides)]
    pub(super) goal: Goal,
    /// Most paths that are looked for, with --goal paths.
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) paths: u32,
    /// One input for each goal, without those with other bytes and those at the boundaries of comparisons.
    #[arg(long)]
    pub(super) few: bool,
    #[command(flatten)]
    pub(super) search: SearchArgs,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

impl GenerateArgs {
    pub(super) fn goals(&self) -> Goals {
        match self.goal {
            Goal::Sides => Goals::Sides,
            Goal::Paths => Goals::Paths(self.paths),
            Goal::Verdicts => Goals::Verdicts,
            Goal::Maps => Goals::Operations,
        }
    }
}
