//! What can be asked for on the command line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::builder::styling::{AnsiColor, Styles};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use paceline::Engine;

use crate::chain::PlaceArg;
use crate::filter::{self, FilterArgs};
use crate::object::ObjectArgs;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  paceline run                                        try it: a firewall over a small capture, both built in
  paceline run firewall.o --in traffic.pcap           what would this program do to these packets?
  paceline filter tcp port 22 --in traffic.pcap       how many packets would tcpdump take?
  paceline inspect firewall.o                         what is in the object, and what would it need?
  paceline verify firewall.o                          is it safe, and if not, why?

Exit status: 0 success, 1 something could not be done, 2 wrong usage.";

const RUN_EXAMPLES: &str = "\
Examples:
  paceline run firewall.o balancer.o --in traffic.pcap --out passed.pcap --drops dropped.pcap
  paceline run balancer.o --in traffic.pcap --map backends=backends.json --maps --save-maps state.json
  paceline run sampler.o --in traffic.pcap --events - | jq .
  paceline run router.o --in traffic.pcap --network net.json --ingress eth0 --clock capture --seed 1
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

const CHAIN_EXAMPLES: &str = "\
Examples:
  paceline chain show firewall.o balancer.o
  paceline chain show chain.toml --svg > chain.svg
  paceline chain explain firewall.o balancer.o
  paceline chain status chain.toml --in traffic.pcap --time
  paceline chain trace firewall.o balancer.o --in traffic.pcap --trace 1,5-7
  paceline chain diff chain.toml next.toml

docs/CHAINS.md has the format of chain files.";

const INSPECT_EXAMPLES: &str = "\
Examples:
  paceline inspect firewall.o
  paceline inspect --json firewall.o | jq '.programs[].helpers'
  paceline inspect --json firewall.o | jq -e '.missing == []'       can Paceline run all of it?";

const VERIFY_EXAMPLES: &str = "\
Examples:
  paceline verify firewall.o
  paceline verify vlan.o:vlan_push --log | less                     every instruction, with what is known there
  paceline verify --json firewall.o | jq '.programs[] | select(.verdict == \"refused\").cause'

Exit status: 0 all programs are accepted, 1 one is refused or something could not be done, 2 wrong usage.";

const DUMP_EXAMPLES: &str = "\
Examples:
  paceline dump firewall.o
  paceline dump vlan.o:vlan_push --opcodes
  paceline dump firewall.o --jit | less                             C, BPF and native code side by side
  paceline dump vlan.o --dispatcher=retpoline                       how a call site chooses among its programs
  paceline dump --json firewall.o | jq -r '.programs[0].instructions[].text'";

const COMPLETION_EXAMPLES: &str = "\
Examples:
  paceline completions bash > ~/.local/share/bash-completion/completions/paceline
  paceline completions zsh > ~/.zfunc/_paceline
  paceline completions fish > ~/.config/fish/completions/paceline.fish";

/// Run XDP programs over captures in user space: the packets of each verdict, as the program left them, and
/// the contents of its maps.
#[derive(Debug, Parser)]
#[command(name = "paceline", version, styles = STYLES, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program over the packets of a capture.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Select the packets of a capture that match tcpdump's expressions, or a classic BPF program.
    #[command(after_help = filter::EXAMPLES)]
    Filter(Box<FilterArgs>),
    /// Show which program runs after which, why, and what each one does.
    Chain(ChainArgs),
    /// Show what is in an object and what it would need.
    #[command(after_help = INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
    /// Prove that programs are safe, or show why they are not.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Disassemble programs, with their source lines.
    #[command(after_help = DUMP_EXAMPLES)]
    Dump(DumpArgs),
    /// Print a script that completes this command's arguments in a shell.
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completions(CompletionsArgs),
}

