//! Sends requests and prints their answers.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::Value as Json;

use super::args::{MapArgs, MapCommand, StatusArgs, StopArgs};
use crate::common::console::shown;
use crate::common::failure::Failure;
use crate::common::report;
use crate::control::{Request, request, write_counts};

/// Prints what a live run counts and runs.
pub(crate) fn status(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let status = request(&args.control, &Request::Status { follow: false })?;
    report::print(|out| if args.json { writeln!(out, "{status}") } else { write_status(out, &status) })
}

fn write_status(out: &mut dyn Write, status: &Json) -> io::Result<()> {
    let programs = status["programs"].as_array().map_or(&[][..], Vec::as_slice);
    let programs: Vec<String> =
        programs.iter().map(|name| shown(name.as_str().unwrap_or_default())).collect();
    writeln!(out, "process {}, revision {}: {}", status["pid"], status["revision"], programs.join(", "))?;
    write_counts(out, status)
}

/// Ends a live run.
pub(crate) fn stop(args: &StopArgs) -> Result<ExitCode, Failure> {
    request(&args.control, &Request::Stop)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads or changes maps of a live run.
pub(crate) fn map(args: &MapArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        MapCommand::List(args) => {
            let maps = request(&args.control, &Request::MapList)?;
            report::print(|out| if args.json { writeln!(out, "{maps}") } else { write_list(out, &maps) })
        }
        MapCommand::Show { status, map } => {
            let shown = request(&status.control, &Request::MapShow { map: map.clone() })?;
            report::print(|out| if status.json { writeln!(out, "{shown}") } else { write_map(out, &shown) })
        }
        MapCommand::Dump { control, map } => {
            let elements = request(control, &Request::MapDump { map: map.clone() })?;
            report::print(|out| match &elements {
                Json::Array(elements) => elements.iter().try_for_each(|element| writeln!(out, "{element}")),
                variables => writeln!(out, "{variables}"),
            })
        }
        MapCommand::Get { control, map, key } => {
            let value = request(control, &Request::MapGet { map: map.clone(), key: parsed(key) })?;
            report::print(|out| writeln!(out, "{value}"))
        }
        MapCommand::Set { control, map, key, value } => {
            let (map, key, value) = (map.clone(), parsed(key), parsed(value));
            request(control, &Request::MapSet { map, key, value })?;
            Ok(ExitCode::SUCCESS)
        }
        MapCommand::Delete { control, map, key } => {
            request(control, &Request::MapDelete { map: map.clone(), key: parsed(key) })?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// JSON, or text where it is none.
fn parsed(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

fn write_list(out: &mut dyn Write, maps: &Json) -> io::Result<()> {
    maps.as_array().map_or(&[][..], Vec::as_slice).iter().try_for_each(|map| write_map(out, map))
}

fn write_map(out: &mut dyn Write, map: &Json) -> io::Result<()> {
    let text = |name: &str| shown(map[name].as_str().unwrap_or_default());
    write!(
        out,
        "{}: {} ({}), key {} bytes, value {} bytes, at most {} entries",
        text("object"),
        text("name"),
        text("type"),
        map["key_size"],
        map["value_size"],
        map["max_entries"]
    )?;
    if let Some(entries) = map["entries"].as_u64() {
        write!(out, ", {entries} now")?;
    }
    if map["frozen"] == true {
        write!(out, ", frozen")?;
    }
    writeln!(out)
}
