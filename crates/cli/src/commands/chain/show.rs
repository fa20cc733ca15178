//! `paceline chain show` and `paceline chain explain`.

use std::process::ExitCode;

use paceline::chain::{Drawing, dot, svg};

use super::args::{ExplainArgs, ShowArgs};
use crate::chain::{LoadHow, load, to_json, write_layout, write_reasons};
use crate::common::failure::Failure;
use crate::common::report;

/// Prints the graph of a chain.
pub(crate) fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let loaded = load(&args.source, &LoadHow::of(&args.source.object))?;
    let layout = loaded.layout();
    let drawing = Drawing { graph: &layout.graph, names: &layout.names, packets: None };
    report::print(|out| {
        if args.dot {
            out.write_all(dot(&drawing).as_bytes())
        } else if args.svg {
            out.write_all(svg(&drawing).as_bytes())
        } else if args.json {
            writeln!(out, "{}", to_json(&loaded, &layout))
        } else {
            write_layout(out, &layout)
        }
    })
}

/// Prints the order of the programs of a chain, with reasons.
pub(crate) fn explain(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let loaded = load(&args.source, &LoadHow::of(&args.source.object))?;
    let layout = loaded.layout();
    report::print(|out| {
        if args.json { writeln!(out, "{}", to_json(&loaded, &layout)) } else { write_reasons(out, &layout) }
    })
}