impl Command {
    /// Whether standard output is to be one JSON object.
    pub(crate) fn prints_json(&self) -> bool {
        match self {
            Self::Run(args) => args.prints_json(),
            Self::Chain(args) => match &args.command {
                ChainCommand::Show(args) => args.json,
                ChainCommand::Explain(args) => args.json,
                ChainCommand::Status(args) | ChainCommand::Trace(args) => args.prints_json(),
                ChainCommand::Diff(args) => args.json,
            },
            Self::Inspect(args) => args.json,
            Self::Verify(args) => args.json,
            Self::Dump(args) => args.json,
            Self::Filter(_) | Self::Completions(_) => false,
        }
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Capture to read, pcap or pcapng; `-` is standard input. A small built-in one if left out.
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) input: Option<PathBuf>,
    /// Capture to write for packets with verdict pass, tx or redirect; `-` is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// Capture to write for packets that were dropped or aborted; `-` is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) drops: Option<PathBuf>,
    /// Print the maps after the run.
    #[arg(long)]
    pub(crate) maps: bool,
    /// Give the maps what --save-maps kept of an earlier run, and nothing else; before --map.
    #[arg(long, value_name = "FILE.json", value_hint = ValueHint::FilePath)]
    pub(crate) restore_maps: Option<PathBuf>,
    /// Keep what the maps hold when the run is over, for --restore-maps; the file is replaced as a whole, or left as it was.
    #[arg(long, value_name = "FILE.json", value_hint = ValueHint::FilePath)]
    pub(crate) save_maps: Option<PathBuf>,
    /// Write what programs send by perf event arrays and ring buffers: a JSON object in each line, or the packets among it
    /// where the name ends in `.pcapng`; `-` is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
    /// Show what a map is sent by a C type of the object's BTF; may be given several times.
    #[arg(long = "event-type", value_name = "MAP=TYPE", value_parser = EventType::parse, requires = "events")]
    pub(crate) event_types: Vec<EventType>,
    /// The network that programs see, or `host` for this host's: routes, neighbors and interfaces as `ip -j` prints them,
    /// sockets as `ss -tuan`, tracked connections as `conntrack -L`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) network: Option<PathBuf>,
    /// CPUs that packets come in on, all of a flow on the same one; per-CPU maps have a value for each.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) cpus: u16,
    /// Interface that all packets come in on: its index, or its name in the network.
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) ingress: Option<String>,
    /// Receive queue that all packets come in on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) rx_queue: u16,
    /// Where the time comes from that the program sees.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) clock: ClockArg,
    /// Seed of random numbers and cookies, so that a run can be repeated.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Stop after this many packets.
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// Instructions a program may run for one packet, on engines that count them.
    #[arg(long, value_name = "N", default_value_t = paceline::DEFAULT_BUDGET)]
    pub(crate) budget: u64,
    /// What runs the program: `jit` where there is one, else `threaded`, if left out.
    ///
    /// `jit` is native code, `threaded` the fast interpreter; `plain` is the interpreter that checks every access as it
    /// happens, and counts the instructions. All come to the same results. `checked-jit` is for whoever looks for gaps in
    /// the verifier: native code that checks every access.
    #[arg(long, value_name = "NAME", value_parser = engine_names())]
    pub(crate) engine: Option<Engine>,
    /// Run a program that was not verified, on the engine `plain`: every access is checked as it happens.
    #[arg(long)]
    pub(crate) unverified: bool,
    /// Count what each program of the chain returns.
    #[arg(long)]
    pub(crate) stats: bool,
    /// The same, and measure how long each program takes; packets go through it one by one then.
    #[arg(long)]
    pub(crate) time: bool,
    /// Show what each program did to these packets, such as `1,5-7`, counted from 1.
    #[arg(long, value_name = "PACKETS", conflicts_with_all = ["stats", "time"])]
    pub(crate) trace: Option<Packets>,
    /// Load, verify and compile everything, show the chain, and run nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a chain is made of.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SourceArgs {
    /// Object file, and which of its programs where it has several; several are a chain. A chain file ends in `.toml`.
    /// A built-in firewall if left out.
    #[arg(value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(crate) targets: Vec<OsString>,
    /// Chain file to run.
    #[arg(long, value_name = "FILE.toml", value_hint = ValueHint::FilePath, conflicts_with = "targets")]
    pub(crate) chain: Option<PathBuf>,
    /// What runs first: the program with the lowest run priority, as with libxdp, or the one given first.
    #[arg(long, value_enum, conflicts_with = "chain")]
    pub(crate) order: Option<OrderName>,
    /// Chain-call map: which program runs next, by program and verdict; packets enter at the program given first.
    #[arg(long, value_name = "FILE.json", value_hint = ValueHint::FilePath, conflicts_with_all = ["chain", "order"])]
    pub(crate) calls: Option<PathBuf>,
    /// Take a program to another place than that in which it is given: `first`, `last`, `before:NAME`, `after:NAME`, or
    /// `replace:NAME`, which leaves that one out. May be given several times, and is done in that order.
    #[arg(long = "place", value_name = "NAME=WHERE", value_parser = PlaceArg::parse, conflicts_with_all = ["chain", "calls"])]
    pub(crate) places: Vec<PlaceArg>,
    #[command(flatten)]
    pub(crate) object: ObjectArgs,
}

/// The order of programs that are given as objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OrderName {
    /// By run priority, which objects give with XDP_RUN_CONFIG.
    Priority,
    /// As they are given.
    Given,
}

