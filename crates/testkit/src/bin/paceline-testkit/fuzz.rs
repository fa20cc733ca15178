//! `fuzz`: random programs on two engines that must agree:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- fuzz --count 1000000
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- fuzz --seed 17 --count 1    # that program again
//! ```
//!
//! Program number n of a run has seed `--seed` + n. A program on which the engines disagree is shrunk and printed as a text
//! case for `tests/cases`, and the run ends with exit status 1.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline_testkit::generate::{
    Disagreement, Generated, KernelSubject, Mix, PlainSubject, Subject, check, shrink,
};
use paceline_testkit::say;

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seed of the first program; the others follow
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Programs
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// States that each program is run on
    #[arg(long, default_value_t = 3)]
    inputs: usize,
    /// Most steps of a program
    #[arg(long, default_value_t = Mix::default().steps)]
    steps: usize,
    /// One of the two that must agree
    #[arg(long, default_value = "plain")]
    engine: Side,
    /// The other
    #[arg(long, default_value = "kernel")]
    against: Side,
    /// Print the log of the kernel's verifier for a program on which they disagree
    #[arg(long)]
    log: bool,
    /// Print each program and run none
    #[arg(long)]
    show: bool,
}

/// An engine for generated programs.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Side {
    Plain,
    Kernel,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Kernel => "kernel",
        }
    }

    fn subject(self) -> Result<Box<dyn Subject>, String> {
        Ok(match self {
            Self::Plain => Box::new(PlainSubject::new().map_err(|error| paceline::with_causes(&error))?),
            Self::Kernel => Box::new(KernelSubject::new().map_err(|error| paceline::with_causes(&error))?),
        })
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    if options.show {
        for seed in seeds(options) {
            paceline_testkit::console::print(format_args!(
                "{}",
                generated(options, seed).to_case(&format!("seed_{seed}"), 0, None)
            ));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (mut one, mut other) = (options.engine.subject()?, options.against.subject()?);
    Ok(compare(options, one.as_mut(), other.as_mut()))
}

fn seeds(options: &Options) -> std::ops::Range<u64> {
    options.seed..options.seed.saturating_add(options.count)
}

fn generated(options: &Options, seed: u64) -> Generated {
    let mix = Mix { steps: options.steps, ..Mix::default() };
    Generated::new(seed, &mix, options.inputs)
}

fn compare(options: &Options, one: &mut dyn Subject, other: &mut dyn Subject) -> ExitCode {
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
        options.engine.name(),
        options.against.name(),
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
    // If the kernel is one side, its result is the expected one.
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
