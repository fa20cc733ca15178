//! `prove`: random properties of random programs, or of the programs of objects, and random runs, none of which may refute what is proved:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- prove --count 1000
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- prove examples --properties 50 --trials 1000
//! ```
//!
//! Program number n has seed `--seed` + n. Most properties hold for all inputs that `generate` makes for the program. A run that refutes what is
//! proved is a failure: it is printed, and the exit status is 1. An input that was to refute a property and did not is printed too.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use paceline::{Object, ProgramSpec};
use paceline_testkit::adapted;
use paceline_testkit::child::Totals;
use paceline_testkit::inputs::proofs;
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
    /// Seconds for each proof
    #[arg(long, default_value_t = 1)]
    limit: u64,
    /// Properties of each program
    #[arg(long, default_value_t = 20)]
    properties: usize,
    /// Random inputs for each program, none of which may refute what is proved
    #[arg(long, default_value_t = 100)]
    trials: usize,
}

pub(crate) fn run(options: &Options) -> Outcome {
    if options.objects.is_empty() {
        return options.seeds.run(options);
    }
    let start = Instant::now();
    let totals = of_objects(options);
    options.report(&totals, &[], start.elapsed())?;
    Ok(if totals.get(Options::FAILURES) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Campaign for Options {
    type Bench = ();

    const FAILURES: &str = "wrong";

    fn bench(&self) -> Result<(), String> {
        Ok(())
    }

    fn attempt(&self, (): &mut (), seed: u64, totals: &mut Totals) {
        if let Some(program) = candidate(seed, Purpose::Run).program() {
            let mut object = Object::of_program(program.clone());
            object.specs_mut().maps = maps();
            object.specs_mut().btf = Some(Arc::new(btf().clone()));
            one(self, (&object, &program), (seed, &format!("seed {seed}")), totals);
        }
    }

    fn report(&self, totals: &Totals, crashes: &[u64], time: Duration) -> Result<(), String> {
        say!(
            "{} programs from seed {}, {} refused: properties {} proved ({} without paths), {} refuted, {} not known; {} runs, {} unconfirmed, {} wrong, \
             {} crashes in {:.1} s",
            totals.get("programs"),
            self.seeds.first,
            totals.get("refused"),
            totals.get("proved"),
            totals.get("without paths"),
            totals.get("refuted"),
            totals.get("not known"),
            totals.get("runs"),
            totals.get("unconfirmed"),
            totals.get("wrong"),
            crashes.len(),
            time.as_secs_f64()
        );
        for (why, count, seed) in totals.of("why ") {
            say!("{count:8} x refused: {why} (seed {seed})");
        }
        Ok(())
    }
}

fn of_objects(options: &Options) -> Totals {
    let mut totals = Totals::default();
    for path in files_below(&options.objects, &["o", "elf"]) {
        let Ok(object) = adapted::open(&path) else { continue };
        for program in object.programs() {
            let name = format!("{}:{}", path.file_name().unwrap_or_default().to_string_lossy(), program.name);
            one(options, (&object, program), (options.seeds.first, &name), &mut totals);
        }
    }
    totals
}

/// Proves properties of a program.
fn one(
    options: &Options,
    (object, program): (&Object, &ProgramSpec),
    (seed, name): (u64, &str),
    totals: &mut Totals,
) {
    let (limit, sizes) = (Duration::from_secs(options.limit), (options.properties, options.trials));
    let proofs = match proofs(object, program, limit, sizes, &mut Rng::with_seed(seed)) {
        Ok(proofs) => proofs,
        Err(error) => {
            totals.add(format!("why {}", error.lines().next().unwrap_or_default()), 1, seed);
            return totals.add("refused", 1, seed);
        }
    };
    totals.add("programs", 1, seed);
    totals.add("proved", proofs.proved as u64, seed);
    totals.add("without paths", proofs.by_effects as u64, seed);
    totals.add("refuted", proofs.refuted as u64, seed);
    totals.add("not known", proofs.unknown as u64, seed);
    totals.add("runs", proofs.runs, seed);
    totals.add("unconfirmed", proofs.unconfirmed.len() as u64, seed);
    totals.add("wrong", proofs.wrong.len() as u64, seed);
    proofs.unconfirmed.iter().for_each(|text| say!("UNCONFIRMED {name}: {text}"));
    proofs.wrong.iter().for_each(|text| say!("WRONG {name}: {text}"));
}
