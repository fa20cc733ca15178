//! The plugin with which the public bpf_conformance suite tests one of our engines:
//!
//! ```sh
//! bpf_conformance_runner --test_file_directory tests --plugin_path target/debug/paceline-conformance
//! bpf_conformance_runner ... --plugin_options "--engine=jit"
//! ```
//!
//! The protocol, from the suite's own plugins: the program is hex on the first line of standard input, or after `--program`;
//! the first argument that is not an option is the memory in hex. `r0` is printed in hex. A refused or stopped program gives
//! exit status 1 and a message on standard error.
//!
//! Helper numbers are the kernel's. The suite tests helpers only through maps (`bpf_map_lookup_elem` in its `lddw-src`
//! cases); private numbers of other runtimes, such as ubpf's `unwind` at 5, have the kernel's meaning.
#![allow(clippy::print_stderr, reason = "a command")]

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use paceline_testkit::conformance::{Judged, Task, run};
use paceline_testkit::say;

/// Runs a BPF program and prints r0 in hex, as bpf_conformance asks of its plugins
#[derive(Parser)]
#[command(name = "paceline-conformance")]
struct Arguments {
    /// Memory that r1 points to, in hex; r2 is its length
    #[arg(default_value = "")]
    memory: String,
    /// The program in hex; without, the first line of standard input
    #[arg(long, value_name = "HEX")]
    program: Option<String>,
    /// plain (default), threaded (with --xdp), jit, checked-jit or kernel
    #[arg(long, value_name = "NAME", value_parser = engine)]
    engine: Option<Judged>,
    /// The program is an object file; its first XDP program is run
    #[arg(long)]
    elf: bool,
    /// r1 is an xdp_md whose packet is MEMORY, with zeros behind it up to 14 bytes (always so with the kernel; run the suite with
    /// --xdp_prolog)
    #[arg(long)]
    xdp: bool,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse_from(std::env::args_os().flat_map(split_options)) {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
            return error.print().map_or(ExitCode::FAILURE, |()| code);
        }
    };
    let r0 = task(arguments).and_then(|task| run(&task).map_err(|error| paceline::with_causes(&error)));
    match r0 {
        Ok(r0) => {
            say!("{r0:x}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("paceline-conformance: {error}");
            ExitCode::FAILURE
        }
    }
}

fn engine(name: &str) -> Result<Judged, String> {
    let names = || format!("no engine {name:?} (available: {})", Judged::names().join(", "));
    Judged::from_name(name).ok_or_else(names)
}

fn task(arguments: Arguments) -> Result<Task, String> {
    let Arguments { memory, program, engine, elf, xdp } = arguments;
    let program = program.map_or_else(first_line, Ok)?;
    Ok(Task {
        program: hex("program", &program)?,
        memory: hex("memory", &memory)?,
        engine: engine.unwrap_or_default(),
        elf,
        xdp,
    })
}

/// The first line of standard input.
fn first_line() -> Result<String, String> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| format!("standard input: {error}"))?;
    Ok(line)
}

/// The suite passes all of its `--plugin_options` as one argument, and empty options as an empty one.
fn split_options(argument: OsString) -> Vec<OsString> {
    match argument.to_str() {
        Some("") => Vec::new(),
        Some(text) if text.starts_with("--") => text.split_whitespace().map(OsString::from).collect(),
        _ => vec![argument],
    }
}

/// Bytes in hex, with or without white space between them.
fn hex(what: &str, text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| {
        let value = |c: Option<&char>| c.and_then(|c| c.to_digit(16));
        let (high, low) = (value(pair.first()), value(pair.get(1)));
        let byte = high.zip(low).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        byte.ok_or_else(|| format!("{what}: `{}` is no hex byte", pair.iter().collect::<String>()))
    };
    digits.chunks(2).map(byte).collect()
}