impl SourceArgs {
    /// The chain file, if one is named.
    pub(crate) fn chain_file(&self) -> Option<&Path> {
        match self.targets.as_slice() {
            [only] => Some(Path::new(only)).filter(is_chain_file),
            _ => self.chain.as_deref(),
        }
    }

    /// A chain file that stands among objects.
    pub(crate) fn file_among_objects(&self) -> Option<&Path> {
        self.targets.iter().map(Path::new).find(is_chain_file)
    }
}

fn is_chain_file(path: &&Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// Numbers of packets, from 1: `1,5-7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packets(Vec<(u64, u64)>);

impl Packets {
    /// The first so many.
    pub(crate) fn first(packets: u64) -> Self {
        Self(vec![(1, packets)])
    }

    /// The first of them that is none of the first so many, but for those of a range that has some of these.
    pub(crate) fn beyond(&self, packets: u64) -> Option<u64> {
        self.0.iter().map(|(first, _)| *first).filter(|first| *first > packets).min()
    }

    /// Whether a packet is among them.
    pub(crate) fn contains(&self, packet: u64) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&packet))
    }
}

impl std::str::FromStr for Packets {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((number(first)?, number(last)?)).filter(|(first, last)| first <= last)
        };
        let ranges: Option<_> = text.split(',').map(range).collect();
        ranges.map(Self).ok_or("packets are numbers from 1, such as 1,5-7")
    }
}

/// Engines by their names.
pub(crate) fn engine_names() -> impl TypedValueParser<Value = Engine> {
    // The one for tests is slower than what it stands in for, and no safer for who trusts the verifier.
    let name = |engine: Engine| PossibleValue::new(engine.name()).hide(engine == Engine::CheckedJit);
    PossibleValuesParser::new(Engine::ALL.map(name)).try_map(|name| name.parse::<Engine>())
}

impl RunArgs {
    /// Whether the report is JSON on standard output, where nothing else goes.
    fn prints_json(&self) -> bool {
        let outputs = [&self.out, &self.drops, &self.events, &self.save_maps];
        self.json && outputs.into_iter().flatten().all(|path| path != Path::new("-"))
    }

    /// The engine that is asked for.
    ///
    /// # Errors
    /// A program that nobody verified is for one engine only.
    pub(crate) fn engine(&self) -> Result<Engine, clap::Error> {
        match self.engine {
            Some(engine) if self.unverified && engine != Engine::Plain => {
                let mut command = Args::command();
                command.build();
                let run =
                    command.find_subcommand_mut("run").unwrap_or_else(|| unreachable!("it is a command"));
                let text = format!(
                    "--engine {engine} runs verified programs, and with --unverified the engine is {}",
                    Engine::Plain
                );
                Err(run.error(ErrorKind::ArgumentConflict, text))
            }
            Some(engine) => Ok(engine),
            None if self.unverified => Ok(Engine::Plain),
            None => Ok(Engine::best()),
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct ChainArgs {
    #[command(subcommand)]
    pub(crate) command: ChainCommand,
}

#[derive(Debug, Subcommand)]
#[command(after_help = CHAIN_EXAMPLES)]
pub(crate) enum ChainCommand {
    /// Show the graph: which program runs after which verdict.
    Show(ShowArgs),
    /// Show the order of the programs and the reason for each place.
    Explain(ExplainArgs),
    /// Run a capture, and show what each program returned, and how long it took.
    Status(Box<RunArgs>),
    /// Run a capture, and show what each program did to certain packets.
    Trace(Box<RunArgs>),
    /// Show what would change if one chain were put in the place of another; everything is loaded and verified.
    Diff(DiffArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Print the graph in DOT, for Graphviz.
    #[arg(long, conflicts_with_all = ["svg", "json"])]
    pub(crate) dot: bool,
    /// Print the graph as a picture, in SVG.
    #[arg(long, conflicts_with = "json")]
    pub(crate) svg: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// Chain file that is there.
    #[arg(value_name = "OLD.toml", value_hint = ValueHint::FilePath)]
    pub(crate) old: PathBuf,
    /// Chain file in its place.
    #[arg(value_name = "NEW.toml", value_hint = ValueHint::FilePath)]
    pub(crate) new: PathBuf,
    #[command(flatten)]
    pub(crate) how: ObjectArgs,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// Object file.
    #[arg(value_name = "OBJECT", value_hint = ValueHint::FilePath)]
    pub(crate) object: PathBuf,
    #[command(flatten)]
    pub(crate) how: ObjectArgs,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Object file, and one of its programs; all of them if none is named.
    #[arg(value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(crate) target: OsString,
    #[command(flatten)]
    pub(crate) how: ObjectArgs,
    /// Print every instruction as it is verified, with what is known there.
    #[arg(long, conflicts_with = "json")]
    pub(crate) log: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DumpArgs {
    /// Object file, and one of its programs; all of them if none is named.
    #[arg(value_name = "OBJECT[:PROGRAM]", value_hint = ValueHint::FilePath)]
    pub(crate) target: OsString,
    #[command(flatten)]
    pub(crate) how: ObjectArgs,
    /// Show the bytes of each instruction.
    #[arg(long)]
    pub(crate) opcodes: bool,
    /// Show the native code that the programs are compiled to, beside the instructions.
    #[arg(long)]
    pub(crate) jit: bool,
    /// Show the code that a call site with the programs chooses among them by, instead of theirs.
    #[arg(
        long,
        value_name = "FALLBACK",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "indirect",
        conflicts_with = "jit"
    )]
    pub(crate) dispatcher: Option<FallbackArg>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a call site calls programs that it has no slot for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FallbackArg {
    /// By an indirect jump.
    Indirect,
    /// By a retpoline.
    Retpoline,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Where the time comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ClockArg {
    /// The system's clocks.
    #[default]
    System,
    /// The packets' time stamps: with `--seed`, a run comes out the same every time.
    Capture,
}

/// A number of bytes: `4096`, `64K`, `16M`, `4G`.
pub(crate) fn parse_size(text: &str) -> Result<u64, &'static str> {
    const FORM: &str = "it must be a number of bytes, which may end in K, M or G";
    let units = [('K', 1 << 10), ('M', 1 << 20), ('G', 1 << 30)];
    let found = units.into_iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)));
    let (number, unit): (&str, u64) = found.unwrap_or((text, 1));
    let number: u64 = number.parse().map_err(|_| FORM)?;
    number.checked_mul(unit).ok_or("that is more than 64 bits can say")
}

/// `MAP=TYPE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventType {
    pub(crate) map: String,
    /// With or without `struct`.
    pub(crate) name: String,
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

/// A map and a file with what it is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapFile {
    pub(crate) map: String,
    pub(crate) path: PathBuf,
}

