//! Arguments of `paceline generate`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;

use crate::object::ObjectArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline generate vlan.o                                            which sides of its branches can packets take?
  paceline generate vlan.o --out inputs.pcapng --tests tests/
  paceline generate vlan.o:vlan_push --json | jq '.programs[].unreachable[]'

Packets, map contents, time and random numbers are solved for; variables (.rodata) are as the object or --map has them.
Each input is run before it is written. A side is called unreachable if no input takes it while no other CPU changes maps.

Exit status: 0 success, also if sides are given up; 1 an input does not do what it was made for, or something could not be
done; 2 wrong usage.";

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
    /// Most seconds for each program, up to a year.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub(super) limit: u64,
    /// Greatest length of packets in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1514, value_parser = clap::value_parser!(u16).range(14..=3520))]
    pub(super) length: u16,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
