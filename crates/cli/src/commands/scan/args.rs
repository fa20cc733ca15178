//! Arguments of `paceline scan`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueHint;
use clap::error::ErrorKind;
use paceline::Engine;
use paceline_archive::{Rule, Rules};

use super::table::ColumnName;
use crate::common::args::{engine_names, usage_error};
use crate::object::ObjectArgs;
use crate::world::WorldArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline scan 'tcp port 22' captures/*              how many packets match in these captures?
  paceline scan 'tcp port 22' captures/* --workers 2 --out ssh.pcap
  paceline scan 'net 10.0.0.0/8' captures/* --parquet packets.parquet --columns time,original_length,data
  paceline scan '' captures/* --program firewall.o    all packets, through a program
  paceline scan ip captures/* --program firewall.o --workers 2 --merge rules=fixed --merge sum --maps

Captures are pcap or pcapng, and may be compressed by gzip or zstd. Results have the order of the captures, with any
number of workers; one large capture is read by several. What is damaged is skipped, told and makes the exit status 1.

With a program the packets that match run through it, and --out gets those that it passes, sends or redirects, as it
left them. Each worker has maps of its own. With several workers --merge says for each map that programs may change how
the result is made from them: `sum` adds counters, `union` is for sets of keys, `fixed` for maps that programs only read.

--out is a pcap with the header of the captures, or, if these differ, one in nanoseconds if any capture has them.";

#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct ScanArgs {
    /// Expression as tcpdump takes it; all packets match an empty one.
    #[arg(value_name = "EXPRESSION")]
    pub(super) expression: String,
    /// Captures to read.
    #[arg(value_name = "CAPTURE", required = true, value_hint = ValueHint::FilePath)]
    pub(super) captures: Vec<PathBuf>,
    /// Program for the packets that match.
    #[arg(long, value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(super) program: Option<OsString>,
    /// Threads that read; default: one for each CPU, and one with a program and without --merge.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
    /// How a map of several workers becomes one: `sum`, `union` or `fixed`; without MAP for all others. May be given several times.
    #[arg(long, value_name = "[MAP=]RULE", value_parser = parse_rule, requires = "program")]
    merge: Vec<(Option<String>, Rule)>,
    /// Print the maps after the scan.
    #[arg(long, requires = "program")]
    pub(super) maps: bool,
    /// Capture to write for the packets that match; `-` is standard output.
    #[arg(short = 'w', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) out: Option<PathBuf>,
    /// Print a line for each packet that matches, in the form of `tcpdump -n -S`, with the verdict of the program; the report goes to
    /// standard error.
    #[arg(long, conflicts_with = "json")]
    pub(super) print: bool,
    /// Parquet file to write, with a row for each packet that matches.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) parquet: Option<PathBuf>,
    /// Columns of the Parquet file.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_enum, requires = "parquet")]
    pub(super) columns: Option<Vec<ColumnName>>,
    /// Engine that runs filter and program; default: `jit` where available, else `threaded`.
    #[arg(long, value_name = "NAME", value_parser = engine_names())]
    pub(super) engine: Option<Engine>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(super) world: WorldArgs,
    #[command(flatten)]
    pub(super) object: ObjectArgs,
}

impl ScanArgs {
    /// Threads that read.
    pub(super) fn workers(&self) -> usize {
        let several = || std::thread::available_parallelism().map_or(1, usize::from);
        match self.workers {
            Some(workers) => workers.into(),
            None if self.program.is_some() && self.merge.is_empty() => 1,
            None => several(),
        }
    }

    /// The rules for the maps of several workers.
    pub(super) fn rules(&self) -> Rules {
        let others = self.merge.iter().find(|(map, _)| map.is_none()).map(|(_, rule)| *rule);
        let by_map = self.merge.iter().filter_map(|(map, rule)| Some((map.clone()?, *rule))).collect();
        Rules { by_map, others }
    }

    pub(super) fn engine(&self) -> Engine {
        self.engine.unwrap_or(Engine::best())
    }

    /// Checks what the description of the arguments cannot express.
    ///
    /// # Errors
    /// The error of usage.
    pub(super) fn check(&self) -> Result<(), clap::Error> {
        let error = |text: String| Err(usage_error::<Self>("scan", ErrorKind::ValueValidation, &text));
        let of_program = self.columns.iter().flatten().find(|column| column.is_of_program());
        if let (Some(column), None) = (of_program, &self.program) {
            return error(format!("column {column} is of a program's outcome: --program OBJECT"));
        }
        if let Some(twice) = self
            .merge
            .iter()
            .enumerate()
            .find(|(at, rule)| self.merge[..*at].iter().any(|other| other.0 == rule.0))
        {
            let map = twice.1.0.as_deref().map_or("all other maps".to_owned(), |map| format!("map {map}"));
            return error(format!("--merge has two rules for {map}"));
        }
        let ending = self.out.as_ref().and_then(|path| path.extension()?.to_str());
        match ending {
            Some(ending @ ("pcapng" | "gz" | "zst")) => {
                error(format!("--out is a pcap without compression, and `{ending}` is none"))
            }
            _ => Ok(()),
        }
    }
}

fn parse_rule(text: &str) -> Result<(Option<String>, Rule), String> {
    let (map, name) = text.rsplit_once('=').map_or((None, text), |(map, name)| (Some(map), name));
    if map.is_some_and(str::is_empty) {
        return Err("the name of a map is before `=`".to_owned());
    }
    let rule = Rule::ALL.into_iter().find(|rule| rule.name() == name);
    let rule = rule.ok_or_else(|| format!("rule {name:?} is none of sum, union, fixed"))?;
    Ok((map.map(str::to_owned), rule))
}
