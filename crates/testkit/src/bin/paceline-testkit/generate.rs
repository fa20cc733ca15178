//! `generate`: inputs for each side of each branch of random programs, or of objects, which every engine must agree on:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- generate --count 10000
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- generate /usr/lib/x86_64-linux-gnu/bpf --limit 20
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- generate examples --trials 0 --mutants 25   # how many their inputs find
//! ```
//!
//! Program number n has seed `--seed` + n. An input that does not take the side that it was made for, an engine that fares otherwise with it, and a random
//! input that takes a side that is called unreachable, are failures: they are printed, and the exit status is 1.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use paceline::Object;
use paceline::generate::Options as Limits;
use paceline_testkit::AnyEngine;
use paceline_testkit::adapted;
use paceline_testkit::child::Totals;
use paceline_testkit::inputs::{Examined, examine, mutants};
use paceline_testkit::object_runs::files_below;
use paceline_testkit::random::{Purpose, btf, candidate, maps};
use paceline_testkit::say;

use crate::Outcome;
use crate::campaign::{Campaign, Seeds};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Objects, or directories of them, in the place of random programs
    objects: Vec<PathBuf>,
    #[command(flatten)]
    seeds: Seeds<1000>,
    /// Seconds for each program
    #[arg(long, default_value_t = 2)]
    limit: u64,
    /// Random runs for each program, half of them after up to 64 other packets, none of which may take what is called unreachable
    #[arg(long, default_value_t = 100)]
    trials: usize,
    /// Mutants of each program of an object, with one instruction changed: how many of them the inputs tell from the program
    #[arg(long, default_value_t = 0)]
    mutants: usize,
    /// Seconds for the proof that no input tells a mutant from the program, for each; one that inputs find may not be proved to be the same
    #[arg(long, default_value_t = 5)]
    prove: u64,
}

pub(crate) fn run(options: &Options) -> Outcome {
    if options.objects.is_empty() { options.seeds.run(options) } else { run_objects(options) }
}

impl Campaign for Options {
    type Bench = ();

    const FAILURES: &str = "wrong";

    fn bench(&self) -> Result<(), String> {
        Ok(())
    }

    fn attempt(&self, (): &mut (), seed: u64, totals: &mut Totals) {
        one(self, seed, totals);
    }

    fn report(&self, totals: &Totals, crashes: &[u64], time: Duration) -> Result<(), String> {
        report(self, totals, crashes.len(), time);
        Ok(())
    }
}

fn limits(options: &Options) -> Limits {
    Limits { time: Duration::from_secs(options.limit), boundaries: true, ..Limits::default() }
}

/// Examines the program of a seed.
fn one(options: &Options, seed: u64, totals: &mut Totals) {
    let Some(program) = candidate(seed, Purpose::Run).program() else { return };
    let mut object = Object::of_program(program.clone());
    object.specs_mut().maps = maps();
    object.specs_mut().btf = Some(Arc::new(btf().clone()));
    let engines: Vec<_> = AnyEngine::ALL.into_iter().collect();
    let mut rng = Rng::with_seed(seed);
    match examine(&object, &program, &limits(options), &engines, (options.trials, &mut rng)) {
        Ok(examined) => {
            totals.add("programs", 1, seed);
            count(&examined, totals, seed);
            for wrong in &examined.wrong {
                totals.add("wrong", 1, seed);
                say!("WRONG seed {seed}: {wrong}");
            }
        }
        Err(_) => totals.add("refused", 1, seed),
    }
}

fn count(examined: &Examined, totals: &mut Totals, seed: u64) {
    let generated = &examined.generated;
    totals.add("reached", generated.reached.len() as u64, seed);
    totals.add("unreachable", generated.unreachable.len() as u64, seed);
    totals.add("given up", generated.given_up.len() as u64, seed);
    totals.add("runs", examined.runs, seed);
    for place in generated.given_up.values() {
        totals.add(format!("why {}", place.why), 1, seed);
    }
}

