//! `compiled`: random C, compiled, on all engines and the kernel.
//!
//! Units of programs run in child processes, which print a line of JSON for each program. A program with a difference, or
//! that kills its child, is shrunk and kept as a C file.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use paceline_testkit::AnyEngine;
use paceline_testkit::child::{self, Ended, Event, Jobs};
use paceline_testkit::compiled::{
    CProgram, Compiler, Node, PROGRAMS, Setup, Unit, chain_of, compile_text, compilers, shrink, try_named,
    unit_text,
};
use paceline_testkit::kernel;
use paceline_testkit::object_runs::ENGINES;
use paceline_testkit::say;
use serde_json::{Value, json};

use crate::Outcome;
use crate::tally::{Tally, cause, line_of};

#[derive(clap::Args, Clone)]
pub(crate) struct Options {
    /// First program; its number is its seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Programs
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Packets that each program is run on
    #[arg(long, default_value_t = 64)]
    runs: usize,
    /// Engines to compare, the reference first
    #[arg(long, value_delimiter = ',', default_values_t = ENGINES)]
    engines: Vec<AnyEngine>,
    /// Leave the kernel out
    #[arg(long)]
    no_kernel: bool,
    /// Stop after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Seconds that one program may take, compiling of its unit included
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// Directory for programs that fail
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Failures that are made smaller and kept
    #[arg(long, default_value_t = 5)]
    most: usize,
    /// Print all reasons of refusals, and not the most frequent ones alone
    #[arg(long)]
    stats: bool,
    /// Print the text of the unit that the first program is in, and its compiler
    #[arg(long)]
    show: bool,
    /// Run units here, without children
    #[arg(long, hide = true)]
    child: bool,
    /// Run the programs of a file of C, compiled by `--compiler`, over the packets of the seed
    #[arg(long, hide = true)]
    source: Option<PathBuf>,
    /// Version of clang, instruction set and level of optimization, such as `19,3,2`
    #[arg(long, hide = true)]
    compiler: Option<String>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let versions = compilers();
    if versions.is_empty() {
        paceline_testkit::skip("compiled", &"no clang-14, clang-16 or clang-19");
        return Ok(ExitCode::SUCCESS);
    }
    if options.show {
        return show(options, versions);
    }
    let pinned = kernel::pin();
    let setup = Setup {
        engines: options.engines.clone(),
        runs: options.runs,
        kernel: !options.no_kernel,
        cpu: pinned.cpu(),
    };
    if let Some(source) = &options.source {
        return check_source(options, source, &setup);
    }
    if options.child {
        return run_units(options, versions, &setup);
    }
    drop(pinned);
    let mut options = options.clone();
    options.no_kernel |= !kernel::available_for("compiled in the kernel");
    campaign(&options)
}

fn show(options: &Options, versions: &[u32]) -> Outcome {
    let number = options.seed / PROGRAMS;
    let compiler = Compiler::of_seed(number, versions).ok_or("no compiler")?;
    let programs: Vec<CProgram> =
        (0..PROGRAMS).map(|index| CProgram::generate(number * PROGRAMS + index, compiler)).collect();
    say!("/* {compiler} */\n{}", unit_text(&programs));
    Ok(ExitCode::SUCCESS)
}

/// Runs, in a child, the programs from `--seed` on, and prints a line for each.
fn run_units(options: &Options, versions: &[u32], setup: &Setup) -> Outcome {
    let directory = tempfile::tempdir().map_err(|error| paceline::with_causes(&error))?;
    let mut unit: Option<Unit> = None;
    let mut given_up = None;
    for number in options.seed..options.seed.saturating_add(options.count) {
        if given_up == Some(number / PROGRAMS) {
            continue;
        }
        child::begin(number);
        let made = match unit.take().filter(|unit| unit.number == number / PROGRAMS) {
            Some(unit) => unit,
            None => {
                let made = match Unit::make(number / PROGRAMS, versions, directory.path()) {
                    Ok(made) => made,
                    Err(error) => {
                        say!("{}", json!({"kind": "unit", "program": number, "text": error}));
                        given_up = Some(number / PROGRAMS);
                        continue;
                    }
                };
                for (number, error) in &made.failed {
                    say!("{}", json!({"kind": "compiler", "program": number, "text": error}));
                }
                made
            }
        };
        if let Some(findings) = made.try_one(number, setup) {
            say!("{}", line_of(number, &made.compiler.to_string(), &findings));
        }
        say!("{}", json!({"kind": "chain"}));
        if let Some((text, _)) = made.try_chain(number, setup) {
            say!("{}", json!({"kind": "chain", "program": number, "text": text}));
        }
        unit = Some(made);
    }
    child::finish();
    Ok(ExitCode::SUCCESS)
}

