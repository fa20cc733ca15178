//! Arguments of `paceline test`.

use std::path::PathBuf;

use clap::ValueHint;
use paceline::Engine;

use crate::common::args::engine_names;
use crate::object::ObjectArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline test                                     all files *.test.toml below this folder
  paceline test firewall.test.toml --filter telnet
  paceline test --coverage coverage.info && genhtml coverage.info -o coverage/
  paceline test tests/ --engine jit --engine plain --junit report.xml
  paceline test reflector_in_c.o                    tests in C: pktgen, setup and check programs, as Cilium's
  paceline test --update                            write what comes out into the files, to be reviewed

A test file names an object and lists tests:
  object = \"firewall.o\"
  maps.rules = [{ key = { port = 22, protocol = 6 }, value = { action = 1 } }]

  [[test]]
  name = \"SSH is dropped\"
  packet = \"eth / ipv4 src=10.0.0.1 / tcp dport=22 flags=S\"
  verdict = \"drop\"
  after.counters = [{ key = 10, value = { packets = 1 } }]

Each test has maps of its own; those of an object share its maps. docs/TESTING.md describes both.

Exit status: 0 all tests pass, 1 one fails or something could not be done, 2 wrong usage.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Test files, objects with tests in C, and folders that are searched for files whose names end in `.test.toml` and for such
    /// objects; this folder if left out.
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(super) paths: Vec<PathBuf>,
    /// Run only the tests whose name or file contains this text; may be given several times.
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Vec<String>,
    /// List the tests, and run none.
    #[arg(long)]
    pub(super) list: bool,
    /// Engine to run the tests on; may be given several times. The fastest one if left out.
    #[arg(long, value_name = "NAME", value_parser = engine_names())]
    pub(super) engine: Vec<Engine>,
    /// Run the tests in the running kernel, which takes root: verdicts, packets and maps are compared; redirect targets, events,
    /// time, random numbers and networks are the kernel's own.
    #[arg(long, conflicts_with_all = ["engine", "update", "coverage", "unverified"])]
    pub(super) kernel: bool,
    /// Run the tests in random order, by a seed that is printed if it is not given.
    #[arg(long, value_name = "SEED", num_args = 0..=1, require_equals = true)]
    pub(super) shuffle: Option<Option<u64>>,
    /// Tests that run at the same time; as many as the machine has CPUs if left out.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) jobs: Option<u16>,
    /// Replace the expectations that are not met by what came out, in the files.
    #[arg(long, conflicts_with_all = ["engine", "list"])]
    pub(super) update: bool,
    /// Write a report in JUnit's XML, for CI.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) junit: Option<PathBuf>,
    /// Count the lines, functions and branches that the tests run, and write an LCOV tracefile, or, if the name ends in
    /// `.txt`, the source with the counts.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) coverage: Option<PathBuf>,
    /// Run programs that were not verified.
    #[arg(long)]
    pub(super) unverified: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(super) object: ObjectArgs,
}
