//! Arguments of `paceline dump`.

use std::ffi::OsString;

use clap::ValueHint;

use crate::object::ObjectArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline dump firewall.o
  paceline dump vlan.o:vlan_push --opcodes
  paceline dump firewall.o --jit | less                             C, BPF and native code side by side
  paceline dump vlan.o --ir                                         what passes make of the programs, in SSA form
  paceline dump vlan.o --dispatcher=retpoline                       how a call site chooses among its programs
  paceline dump --json firewall.o | jq -r '.programs[0].instructions[].text'";

#[derive(Debug, clap::Args)]
pub(crate) struct DumpArgs {
    /// Object file, and one of its programs; all of them if none is named.
    #[arg(value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(super) target: OsString,
    #[command(flatten)]
    pub(super) how: ObjectArgs,
    /// Show the bytes of each instruction.
    #[arg(long)]
    pub(super) opcodes: bool,
    /// Show the native code that the programs are compiled to, beside the instructions.
    #[arg(long)]
    pub(super) jit: bool,
    /// Show the programs in SSA form instead of their instructions.
    #[arg(
        long,
        value_name = "STAGE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "optimized",
        conflicts_with_all = ["jit", "opcodes", "dispatcher"]
    )]
    pub(super) ir: Option<StageArg>,
    /// Show the code that a call site with the programs chooses among them by, instead of theirs.
    #[arg(
        long,
        value_name = "FALLBACK",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "indirect",
        conflicts_with = "jit"
    )]
    pub(super) dispatcher: Option<FallbackArg>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A stage of compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum StageArg {
    /// As built from the instructions and the facts of the verifier.
    Raw,
    /// After all passes.
    Optimized,
}

/// Calls of programs without a slot at a call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FallbackArg {
    /// By an indirect jump.
    Indirect,
    /// By a retpoline.
    Retpoline,
}