fn report(options: &Options, totals: &Totals, crashes: usize, time: Duration) {
    say!(
        "{} programs from seed {}, {} refused: sides {} reached, {} unreachable, {} given up; {} runs, {} wrong, {crashes} \
         crashes in {:.1} s",
        totals.get("programs"),
        options.seeds.first,
        totals.get("refused"),
        totals.get("reached"),
        totals.get("unreachable"),
        totals.get("given up"),
        totals.get("runs"),
        totals.get("wrong"),
        time.as_secs_f64()
    );
    for (why, count, seed) in totals.of("why ") {
        say!("{count:8} x given up: {why} (seed {seed})");
    }
}

/// A table of the programs of objects.
fn run_objects(options: &Options) -> Outcome {
    let (mut wrong, mut runs, mut sums, mut reasons) = (0, 0, [0_usize; 4], BTreeMap::<String, usize>::new());
    let (mut found, mut by_paths, mut told) = ([0; 3], 0, 0);
    say!(
        "{:40} {:>7} {:>11} {:>8} {:>8} {:>6}",
        "program",
        "reached",
        "unreachable",
        "given up",
        "paths",
        "s"
    );
    for path in files_below(&options.objects, &["o", "elf"]) {
        let Ok(object) = adapted::open(&path) else { continue };
        for program in object.programs() {
            let name = format!("{}:{}", path.file_name().unwrap_or_default().to_string_lossy(), program.name);
            let (start, mut rng) = (Instant::now(), Rng::with_seed(options.seeds.first));
            let engines: Vec<_> = AnyEngine::ALL.into_iter().collect();
            let examined = examine(&object, program, &limits(options), &engines, (options.trials, &mut rng));
            let examined = match examined {
                Ok(examined) => examined,
                Err(error) => {
                    say!("{name:40} refused: {}", error.lines().next().unwrap_or_default());
                    continue;
                }
            };
            let generated = &examined.generated;
            let counts = [generated.reached.len(), generated.unreachable.len(), generated.given_up.len()];
            say!(
                "{name:40} {:7} {:11} {:8} {:8} {:6.1}",
                counts[0],
                counts[1],
                counts[2],
                generated.paths,
                start.elapsed().as_secs_f64()
            );
            for place in generated.given_up.values() {
                *reasons.entry(place.why.to_string()).or_default() += 1;
            }
            for text in &examined.wrong {
                say!("WRONG {name}: {text}");
            }
            if options.mutants != 0 {
                let mutants = mutants(
                    &object,
                    program,
                    generated,
                    (options.mutants, &mut rng),
                    Duration::from_secs(options.prove),
                )?;
                let inputs = generated.inputs();
                let first = inputs.iter().filter(|(_, variant, _)| variant.is_none()).count();
                say!(
                    "{name:40} {} of {} mutants are found by {} inputs, {first} without further ones; {} are equivalent",
                    mutants.killed,
                    mutants.made,
                    inputs.len(),
                    mutants.equivalent.len()
                );
                mutants
                    .equivalent
                    .iter()
                    .for_each(|what| say!("    equivalent, no input tells them apart: {what}"));
                mutants.survivors.iter().for_each(|survivor| say!("    not found: {survivor}"));
                mutants
                    .wrong
                    .iter()
                    .for_each(|mutant| say!("    WRONG: proved to be the same, but found: {mutant}"));
                wrong += mutants.wrong.len();
                found[0] += mutants.killed;
                found[1] += mutants.made;
                found[2] += mutants.equivalent.len();
                by_paths += mutants.by_paths;
                told += mutants.told;
            }
            wrong += examined.wrong.len();
            runs += examined.runs;
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    let all = (sums[0] + sums[1] + sums[2]).max(1);
    say!(
        "{} of {all} sides ({:.1}%) reached or proved unreachable; {runs} runs, {wrong} wrong",
        sums[0] + sums[1],
        (sums[0] + sums[1]) as f64 * 100.0 / all as f64
    );
    if options.mutants != 0 {
        let share = found[0] as f64 * 100.0 / found[1].max(1) as f64;
        let other = found[0] as f64 * 100.0 / (found[1] - found[2]).max(1) as f64;
        say!(
            "{} of {} mutants ({share:.1}%) are found; {other:.1}% of those that are not proved equivalent",
            found[0],
            found[1]
        );
        say!(
            "diff --all: {by_paths} mutants differ by their paths alone, {} by generated inputs and paths",
            found[0] + told
        );
    }
    for (reason, count) in reasons {
        say!("{count:8} x given up: {reason}");
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
