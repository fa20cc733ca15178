//! The commands of the command line.

use clap::{Parser, Subcommand};

use crate::commands;
use crate::commands::bench::BenchArgs;
use crate::commands::capture::CaptureArgs;
use crate::commands::chain::{DiffArgs as ChainDiffArgs, ExplainArgs, RunningArgs, ShowArgs};
use crate::commands::completions::CompletionsArgs;
use crate::commands::diff::DiffArgs;
use crate::commands::dump::DumpArgs;
use crate::commands::filter::FilterArgs;
use crate::commands::generate::GenerateArgs;
use crate::commands::inspect::InspectArgs;
use crate::commands::live::LiveArgs;
use crate::commands::man::ManArgs;
use crate::commands::prove::ProveArgs;
use crate::commands::remote::{MapArgs, StatsArgs, StatusArgs, StopArgs};
use crate::commands::report::ReportArgs;
use crate::commands::run::RunArgs;
use crate::commands::scan::ScanArgs;
use crate::commands::test::TestArgs;
use crate::commands::top::TopArgs;
use crate::commands::verify::VerifyArgs;
use crate::commands::why::WhyArgs;
use crate::common::args::STYLES;

const EXAMPLES: &str = "\
Examples:
  paceline run                                        try it: a firewall over a small capture, both built in
  paceline run firewall.o --in traffic.pcap           what would this program do to these packets?
  paceline test                                       run the tests below this folder
  paceline why firewall.o --packet 3                  why did the third packet pass or not?
  paceline live firewall.o --port xdp:eth0            run it on an interface
  paceline verify firewall.o                          is it safe, and if not, why?

Exit status: 0 success, 1 something could not be done, 2 wrong usage.";

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
    #[command(after_help = commands::run::EXAMPLES)]
    Run(Box<RunArgs>),
    /// Run tests of programs: packets, and what must become of them.
    #[command(after_help = commands::test::EXAMPLES)]
    Test(Box<TestArgs>),
    /// Find a packet for each side of each branch of a program, or a proof that there is none.
    #[command(after_help = commands::generate::EXAMPLES)]
    Generate(Box<GenerateArgs>),
    /// Prove that a property holds for all packets, or find one with which it does not.
    #[command(after_help = commands::prove::EXAMPLES)]
    Prove(Box<ProveArgs>),
    /// Compare what two programs, chains or engines do with the packets of a capture.
    #[command(after_help = commands::diff::EXAMPLES)]
    Diff(Box<DiffArgs>),
    /// Write a page that shows what a program did with the packets of a capture, and why.
    #[command(after_help = commands::report::EXAMPLES)]
    Report(Box<ReportArgs>),
    /// Measure the time that a program takes for the packets of a capture, perhaps against another one.
    #[command(after_help = commands::bench::EXAMPLES)]
    Bench(Box<BenchArgs>),
    /// Explain what a program did with a packet: the path, and the branch that decided.
    #[command(after_help = commands::why::EXAMPLES)]
    Why(Box<WhyArgs>),
    /// Run programs on network interfaces and other ports, until interrupted.
    #[command(after_help = commands::live::EXAMPLES)]
    Live(Box<LiveArgs>),
    /// Print the counts of a live run.
    #[command(after_help = commands::remote::STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Print the rates of a live run at intervals.
    #[command(after_help = commands::remote::STATS_EXAMPLES)]
    Stats(StatsArgs),
    /// Show a live run on the terminal: rates, ports, workers.
    #[command(after_help = commands::top::EXAMPLES)]
    Top(TopArgs),
    /// Capture packets of a live run, with what became of them.
    #[command(after_help = commands::capture::EXAMPLES)]
    Capture(CaptureArgs),
    /// Read and change the maps of a live run.
    #[command(after_help = commands::remote::MAP_EXAMPLES)]
    Map(MapArgs),
    /// End a live run.
    #[command(after_help = commands::remote::STOP_EXAMPLES)]
    Stop(StopArgs),
    /// Select the packets of a capture that match tcpdump's expressions, or a classic BPF program.
    #[command(after_help = commands::filter::EXAMPLES)]
    Filter(Box<FilterArgs>),
    /// Scan many captures for packets, with a filter and a program, on several workers.
    #[command(after_help = commands::scan::EXAMPLES)]
    Scan(Box<ScanArgs>),
    /// Show the order of a chain's programs, its reasons, and the verdicts of each program.
    Chain(ChainArgs),
    /// Show the programs and maps of an object, and the features that it needs.
    #[command(after_help = commands::inspect::EXAMPLES)]
    Inspect(InspectArgs),
    /// Prove that programs are safe, or show why they are not.
    #[command(after_help = commands::verify::EXAMPLES)]
    Verify(VerifyArgs),
    /// Disassemble programs, with their source lines.
    #[command(after_help = commands::dump::EXAMPLES)]
    Dump(DumpArgs),
    /// Write manual pages.
    #[command(after_help = commands::man::EXAMPLES)]
    Man(ManArgs),
    /// Print a script that completes this command's arguments in a shell.
    #[command(after_help = commands::completions::EXAMPLES)]
    Completions(CompletionsArgs),
}