fn pass_on(options: &Options, command: &mut Command) {
    let engines: Vec<String> = options.engines.iter().map(AnyEngine::to_string).collect();
    command.args(["--engines", &engines.join(",")]);
    if options.no_kernel {
        command.arg("--no-kernel");
    }
}

/// Runs the programs of a file, each alone and then as a chain. Exit status 1 for a difference.
fn check_source(options: &Options, source: &Path, setup: &Setup) -> Outcome {
    let compiler =
        options.compiler.as_deref().and_then(parse_compiler).ok_or("--compiler, such as 19,3,2")?;
    let text = std::fs::read_to_string(source).map_err(|error| format!("{}: {error}", source.display()))?;
    let directory = tempfile::tempdir().map_err(|error| paceline::with_causes(&error))?;
    let Ok(object) = compile_text(&text, compiler, directory.path()) else { return Ok(ExitCode::from(2)) };
    let names: Vec<String> = object.programs().iter().map(|spec| spec.name.clone()).collect();
    let mut difference = None;
    for name in &names {
        let findings = try_named(&object, name, options.seed, setup);
        if let Err(reason) = &findings.verdicts.ours.verified {
            say!("{name} is refused: {reason}");
        }
        let found = findings.difference.filter(|_| findings.pure);
        difference = difference.or(found.map(|(who, text)| format!("{name}: {who}: {text}")));
    }
    difference = difference.or_else(|| chain_of(&object, &names, options.seed, setup));
    let Some(difference) = difference else { return Ok(ExitCode::SUCCESS) };
    say!("{difference}");
    Ok(ExitCode::FAILURE)
}

fn parse_compiler(text: &str) -> Option<Compiler> {
    let mut parts = text.split(',');
    let (version, cpu, level) = (parts.next()?, parts.next()?, parts.next()?);
    Some(Compiler { version: version.parse().ok()?, cpu: cpu.parse().ok()?, level: level.parse().ok()? })
}

/// A failed program.
struct Failure {
    number: u64,
    chain: bool,
    text: String,
}

