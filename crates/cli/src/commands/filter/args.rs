//! Arguments of `paceline filter`.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgAction, ValueEnum, ValueHint};
use paceline::Engine;

use crate::common::args::{engine_names, usage_error};
use crate::object::ObjectArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline filter tcp port 22 --in traffic.pcap --out ssh.pcap
  paceline filter port 22 --as listing                the classic program beside what it is converted to
  paceline filter --filters rules.txt -r traffic.pcap -w '{name}.pcap'
  tcpdump -ddd udp > udp.txt; paceline filter --program udp.txt -r traffic.pcap
  paceline filter --program seccomp.txt --syscalls calls.txt

Expressions are tcpdump's (man pcap-filter) and are compiled by libpcap, which has to be installed; packets match as
they do with tcpdump. Packets are written whole and unchanged. It is no failure if none matches.

A program is what `tcpdump -ddd` or `-dd` prints, bpf_asm's language, or a socket filter of an object, whose result is how
many bytes of a packet are written. It follows the rules of the kernel, as if a
socket had it: negative offsets and ancillary words have their meaning, and the length is what was captured.

A file of filters has a line for each, `name: expression`; text after # is a comment:
  ssh: tcp port 22
  web: tcp port 80 or tcp port 443      # both

A file of system calls has a line for each: number, arch, instruction pointer and up to six arguments, in decimal or
after 0x; what is left out is 0, for the arch x86-64:
  257 0xc000003e 0x7f0000001234 0xffffff9c 0x7ffc00001000 0";

/// The form in which a filter and its conversion are printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Form {
    /// The listing of -d, with the converted instructions beside each one.
    Listing,
    /// C, with the types of linux/filter.h and linux/bpf.h.
    C,
    /// Rust.
    Rust,
}

#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct FilterArgs {
    /// Expression as tcpdump takes it; its words may be several arguments. Without one all packets match.
    #[arg(value_name = "EXPRESSION", group = "what")]
    pub(super) expression: Vec<String>,
    /// File with the expression.
    #[arg(short = 'F', long, value_name = "FILE", group = "what", value_hint = ValueHint::FilePath)]
    pub(super) expression_file: Option<PathBuf>,
    /// File with a classic BPF program, `-` is standard input; or OBJECT[:PROGRAM], an object and its socket filter.
    #[arg(long, value_name = "FILE", group = "what", value_hint = ValueHint::FilePath)]
    pub(super) program: Option<PathBuf>,
    /// File of several expressions, with a name for each.
    #[arg(long, value_name = "FILE", group = "what", value_hint = ValueHint::FilePath)]
    pub(super) filters: Option<PathBuf>,
    /// Capture to read, pcap or pcapng; `-` is standard input. A small built-in one if left out.
    #[arg(short = 'r', long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) input: Option<PathBuf>,
    /// Capture to write for the packets that match; `-` is standard output. With --filters the name contains
    /// `{name}`, which is replaced by each filter's name.
    #[arg(short = 'w', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) out: Option<PathBuf>,
    /// Print a line for each packet that matches, in the form of `tcpdump -n -S`; the report goes to standard error.
    #[arg(long, conflicts_with_all = ["json", "filters", "syscalls", "dump", "form"])]
    pub(super) print: bool,
    /// Take this many packets, for each filter, and stop.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: Option<u64>,
    /// Print the program as tcpdump does and stop: -d as a listing, -dd as a C array, -ddd as decimal numbers.
    #[arg(short = 'd', action = ArgAction::Count, conflicts_with_all = ["out", "json", "filters", "syscalls", "form"])]
    pub(super) dump: u8,
    /// Print the program and its conversion, side by side or as source code, and stop.
    #[arg(long = "as", value_name = "FORM", conflicts_with_all = ["out", "json", "filters", "syscalls"])]
    pub(super) form: Option<Form>,
    /// Print the program without libpcap's optimizer, which may change what it matches. Packets are always filtered without it.
    #[arg(short = 'O', long)]
    pub(super) no_optimize: bool,
    /// File of recorded system calls: print the seccomp program's action for each.
    #[arg(long, value_name = "FILE", requires = "program", conflicts_with_all = ["input", "out", "count", "engine"], value_hint = ValueHint::FilePath)]
    pub(super) syscalls: Option<PathBuf>,
    #[command(flatten)]
    pub(super) object: ObjectArgs,
    /// Engine that runs the filter; default: `jit` where available, else `threaded`.
    #[arg(long, value_name = "NAME", value_parser = engine_names())]
    pub(super) engine: Option<Engine>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(super) json: bool,
}

/// Placeholder for a filter's name in the name of an output.
pub(super) const NAME: &str = "{name}";

impl FilterArgs {
    /// Whether the program is printed and nothing is run.
    pub(super) fn prints(&self) -> bool {
        self.dump > 0 || self.form.is_some()
    }

    /// Checks what the description of the arguments cannot express.
    ///
    /// # Errors
    /// The error of usage.
    pub(super) fn check(&self) -> Result<(), clap::Error> {
        if self.dump > 3 {
            return Err(usage_error::<Self>(
                "filter",
                ErrorKind::TooManyValues,
                "-d can be given three times at most",
            ));
        }
        // An expression or a file of filters would be in the program's place, and clap asks no more for it then.
        if self.syscalls.is_some() && self.program.is_none() {
            let text = "--syscalls is for the seccomp program of a file: --program FILE";
            return Err(usage_error::<Self>("filter", ErrorKind::MissingRequiredArgument, text));
        }
        let has_name = |path: &PathBuf| path.to_str().is_some_and(|path| path.contains(NAME));
        match (&self.filters, &self.out) {
            (Some(_), Some(out)) if !has_name(out) => {
                let text = "with --filters there is an output for each: the name must have `{name}` in it, \
                            such as --out '{name}.pcap'";
                Err(usage_error::<Self>("filter", ErrorKind::ValueValidation, text))
            }
            _ => Ok(()),
        }
    }
}