/// `OBJECT[:PROGRAM]`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) path: PathBuf,
    pub(crate) program: Option<String>,
}

impl Target {
    /// A file of the whole name wins over a program after its last colon.
    pub(crate) fn parse(arg: &OsStr, exists: impl Fn(&Path) -> bool) -> Self {
        let whole = Self { path: PathBuf::from(arg), program: None };
        let bytes = arg.as_bytes();
        let Some(colon) = bytes.iter().rposition(|&b| b == b':') else { return whole };
        let (path, program) = (bytes.get(..colon).unwrap_or_default(), bytes.get(colon + 1..));
        // A colon before a slash belongs to a folder's name.
        let program = program.unwrap_or_default();
        if path.is_empty() || program.is_empty() || program.contains(&b'/') || exists(&whole.path) {
            return whole;
        }
        // No program has a name that is not UTF-8; the message about it shows what can be shown.
        let program = String::from_utf8_lossy(program).into_owned();
        Self { path: PathBuf::from(OsStr::from_bytes(path)), program: Some(program) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    fn target(arg: &[u8], there: &[&[u8]]) -> (Vec<u8>, Option<String>) {
        let exists = |path: &Path| there.contains(&path.as_os_str().as_bytes());
        let target = Target::parse(OsStr::from_bytes(arg), exists);
        (target.path.into_os_string().as_bytes().to_vec(), target.program)
    }

    #[test]
    fn a_program_follows_the_last_colon_unless_a_file_has_that_name() {
        assert_eq!(target(b"a.o", &[]), (b"a.o".to_vec(), None));
        assert_eq!(target(b"a.o:main", &[]), (b"a.o".to_vec(), Some("main".into())));
        assert_eq!(target(b"a:b.o:main", &[]), (b"a:b.o".to_vec(), Some("main".into())));
        assert_eq!(target(b"a:b.o", &[b"a:b.o"]), (b"a:b.o".to_vec(), None));
        assert_eq!(target(b"a:b/c.o", &[]), (b"a:b/c.o".to_vec(), None));
        assert_eq!(target(b"a.o:", &[]), (b"a.o:".to_vec(), None));
        assert_eq!(target(b"\xff.o:main", &[]), (b"\xff.o".to_vec(), Some("main".into())));
    }

    #[test]
    fn a_size_may_have_a_unit() {
        assert_eq!(
            ["0", "17", "3K", "64M", "4G"].map(parse_size),
            [0, 17, 3 << 10, 64 << 20, 4 << 30].map(Ok)
        );
        for wrong in ["", "K", "-1", "1T", "1.5G", "4 G", "99999999999G"] {
            parse_size(wrong).unwrap_err();
        }
    }
}