fn campaign(options: &Options) -> Outcome {
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut failures: Vec<Failure> = Vec::new();
    let mut in_chain = false;
    let end = options.seed.saturating_add(options.count);
    let jobs = Jobs { first: options.seed, end, limit: Duration::from_secs(options.limit) };
    let command = |first: u64| {
        let mut command = child::command()?;
        command.args(["compiled", "--child", "--seed", &first.to_string()]);
        command.args(["--count", &(end - first).to_string(), "--runs", &options.runs.to_string()]);
        pass_on(options, &mut command);
        Ok(command)
    };
    let mut fail = |tally: &mut Tally, number: u64, chain: bool, text: String| {
        let at = start.elapsed().as_secs_f64();
        let what = if chain { "chain of program" } else { "program" };
        say!("FAILURE after {} programs and {at:.1} s: {what} {number}: {text}", tally.programs);
        tally.failures += 1;
        failures.push(Failure { number, chain, text });
    };
    child::supervise(jobs, command, |event| {
        match event {
            Event::Line(line) => {
                let line: Value = serde_json::from_str(&line).unwrap_or_default();
                let number = line["program"].as_u64();
                let text = || line["text"].as_str().unwrap_or_default().to_owned();
                match (line["kind"].as_str(), number) {
                    (Some("compiler"), Some(number)) => {
                        let text = text();
                        let error = text.lines().find(|line| line.contains("error")).unwrap_or(&text);
                        let error = error.split_once("error: ").map_or(error, |(_, rest)| rest);
                        tally.not_compiled += 1;
                        tally.count("does not compile:", &cause(error), number);
                    }
                    (Some("program"), Some(number)) => {
                        tally.add(&line);
                        in_chain = false;
                        if let (Some(pair), Some(true)) =
                            (line["difference"].as_array(), line["pure"].as_bool())
                        {
                            let part = |index: usize| pair[index].as_str().unwrap_or_default();
                            fail(&mut tally, number, false, format!("{}: {}", part(0), part(1)));
                        }
                    }
                    (Some("unit"), Some(number)) => {
                        fail(&mut tally, number, false, format!("its unit cannot be made: {}", text()));
                    }
                    (Some("chain"), Some(number)) => fail(&mut tally, number, true, text()),
                    (Some("chain"), None) => in_chain = true,
                    _ => say!("a child says: {line}"),
                }
            }
            Event::Failed(number, ran) => {
                fail(&mut tally, number, in_chain, ran.to_string());
                in_chain = false;
            }
        }
        options.seconds.is_none_or(|seconds| start.elapsed() < Duration::from_secs(seconds))
    })?;
    report(&tally, start.elapsed().as_secs_f64(), options);
    for failure in failures.iter().take(options.most) {
        keep(options, failure)?;
    }
    Ok(if tally.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(tally: &Tally, seconds: f64, options: &Options) {
    say!(
        "{} programs from seed {}, {} packets each, in {seconds:.1} s ({:.1} a second): {} accepted here; both accept {}, \
         both refuse {}, of {} that the kernel was asked about; {} do not compile; {} differ that depend on addresses or unwritten memory; {} failures; slowest verification {:.3} s (seed {})",
        tally.programs,
        options.seed,
        options.runs,
        tally.programs as f64 / seconds.max(1e-9),
        tally.ours_accepted,
        tally.both_accept,
        tally.both_refuse,
        tally.kernel_asked,
        tally.not_compiled,
        tally.impure,
        tally.failures,
        tally.slowest.0,
        tally.slowest.1,
    );
    tally.print_reasons(options.stats);
}

/// Shrinks a failure, prints it and keeps it.
fn keep(options: &Options, failure: &Failure) -> Result<(), String> {
    let versions = compilers();
    let compiler = Compiler::of_seed(failure.number / PROGRAMS, versions).ok_or("no compiler")?;
    let directory = tempfile::tempdir().map_err(|error| paceline::with_causes(&error))?;
    let programs = if failure.chain {
        let unit = Unit::make(failure.number / PROGRAMS, versions, directory.path())?;
        let index = unit.programs.iter().position(|program| program.number == failure.number).unwrap_or(0);
        let first = index.saturating_sub(1 + (failure.number % 2) as usize);
        unit.programs.get(first..=index).unwrap_or_default().to_vec()
    } else {
        vec![CProgram::generate(failure.number, compiler)]
    };
    let nodes: Vec<Node> = programs.iter().flat_map(|program| program.nodes.clone()).collect();
    let as_text = |nodes: &[Node]| unit_text([&CProgram { number: failure.number, nodes: nodes.to_vec() }]);
    let file = directory.path().join("small.c");
    // A shrunk program must fail in the same way.
    let way = |nodes: &[Node]| {
        std::fs::write(&file, as_text(nodes)).ok()?;
        let (checked, said) = check(options, &file, compiler, failure.number).ok()?;
        (checked == Checked::Fails).then(|| kind_of(&said))
    };
    let first = way(&nodes);
    let small = if first.is_some() { shrink(&nodes, 400, |nodes| way(nodes) == first) } else { nodes };
    let text = as_text(&small);
    std::fs::write(&file, &text).map_err(|error| paceline::with_causes(&error))?;
    let (checked, said) = check(options, &file, compiler, failure.number)?;
    let said = if checked == Checked::Fails { said } else { format!("{}\n(not on its own)", failure.text) };
    let numbers = format!("{},{},{}", compiler.version, compiler.cpu, compiler.level);
    let (seed, runs) = (failure.number, options.runs);
    let head = format!(
        "/* {compiler}\n * paceline-testkit compiled --source FILE --compiler {numbers} --seed {seed} --runs {runs}\n */\n"
    );
    let own = text.strip_prefix(paceline_testkit::compiled::PRELUDE).unwrap_or(&text);
    say!("---- program {seed}, {compiler}\n{}\n{own}", said.trim_end());
    if let Some(directory) = &options.keep {
        std::fs::create_dir_all(directory).map_err(|error| paceline::with_causes(&error))?;
        let said: String = said.lines().map(|line| format!("// {line}\n")).collect();
        std::fs::write(directory.join(format!("program_{seed}.c")), format!("{head}{said}{text}"))
            .map_err(|error| paceline::with_causes(&error))?;
    }
    Ok(())
}

/// The sides that differ, or the signal.
fn kind_of(said: &str) -> String {
    let line = said.lines().find(|line| !line.contains(" is refused: ")).unwrap_or_default();
    line.split(": ").find(|part| !part.starts_with("prog_")).unwrap_or(line).to_owned()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Checked {
    Same,
    Fails,
}

/// Runs a file in a child: a difference, a crash or a hang is a failure; a refusal by a compiler or a verifier is not.
fn check(options: &Options, file: &Path, compiler: Compiler, seed: u64) -> Result<(Checked, String), String> {
    let mut command = child::command()?;
    command.args(["compiled", "--seed", &seed.to_string(), "--runs", &options.runs.to_string(), "--source"]);
    let numbers = format!("{},{},{}", compiler.version, compiler.cpu, compiler.level);
    command.arg(file).args(["--compiler", &numbers]);
    pass_on(options, &mut command);
    let mut said = String::new();
    let ran = child::run(&mut command, Duration::from_secs(options.limit), |line| {
        said.push_str(line);
        said.push('\n');
        true
    })?;
    Ok(match ran.ended {
        Ended::Exit(0 | 2) => (Checked::Same, said),
        Ended::Exit(1) => (Checked::Fails, said),
        _ => (Checked::Fails, format!("{said}{ran}")),
    })
}
