//! `verdicts`: random programs, verified by our verifier and the kernel's, and run if we accept them:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- verdicts --count 100000
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- verdicts --seed 17 --count 1 --show   # that one again
//! ```
//!
//! Prints how often the verdicts agree, and for each kind of disagreement its number and first seed, shrunk. A fault of an
//! accepted program ends the run with exit status 1.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::ExitCode;

use fastrand::Rng;
use paceline_isa::disassemble;
use paceline_testkit::random::{Candidate, Purpose, Variety, candidate};
use paceline_testkit::say;
use paceline_testkit::verdict::{Judge, Judgement, Ran, reason_class, try_locks};

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seed of the first program; the others follow
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Programs
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// Packets that each accepted program is run on
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Instructions that are simulated at most
    #[arg(long, default_value_t = 1_000_000)]
    limit: usize,
    /// Programs that take and release spin locks of values from look-ups, callbacks and timers, run whether they are accepted or not
    #[arg(long)]
    locks: bool,
    /// Do not ask the kernel
    #[arg(long)]
    no_kernel: bool,
    /// Print each program with both verdicts
    #[arg(long)]
    show: bool,
    /// Print what accepted programs consist of
    #[arg(long)]
    stats: bool,
    /// Kinds of disagreement that are printed, commonest first
    #[arg(long, default_value_t = 12)]
    kinds: usize,
}

#[derive(Default)]
struct Tally {
    both_accept: u64,
    both_refuse: u64,
    accepted: u64,
    not_asked: u64,
    faults: u64,
    /// Number of accepted programs that were checked against the states of an exact walk.
    compared: u64,
    runs: usize,
    instructions: u64,
    variety: Variety,
    /// Our reasons, if the kernel was not asked.
    refusals: BTreeMap<String, u64>,
    /// By kind: number, and first seed.
    kinds: BTreeMap<String, (u64, u64)>,
}

impl Tally {
    fn add(&mut self, ran: Ran) {
        self.compared += u64::from(ran.compared);
        self.runs += ran.runs;
        self.instructions += ran.instructions;
    }
}

/// The smallest program found that still fails, on the packets of the same seed.
fn smallest_fault(judge: &mut Judge, candidate: &Candidate, seed: u64, runs: usize) -> Candidate {
    let judge = RefCell::new(judge);
    let mut small = candidate.shrink(|candidate| {
        let Some(program) = candidate.program() else { return false };
        judge.borrow_mut().run(&program, &mut Rng::with_seed(seed), runs.max(50)).is_err()
    });
    if let Some(program) = small.program()
        && let Err(fault) = judge.borrow_mut().run(&program, &mut Rng::with_seed(seed), runs.max(50))
    {
        say!("smallest: {fault}");
    } else {
        small = candidate.clone();
    }
    small
}

