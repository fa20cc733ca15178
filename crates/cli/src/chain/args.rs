//! Arguments that name the programs of a chain.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueHint;

use super::place::PlaceArg;
use crate::object::ObjectArgs;

/// The programs of a chain, and their order.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SourceArgs {
    /// Object file, and which of its programs where it has several; several are a chain. A chain file ends in `.toml`.
    /// A built-in firewall if left out.
    #[arg(value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(crate) targets: Vec<OsString>,
    /// Chain file to run.
    #[arg(long, value_name = "FILE.toml", value_hint = ValueHint::FilePath, conflicts_with = "targets")]
    pub(crate) chain: Option<PathBuf>,
    /// Order of the programs: by run priority, lowest first, as with libxdp, or as given.
    #[arg(long, value_enum, conflicts_with = "chain")]
    pub(super) order: Option<OrderName>,
    /// Chain-call map: which program runs next, by program and verdict; packets enter at the program given first.
    #[arg(long, value_name = "FILE.json", value_hint = ValueHint::FilePath, conflicts_with_all = ["chain", "order"])]
    pub(crate) calls: Option<PathBuf>,
    /// Take a program to another place than that in which it is given: `first`, `last`, `before:NAME`, `after:NAME`, or
    /// `replace:NAME`, which leaves that one out. May be given several times, and is done in that order.
    #[arg(long = "place", value_name = "NAME=WHERE", value_parser = PlaceArg::parse, conflicts_with_all = ["chain", "calls"])]
    pub(super) places: Vec<PlaceArg>,
    #[command(flatten)]
    pub(crate) object: ObjectArgs,
}

/// The order of programs that are given as objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum OrderName {
    /// By run priority, from XDP_RUN_CONFIG in the objects.
    Priority,
    /// As they are given.
    Given,
}

impl SourceArgs {
    /// Objects, or a chain file, in their own order.
    pub(crate) fn of(targets: Vec<OsString>, object: ObjectArgs) -> Self {
        Self { targets, object, ..Self::default() }
    }

    /// The chain file, if one is named.
    pub(crate) fn chain_file(&self) -> Option<&Path> {
        match self.targets.as_slice() {
            [only] => Some(Path::new(only)).filter(is_chain_file),
            _ => self.chain.as_deref(),
        }
    }

    /// A chain file that stands among objects.
    pub(super) fn file_among_objects(&self) -> Option<&Path> {
        self.targets.iter().map(Path::new).find(is_chain_file)
    }
}

fn is_chain_file(path: &&Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}
