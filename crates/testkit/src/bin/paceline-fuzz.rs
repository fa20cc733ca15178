//! Random programs on two engines that must agree:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-fuzz -- --count 1000000
//! cargo run --release -p paceline-testkit --bin paceline-fuzz -- --seed 17 --count 1    # that program again
//! ```
//!
//! Program number n of a run has seed `--seed` + n. A program on which the engines disagree is shrunk and printed as a text
//! case to put below `tests/cases`, and the run ends with exit status 1.
#![allow(clippy::print_stderr, reason = "a command")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use lexopt::{Arg, ValueExt};
use paceline_testkit::generate::{
    Disagreement, Generated, KernelSubject, Mix, PlainSubject, Subject, check, shrink,
};
use paceline_testkit::say;

const HELP: &str = "\
usage: paceline-fuzz [--seed N] [--count N] [--inputs N] [--steps N] [--engine NAME] [--against NAME]

  --seed N        seed of the first program (0)
  --count N       programs (10000)
  --inputs N      states each program is run on (3)
  --steps N       most steps of a program (40)
  --engine NAME   an engine: plain, kernel (plain)
  --against NAME  the other (kernel)
  --log           print the kernel verifier's log of a program on which they disagree
  --show          print each program and run none";

/// What is asked for.
struct Options {
    seed: u64,
    count: u64,
    inputs: usize,
    mix: Mix,
    engine: String,
    against: String,
    show: bool,
    log: bool,
}

/// Why nothing can be run.
#[derive(Debug, thiserror::Error)]
enum FuzzError {
    #[error(transparent)]
    Arguments(#[from] lexopt::Error),
    #[error("no engine {0:?}; there is plain and kernel")]
    NoEngine(String),
    #[error(transparent)]
    Map(#[from] paceline::CreateError),
    #[error(transparent)]
    Kernel(#[from] paceline_testkit::kernel::KernelError),
}

fn main() -> ExitCode {
    match start() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("paceline-fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<ExitCode, FuzzError> {
    let Some(options) = parse()? else {
        say!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    if options.show {
        for seed in seeds(&options) {
            paceline_testkit::console::print(format_args!(
                "{}",
                generated(&options, seed).to_case(&format!("seed_{seed}"), 0, None)
            ));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut one = subject(&options.engine)?;
    let mut other = subject(&options.against)?;
    Ok(run(&options, one.as_mut(), other.as_mut()))
}

fn parse() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options {
        seed: 0,
        count: 10_000,
        inputs: 3,
        mix: Mix::default(),
        engine: "plain".to_owned(),
        against: "kernel".to_owned(),
        show: false,
        log: false,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => return Ok(None),
            Arg::Long("seed") => options.seed = parser.value()?.parse()?,
            Arg::Long("count") => options.count = parser.value()?.parse()?,
            Arg::Long("inputs") => options.inputs = parser.value()?.parse()?,
            Arg::Long("steps") => options.mix.steps = parser.value()?.parse()?,
            Arg::Long("engine") => options.engine = parser.value()?.string()?,
            Arg::Long("against") => options.against = parser.value()?.string()?,
            Arg::Long("show") => options.show = true,
            Arg::Long("log") => options.log = true,
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(options))
}

fn subject(name: &str) -> Result<Box<dyn Subject>, FuzzError> {
    Ok(match name {
        "plain" => Box::new(PlainSubject::new()?),
        "kernel" => Box::new(KernelSubject::new()?),
        other => return Err(FuzzError::NoEngine(other.to_owned())),
    })
}

fn seeds(options: &Options) -> std::ops::Range<u64> {
    options.seed..options.seed.saturating_add(options.count)
}

fn generated(options: &Options, seed: u64) -> Generated {
    Generated::new(seed, &options.mix, options.inputs)
}

fn run(options: &Options, one: &mut dyn Subject, other: &mut dyn Subject) -> ExitCode {
    let start = Instant::now();
    let mut told = start;
    for (done, seed) in (0u64..).zip(seeds(options)) {
        let program = generated(options, seed);
        if let Err(disagreement) = check(&program, one, other) {
            let small = report(seed, &program, &disagreement, one, other);
            if options.log {
                explain(one, &small);
                explain(other, &small);
            }
            return ExitCode::FAILURE;
        }
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            eprintln!("{done} programs agree, {:.0} a second", done as f64 / start.elapsed().as_secs_f64());
        }
    }
    say!(
        "{} programs from seed {}, {} runs each: {} and {} agree ({:.1} s)",
        options.count,
        options.seed,
        options.inputs,
        options.engine,
        options.against,
        start.elapsed().as_secs_f64()
    );
    ExitCode::SUCCESS
}

fn explain(subject: &mut dyn Subject, program: &Generated) {
    if let Some(log) = subject.explain(&program.program()) {
        say!("\n# {}:\n{log}", subject.name());
    }
}

fn report(
    seed: u64,
    program: &Generated,
    disagreement: &Disagreement,
    one: &mut dyn Subject,
    other: &mut dyn Subject,
) -> Generated {
    say!("seed {seed}: {disagreement}\n");
    let small = shrink(program, |candidate| {
        check(candidate, one, other).is_err_and(|found| found.is_like(disagreement))
    });
    // The kernel is right where it is asked.
    let expected = match check(&small, one, other) {
        Err(Disagreement::Result { others: Ok(state), .. }) => Some(state),
        _ => None,
    };
    say!("# from {} steps to {}", program.steps.len(), small.steps.len());
    paceline_testkit::console::print(format_args!(
        "{}",
        small.to_case(&format!("seed_{seed}"), 0, expected.as_ref())
    ));
    small
}
