//! Arguments of `paceline run`.

use std::path::PathBuf;

use clap::ValueHint;
use clap::error::ErrorKind;
use paceline::Engine;
use paceline::coverage::Counting;

use crate::chain::SourceArgs;
use crate::common::args::{engine_names, usage_error};
use crate::common::files::is_stdout;
use crate::common::packets::Packets;
use crate::world::WorldArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline run firewall.o balancer.o --in traffic.pcap --out passed.pcap --drops dropped.pcap
  paceline run balancer.o --in traffic.pcap --map backends=backends.json --maps --save-maps state.json
  paceline run sampler.o:sample_every --in traffic.pcap --events - | jq .
  paceline run router.o --in traffic.pcap --network net.json --ingress eth0 --clock capture --seed 1
  paceline run firewall.o --in traffic.pcap --print --why | grep drop
  tcpdump -w - | paceline run firewall.o --in - --out - | tcpdump -r -

Several objects are a chain, in the order of their run priorities (XDP_RUN_CONFIG), as xdp-loader orders them. While a
chain file runs, SIGHUP has it read again.

Packets with verdict pass, tx or redirect go to --out, as the program left them; dropped and aborted ones go to
--drops. Outputs have the format of the input. No root and no network card is needed.

A map file is a list like the one `bpftool map dump` and `--maps --json` print:
  [{\"key\": 22, \"value\": {\"action\": 1}}, {\"key\": 53, \"value\": {\"action\": 2}}]
Values of per-CPU maps may be {\"key\": 1, \"values\": [{\"cpu\": 0, \"value\": 5}]}. Keys and values without BTF types are
lists of bytes, [\"0x0a\", \"0x00\"]. Entries of program arrays are programs by name, or null for none:
[{\"key\": 17, \"value\": \"drop\"}]. Global variables are set by name: --map .rodata=FILE with
{\"threshold\": 10}. Values of queues and stacks have no key, and entries of maps of maps are maps by name. --save-maps
writes all of that to one file, {\"maps\": {NAME: ...}}, in chains by object, without what is zero in arrays.

A network is what these print, one after the other:
  ip -j addr; ip -j route show table all; ip -j neigh; ip -j rule; ip -j -6 rule; ip -j netconf
  ss -tuan; conntrack -L; sysctl net.ipv4.tcp_syncookies
In each line of events `data` is what the program sent, by the type of --event-type or byte by byte, and `bytes` the packet
that goes with it, in hexadecimal.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// Capture to read, pcap or pcapng; `-` is standard input. A small built-in one if left out.
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) input: Option<PathBuf>,
    /// Capture to write for packets with verdict pass, tx or redirect; `-` is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) out: Option<PathBuf>,
    /// Capture to write for packets that were dropped or aborted; `-` is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) drops: Option<PathBuf>,
    /// Print the maps after the run.
    #[arg(long)]
    pub(super) maps: bool,
    /// Save the maps after the run, for --restore-maps; the file is replaced as a whole, or left unchanged.
    #[arg(long, value_name = "FILE.json", value_hint = ValueHint::FilePath)]
    pub(super) save_maps: Option<PathBuf>,
    /// Write the events of perf event arrays and ring buffers: one JSON object per line, or, if the name ends in
    /// `.pcapng`, the packets among them; `-` is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) events: Option<PathBuf>,
    /// Decode the events of a map by a C type of the object's BTF; may be given several times.
    #[arg(long = "event-type", value_name = "MAP=TYPE", value_parser = EventType::parse, requires = "events")]
    pub(super) event_types: Vec<EventType>,
    /// CPUs that packets come in on, all of a flow on the same one; per-CPU maps have a value for each.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: u16,
    /// Threads that packets run on, each a CPU as with --cpus; outputs have the order of the capture.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256),
        conflicts_with_all = ["cpus", "events", "stats", "trace", "verdicts", "print"])]
    pub(super) workers: Option<u16>,
    /// Write what became of each packet: a JSON object per line, or, if the name ends in `.csv`, a table, or in `.pcapng`, the
    /// packets as they came out, with it in their comments; `-` is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) verdicts: Option<PathBuf>,
    /// Print a line for each packet, in the form of `tcpdump -n -S`, with number, verdict and what changed; the report goes to standard error.
    #[arg(long, conflicts_with_all = ["json", "dry_run"])]
    pub(super) print: bool,
    /// Print the reasons of the verdicts and how many packets have each, as `paceline why --count` does, and add program, line and
    /// sentence to each packet of --verdicts and --print. Each packet runs some more times for that, on the plain interpreter.
    #[arg(long, conflicts_with = "workers")]
    pub(super) why: bool,
    /// Count the lines, functions and branches that run, and write an LCOV tracefile, or, if the name ends in `.txt`, the
    /// source with the counts; `-` is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) coverage: Option<PathBuf>,
    #[command(flatten)]
    pub(super) world: WorldArgs,
    /// Stop after this many packets.
    #[arg(long, value_name = "N")]
    pub(super) count: Option<u64>,
    /// Engine that runs the program; the default is `jit` where it is supported, else `threaded`.
    ///
    /// `jit` is native code, `threaded` the fast interpreter; `plain` is the interpreter that checks every access at run
    /// time, and counts the instructions. All give the same results.
    #[arg(long, value_name = "NAME", value_parser = engine_names())]
    pub(super) engine: Option<Engine>,
    /// Run a program that was not verified, on the engine `plain`: every access is checked at run time.
    #[arg(long)]
    pub(super) unverified: bool,
    /// Count the verdicts of each program of the chain.
    #[arg(long)]
    pub(super) stats: bool,
    /// Gone: `paceline bench` measures.
    #[arg(long, hide = true, num_args = 0, default_missing_value = "", value_parser = gone)]
    time: Option<Gone>,
    /// Show the effect of each program on these packets, such as `1,5-7`, counted from 1.
    #[arg(long, value_name = "PACKETS", conflicts_with = "stats")]
    pub(super) trace: Option<Packets>,
    /// Load, verify and compile everything, show the chain, and run nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(super) json: bool,
}

/// Packets that `chain trace` shows where none are selected.
const TRACED: u64 = 10;

impl RunArgs {
    /// These arguments with `--stats`, as `chain status` runs.
    pub(crate) fn counted(self) -> Self {
        Self { stats: true, ..self }
    }

    /// These arguments with `--trace`, as `chain trace` runs.
    pub(crate) fn traced(self) -> Self {
        Self { trace: Some(self.trace.unwrap_or_else(|| Packets::first(TRACED))), ..self }
    }

    /// Whether the report is JSON on standard output, where nothing else goes.
    pub(crate) fn prints_json(&self) -> bool {
        let outputs = [&self.out, &self.drops, &self.events, &self.save_maps, &self.coverage, &self.verdicts];
        self.json && outputs.into_iter().flatten().all(|path| !is_stdout(path))
    }

    /// CPUs that packets come in on.
    pub(super) fn cpus(&self) -> usize {
        self.workers.unwrap_or(self.cpus).into()
    }

    /// The counters of coverage that programs get.
    pub(super) fn counting(&self) -> Option<Counting> {
        let counting = if self.workers() > 1 { Counting::Atomic } else { Counting::Plain };
        self.coverage.as_ref().map(|_| counting)
    }

    /// Threads that packets run on.
    pub(super) fn workers(&self) -> usize {
        self.workers.unwrap_or(1).into()
    }

    /// The engine that is asked for.
    ///
    /// # Errors
    /// Programs that are not verified run on one engine only.
    pub(super) fn engine(&self) -> Result<Engine, clap::Error> {
        match self.engine {
            Some(engine) if self.unverified && engine != Engine::Plain => {
                let text = format!(
                    "--engine {engine} runs verified programs, and with --unverified the engine is {}",
                    Engine::Plain
                );
                Err(usage_error::<Self>("run", ErrorKind::ArgumentConflict, &text))
            }
            Some(engine) => Ok(engine),
            None if self.unverified => Ok(Engine::Plain),
            None => Ok(Engine::best()),
        }
    }
}

/// An option that is gone.
#[derive(Clone, Copy, Debug)]
enum Gone {}

fn gone(_: &str) -> Result<Gone, &'static str> {
    Err(
        "it is gone, as it measured along with everything else; `paceline bench OBJECT --in FILE` measures programs and chains",
    )
}

/// `MAP=TYPE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventType {
    pub(super) map: String,
    /// With or without `struct`.
    pub(super) name: String,
}

impl EventType {
    fn parse(arg: &str) -> Result<Self, &'static str> {
        let (map, name) = arg.split_once('=').ok_or("it must be MAP=TYPE")?;
        let name =
            name.strip_prefix("struct ").or_else(|| name.strip_prefix("union ")).unwrap_or(name).trim();
        match (map.is_empty(), name.is_empty()) {
            (true, _) => Err("the map's name is missing"),
            (_, true) => Err("the type's name is missing"),
            _ => Ok(Self { map: map.to_owned(), name: name.to_owned() }),
        }
    }
}