/// Programs with locks: none that is accepted stops at one that it does not have.
fn run_locks(options: &Options) -> Outcome {
    let (mut accepted, mut stopped, mut only_kernel, mut faults) = (0_u64, 0_u64, 0_u64, 0_u64);
    for seed in options.seed..options.seed + options.count {
        match try_locks(seed, !options.no_kernel) {
            Ok(trial) => {
                accepted += u64::from(trial.accepted);
                stopped += u64::from(trial.stopped);
                only_kernel += u64::from(trial.only_kernel);
            }
            Err(error) => {
                faults += 1;
                say!("FAULT seed {seed}: {error}");
            }
        }
    }
    say!(
        "{} programs with locks: {accepted} accepted, {stopped} stop at a lock that they do not have, {only_kernel} accepted by the \
         kernel alone, {faults} faults",
        options.count
    );
    Ok(if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(crate) fn run(options: &Options) -> Outcome {
    if options.locks {
        return run_locks(options);
    }
    let mut judge = Judge::new()?;
    judge.limit(options.limit);
    let mut tally = Tally::default();
    for seed in options.seed..options.seed + options.count {
        let candidate = candidate(seed, Purpose::Verdict);
        let Some(program) = candidate.program() else { continue };
        let ours = judge.ours(&program);
        if let Ok(verified) = &ours {
            tally.accepted += 1;
            if options.stats {
                tally.variety.add(&program, judge.specs(), verified);
                tally.variety.add_features(&candidate);
            }
            match judge.run(&program, &mut Rng::with_seed(seed), options.runs) {
                Ok(ran) => tally.add(ran),
                Err(fault) => {
                    tally.faults += 1;
                    say!("FAULT seed {seed}: {fault}");
                    if tally.faults <= 5 {
                        show(&smallest_fault(&mut judge, &candidate, seed, options.runs));
                    }
                }
            }
        }
        // The kernel needs seconds for programs that are too complex, and refuses them as well.
        if options.no_kernel || matches!(&ours, Err(r) if r.cause.is_too_complex()) {
            tally.not_asked += 1;
            if let Err(refusal) = ours {
                *tally.refusals.entry(reason_class(&refusal.cause.to_string())).or_default() += 1;
            }
            continue;
        }
        let kernel = judge.kernel(&program);
        if options.show {
            show(&candidate);
            say!("seed {seed}: ours {ours:#?}");
            match &kernel {
                Ok(()) => say!("kernel accepts"),
                Err(error) => say!("kernel refuses: {}\n{}", error.reason(), error.log),
            }
        }
        match kind(&Judgement { ours, kernel }) {
            None => tally.both_accept += 1,
            Some(kind) if kind.is_empty() => tally.both_refuse += 1,
            Some(kind) => tally.kinds.entry(kind).or_insert((0, seed)).0 += 1,
        }
    }
    report(&judge, options, &tally);
    Ok(if tally.faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `None` if both accept; empty if both refuse; otherwise the kind of disagreement.
fn kind(judgement: &Judgement) -> Option<String> {
    match (&judgement.ours, &judgement.kernel) {
        (Ok(_), Ok(())) => None,
        (Err(_), Err(_)) => Some(String::new()),
        (Err(refusal), Ok(())) => {
            Some(format!("only the kernel accepts: {}", reason_class(&refusal.cause.to_string())))
        }
        (Ok(_), Err(error)) => Some(format!("only we accept: {}", reason_class(error.reason()))),
    }
}

fn report(judge: &Judge, options: &Options, tally: &Tally) {
    say!(
        "{} programs: both accept {}, both refuse {}, kernel not asked {}, {} accepted by us and run, {} faults;\n\
         {} compared with exact states, {} runs, {} instructions",
        options.count,
        tally.both_accept,
        tally.both_refuse,
        tally.not_asked,
        tally.accepted,
        tally.faults,
        tally.compared,
        tally.runs,
        tally.instructions
    );
    if options.stats {
        paceline_testkit::console::print(format_args!("{}", tally.variety));
    }
    let mut refusals: Vec<_> = tally.refusals.iter().collect();
    refusals.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (reason, count) in refusals.into_iter().take(options.kinds) {
        say!("{count:8} refused by us, kernel not asked: {reason}");
    }
    let mut kinds: Vec<_> = tally.kinds.iter().collect();
    kinds.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (name, (count, seed)) in kinds.into_iter().take(options.kinds) {
        say!("\n== {count} x {name} (seed {seed})");
        let first = candidate(*seed, Purpose::Verdict);
        let shows = |candidate: &Candidate| {
            candidate.program().is_some_and(|program| kind(&judge.judge(&program)).as_ref() == Some(name))
        };
        let small = first.shrink(shows);
        show(&small);
        if let Some(program) = small.program() {
            let judgement = judge.judge(&program);
            match judgement.ours {
                Ok(_) => say!("ours: accepts"),
                Err(refusal) => say!("ours: {refusal}"),
            }
            match judgement.kernel {
                Ok(()) => say!("kernel: accepts"),
                Err(error) => say!("kernel: {}", error.reason()),
            }
        }
    }
}

fn show(candidate: &Candidate) {
    let Some(program) = candidate.program() else { return };
    for line in disassemble(&program.insns) {
        say!("    {line}");
    }
}
