//! `hostile`: the verifier on inputs that no compiler emits: it must not panic, must end soon, and accepted programs must be
//! consistent with its facts. With `--kernel` the verdicts are compared with the kernel's.
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- hostile --count 1000000                    # arbitrary bytes
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- hostile --count 100000 --kernel examples/*.o   # changed objects
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- hostile --little --kernel             # accepted, a little changed
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- hostile --little --kernel examples/*.o  # the same of objects
//! ```
//!
//! Input n of a run has seed `--seed` + n. Exit status 1 if the verifier panics or a run contradicts it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fastrand::Rng;
use paceline::Object;
use paceline_isa::{RawInsn, disassemble};
use paceline_spec::{Linkage, ProgramSpec};
use paceline_testkit::random::{Purpose, candidate, changed};
use paceline_testkit::say;
use paceline_testkit::verdict::{Judge, arbitrary, mutated, reason_class};

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Change instructions of these objects' programs; without any, inputs are arbitrary bytes
    objects: Vec<PathBuf>,
    /// Seed of the first input; the others follow
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Inputs
    #[arg(long, default_value_t = 100_000)]
    count: u64,
    /// Packets that each accepted program is run on
    #[arg(long, default_value_t = 2)]
    runs: usize,
    /// Instructions that are simulated at most
    #[arg(long, default_value_t = 1_000_000)]
    limit: usize,
    /// Change accepted programs a little: the objects', or generated ones
    #[arg(long)]
    little: bool,
    /// Compare verdicts with the kernel's
    #[arg(long)]
    kernel: bool,
    /// Longest program that the kernel is asked about, which takes minutes over some
    #[arg(long, default_value_t = 500)]
    slots: usize,
    /// Print each input
    #[arg(long)]
    show: bool,
}

/// Programs to change, with the judge for their object's maps; none for arbitrary bytes.
struct Source {
    judge: Judge,
    programs: Vec<ProgramSpec>,
}

fn sources(options: &Options) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    for path in &options.objects {
        let object = Object::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        match Judge::over(object.maps().to_vec()) {
            Ok(mut judge) => {
                judge.limit(options.limit);
                let mut programs = object.programs().to_vec();
                programs.iter_mut().for_each(without_types);
                if options.little {
                    programs.retain(|program| judge.ours(program).is_ok());
                }
                sources.push(Source { judge, programs });
            }
            Err(error) => eprintln!("{} is left out: {error}", path.display()),
        }
    }
    sources.retain(|source| !source.programs.is_empty());
    if options.objects.is_empty() {
        sources.push(Source { judge: Judge::new()?, programs: Vec::new() });
    }
    if sources.is_empty() { Err("no object with programs".to_owned()) } else { Ok(sources) }
}

/// The judge passes no BTF of objects to the kernel, so that there are no global functions.
fn without_types(program: &mut ProgramSpec) {
    for function in &mut program.functions {
        (function.linkage, function.btf_id) = (Linkage::Static, 0);
    }
}

/// The input of a seed: a changed program, or a generated one.
fn input(options: &Options, source: &Source, seed: u64, rng: &mut Rng) -> Option<ProgramSpec> {
    match (rng.choice(&source.programs), options.little) {
        (Some(program), true) => Some(changed(program, rng)),
        (Some(program), false) => Some(mutated(program, rng)),
        (None, false) => Some(arbitrary(rng)),
        (None, true) => {
            let program = candidate(seed, Purpose::Verdict).program()?;
            source.judge.ours(&program).ok()?;
            Some(changed(&program, rng))
        }
    }
}

#[derive(Default)]
struct Tally {
    /// Number of seeds without an input.
    none: u64,
    /// Number of inputs that the kernel was not asked about: too long, or too complex for our verifier.
    not_asked: [u64; 2],
    both_refuse: u64,
    accepted: u64,
    runs: usize,
    compared: u64,
    failures: u64,
    slowest: (Duration, u64),
    both_accept: u64,
    /// By kind: number, first seed, and the shrunk program.
    disagreements: BTreeMap<String, (u64, u64, ProgramSpec)>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let mut sources = sources(options)?;
    for source in &mut sources {
        source.judge.limit(options.limit);
    }
    let mut tally = Tally::default();
    for seed in options.seed..options.seed.saturating_add(options.count) {
        let mut rng = Rng::with_seed(seed);
        let index = rng.usize(..sources.len());
        let source = &mut sources[index];
        let Some(program) = input(options, source, seed, &mut rng) else {
            tally.none += 1;
            continue;
        };
        if options.show {
            show(&program);
        }
        let judged =
            catch_unwind(AssertUnwindSafe(|| judge(&mut tally, options, &mut source.judge, &program, seed)));
        match judged {
            Ok(Ok(())) => continue,
            Ok(Err(wrong)) => say!("FAULT seed {seed}: {wrong}"),
            Err(_) => say!("PANIC seed {seed}"),
        }
        tally.failures += 1;
        show(&program);
    }
    report(options, &tally);
    Ok(if tally.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn judge(
    tally: &mut Tally,
    options: &Options,
    judge: &mut Judge,
    program: &ProgramSpec,
    seed: u64,
) -> Result<(), String> {
    let start = Instant::now();
    let ours = judge.ours(program);
    tally.slowest = tally.slowest.max((start.elapsed(), seed));
    let is_long = program.insns.len() > options.slots;
    let is_complex = ours.as_ref().is_err_and(|refusal| refusal.cause.is_too_complex());
    tally.not_asked[0] += u64::from(options.kernel && is_long);
    tally.not_asked[1] += u64::from(options.kernel && !is_long && is_complex);
    if options.kernel && !is_long && !is_complex {
        match disagreement(judge, program) {
            Some(kind) => {
                let entry = tally
                    .disagreements
                    .entry(kind)
                    .or_insert_with_key(|kind| (0, seed, smallest(judge, program, kind)));
                entry.0 += 1;
            }
            None if ours.is_ok() => tally.both_accept += 1,
            None => tally.both_refuse += 1,
        }
    }
    if ours.is_err() {
        return Ok(());
    }
    tally.accepted += 1;
    let ran = judge.run(program, &mut Rng::with_seed(seed), options.runs)?;
    tally.runs += ran.runs;
    tally.compared += u64::from(ran.compared);
    Ok(())
}

/// The difference between the verdicts on a program, if any.
fn disagreement(judge: &Judge, program: &ProgramSpec) -> Option<String> {
    match (judge.ours(program), judge.kernel(program)) {
        (Ok(_), Err(error)) => Some(format!("only we accept: {}", reason_class(error.reason()))),
        (Err(refusal), Ok(())) => {
            Some(format!("only the kernel accepts: {}", reason_class(&refusal.cause.to_string())))
        }
        _ => None,
    }
}

/// The program with as many instructions as possible replaced by jumps to the next one.
fn smallest(judge: &Judge, program: &ProgramSpec, kind: &str) -> ProgramSpec {
    let blank = RawInsn { opcode: 0x05, ..RawInsn::default() };
    let mut best = program.clone();
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for slot in (0..best.insns.len()).rev().filter(|&slot| program.insns[slot] != blank) {
            let mut next = best.clone();
            if std::mem::replace(&mut next.insns[slot], blank) != blank
                && disagreement(judge, &next).as_deref() == Some(kind)
            {
                (best, changed) = (next, true);
            }
        }
    }
    best
}

fn report(options: &Options, tally: &Tally) {
    say!(
        "{} inputs from seed {}: {} accepted, {} runs, {} compared with exact states, {} failures; slowest {:.1?} (seed {}), \
         most memory {}",
        options.count,
        options.seed,
        tally.accepted,
        tally.runs,
        tally.compared,
        tally.failures,
        tally.slowest.0,
        tally.slowest.1,
        peak_memory().unwrap_or_else(|| "unknown".to_owned())
    );
    if options.kernel {
        let disagreements: u64 = tally.disagreements.values().map(|(count, ..)| count).sum();
        say!(
            "the kernel: both accept {}, both refuse {}, {disagreements} disagreements; not asked about {} that are too \
             long and {} too complex; {} seeds without an input",
            tally.both_accept,
            tally.both_refuse,
            tally.not_asked[0],
            tally.not_asked[1],
            tally.none
        );
        let mut kinds: Vec<_> = tally.disagreements.iter().collect();
        kinds.sort_by_key(|(_, (count, ..))| std::cmp::Reverse(*count));
        for (kind, (count, seed, smallest)) in kinds {
            say!("{count:8} x {kind} (seed {seed})");
            let blank = RawInsn { opcode: 0x05, ..RawInsn::default() };
            for line in
                disassemble(&smallest.insns).into_iter().filter(|line| smallest.insns[line.slot] != blank)
            {
                say!("    {line}");
            }
        }
    }
}

/// Peak resident memory of the process, as Linux reports it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(|rest| rest.trim().to_owned())
}

fn show(program: &ProgramSpec) {
    for line in disassemble(&program.insns) {
        say!("    {line}");
    }
}
