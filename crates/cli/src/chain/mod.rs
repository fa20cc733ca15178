//! `paceline chain`, and chains for `paceline run`.

mod calls;
mod diff;
mod failure;
mod file;
mod load;
mod place;
mod show;
mod status;
mod trace;

use std::process::ExitCode;

use paceline::chain::{Drawing, dot, svg};

pub(crate) use failure::ChainFailure;
pub(crate) use load::{LoadHow, Loaded, Part, load, reload};
pub(crate) use place::PlaceArg;
pub(crate) use show::{LayoutAsJson, write_text as write_layout, write_warnings};
pub(crate) use status::{StatusAsJson, write_text as write_status};
pub(crate) use trace::{Tracer, TracesAsJson, write_text as write_traces};

use crate::args::{ChainCommand, ExplainArgs, Packets, RunArgs, ShowArgs};
use crate::console;
use crate::failure::Failure;
use crate::run;

/// Packets that are traced when nobody says which.
const TRACED: u64 = 10;

pub(crate) fn chain(command: ChainCommand) -> Result<ExitCode, Failure> {
    match command {
        ChainCommand::Show(args) => show_graph(&args),
        ChainCommand::Explain(args) => explain(&args),
        ChainCommand::Status(args) => run::run(&RunArgs { stats: true, ..*args }),
        ChainCommand::Trace(args) => {
            let trace = Some(args.trace.clone().unwrap_or_else(|| Packets::first(TRACED)));
            run::run(&RunArgs { trace, ..*args })
        }
        ChainCommand::Diff(args) => diff::diff(&args),
    }
}

fn show_graph(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let loaded = load(&args.source, &LoadHow::of(&args.source.object))?;
    let layout = loaded.layout();
    let drawing = Drawing { graph: &layout.graph, names: &layout.names };
    console::print(|out| {
        if args.dot {
            out.write_all(dot(&drawing).as_bytes())
        } else if args.svg {
            out.write_all(svg(&drawing).as_bytes())
        } else if args.json {
            show::write_json(out, &loaded, &layout)
        } else {
            write_layout(out, &layout)
        }
    })
}

fn explain(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let loaded = load(&args.source, &LoadHow::of(&args.source.object))?;
    let layout = loaded.layout();
    console::print(|out| {
        if args.json { show::write_json(out, &loaded, &layout) } else { show::write_reasons(out, &layout) }
    })
}