impl Command {
    /// Whether standard output is to be one JSON object.
    pub(crate) fn prints_json(&self) -> bool {
        match self {
            Self::Run(args) => args.prints_json(),
            Self::Test(args) => args.json,
            Self::Bench(args) => args.json,
            Self::Diff(args) => args.json,
            Self::Why(args) => args.json,
            Self::Live(args) => args.json,
            Self::Status(args) => args.json,
            Self::Stats(args) => args.json,
            Self::Map(args) => args.prints_json(),
            Self::Chain(args) => match &args.command {
                ChainCommand::Show(args) => args.json,
                ChainCommand::Explain(args) => args.json,
                ChainCommand::Status(args) | ChainCommand::Trace(args) => args.prints_json(),
                ChainCommand::Diff(args) => args.json,
                ChainCommand::Running(args) => args.json,
            },
            Self::Scan(args) => args.json,
            Self::Inspect(args) => args.json,
            Self::Verify(args) => args.json,
            Self::Generate(args) => args.json,
            Self::Prove(args) => args.json,
            Self::Dump(args) => args.json,
            Self::Report(_)
            | Self::Top(_)
            | Self::Capture(_)
            | Self::Stop(_)
            | Self::Filter(_)
            | Self::Man(_)
            | Self::Completions(_) => false,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct ChainArgs {
    #[command(subcommand)]
    pub(crate) command: ChainCommand,
}

#[derive(Debug, Subcommand)]
#[command(after_help = commands::chain::EXAMPLES)]
pub(crate) enum ChainCommand {
    /// Show the graph: which program runs after which verdict.
    Show(ShowArgs),
    /// Show the order of the programs and the reason for each place.
    Explain(ExplainArgs),
    /// Run a capture, and show the verdicts of each program.
    Status(Box<RunArgs>),
    /// Run a capture, and show the effect of each program on selected packets.
    Trace(Box<RunArgs>),
    /// Show the differences between two chains; everything is loaded and verified.
    Diff(ChainDiffArgs),
    /// Show the chain of a live run.
    Running(RunningArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::common::args::{in_words, taking_negative_numbers};

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    /// Phrases of the parsers of Rust and clap.
    const RAW: [&str; 9] = [
        "invalid digit",
        "invalid float",
        "cannot parse integer",
        "number too",
        "provided string",
        "out of range integral",
        "invalid socket address",
        "is not in",
        "unexpected argument",
    ];

    /// The paths of all commands and the options of each that take a value.
    fn options(command: &clap::Command, path: &[String], found: &mut Vec<(Vec<String>, String)>) {
        let takes =
            command.get_arguments().filter(|arg| !arg.is_positional() && arg.get_action().takes_values());
        // A value of an option that requires it comes behind an equals sign.
        let name = |arg: &clap::Arg| {
            let long = arg.get_long()?;
            Some(if arg.is_require_equals_set() { format!("--{long}=") } else { format!("--{long}") })
        };
        found.extend(takes.filter_map(|arg| Some((path.to_vec(), name(arg)?))));
        for inner in command.get_subcommands() {
            options(inner, &[path, &[inner.get_name().to_owned()]].concat(), found);
        }
    }

    #[test]
    fn wrong_values_of_options_are_told_in_words() {
        let command = taking_negative_numbers(Args::command());
        let mut all = Vec::new();
        options(&command, &[], &mut all);
        assert!(all.len() > 150, "{}", all.len());
        for (path, option) in all {
            for value in ["abc", "", "-1", "1.5", "0", "18446744073709551616", "1:2:3", "\u{e4}"] {
                let given = match option.ends_with('=') {
                    true => vec![format!("{option}{value}")],
                    false => vec![option.clone(), value.to_owned()],
                };
                let args = [&["paceline".to_owned()], &path[..], &given].concat();
                let Err(error) = command.clone().try_get_matches_from(args) else { continue };
                let told = in_words(error, &command).to_string();
                let first = told.lines().next().unwrap_or_default();
                let raw = RAW.iter().find(|raw| first.contains(**raw));
                assert_eq!(raw, None, "{path:?} {option} {value:?}: {told}");
            }
        }
    }
}
