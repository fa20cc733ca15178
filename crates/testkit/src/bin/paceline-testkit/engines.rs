//! `engines`: random accepted programs on all engines, which must have equal results:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- engines --count 100000 --runs 16
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- engines --seed 17 --count 1 --kernel   # that program again
//! ```
//!
//! Program number n of a run has seed `--seed` + n, so that work can be split by seeds. A program on which engines differ,
//! or on which the plain interpreter faults, is shrunk and printed as a text case for `tests/cases`, and the run ends with
//! exit status 1. Programs run in child processes: a program that ends its process is reported and shrunk as well, and the
//! others continue.

use std::time::{Duration, Instant};

use paceline_isa::disassemble;
use paceline_testkit::AnyEngine;
use paceline_testkit::child::{self, Totals};
use paceline_testkit::compare::{
    Comparator, Comparison, Difference, EngineSubject, KernelSubject, Named, Subject, Work, Workshop,
};
use paceline_testkit::kernel;
use paceline_testkit::random::{Candidate, Purpose, Variety, candidate, maps};
use paceline_testkit::say;
use paceline_testkit::verdict::reason_class;
use paceline_verifier::Refusal;

use crate::campaign::{Campaign, Seeds};

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) seeds: Seeds,
    /// Packets that each program is run on
    #[arg(long, default_value_t = 16)]
    runs: usize,
    /// Engines, separated by commas; all that this machine has if none is named
    #[arg(long, value_delimiter = ',')]
    engines: Vec<Named>,
    /// Run the engines but the plain interpreter once more, with packets in bursts of 1 to 64
    #[arg(long)]
    bursts: bool,
    /// Run the kernel as well
    #[arg(long)]
    kernel: bool,
    /// Print what the programs consist of
    #[arg(long)]
    stats: bool,
    /// Print each program, and why the verifier refuses it if it does
    #[arg(long)]
    show: bool,
    /// Differences that are shrunk and printed
    #[arg(long, default_value_t = 3)]
    most: u64,
    /// Leave out programs that were given what begins with this, where a fault is known and not mended
    #[arg(long)]
    skip: Option<String>,
    /// Leave things out of each program, by their numbers: how programs that end the process are shrunk
    #[arg(long, value_delimiter = ',', hide = true)]
    without: Vec<usize>,
}

/// The selected engines, which are compared with the plain interpreter.
fn comparator(options: &Options, cpu: usize) -> Result<Comparator, String> {
    let mut engines = options.engines.clone();
    if engines.is_empty() {
        let all = AnyEngine::ALL.map(Named::Engine).into_iter().chain([Named::Unoptimized]);
        engines = all.filter(|engine| engine.probe().is_ok()).collect();
    }
    // Code that checks its accesses runs before code that does not.
    engines.sort_by_key(|engine| engine.is_unchecked());
    engines.dedup();
    let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
    for engine in engines.into_iter().filter(|engine| *engine != Named::Engine(AnyEngine::Plain)) {
        engine.probe().map_err(|error| format!("{engine}: {error}"))?;
        subjects.push(Box::new(engine.subject(cpu)?));
        if options.bursts
            && let Named::Engine(engine) = engine
        {
            subjects.push(Box::new(EngineSubject::in_bursts(engine, cpu)?));
            if engine == AnyEngine::Jit {
                subjects.push(Box::new(EngineSubject::in_stages(cpu)?));
            }
        }
    }
    let kernel = options.kernel.then(|| KernelSubject::new(cpu)).transpose();
    Comparator::new(subjects, kernel.map_err(|error| format!("kernel: {error}"))?, cpu)
}

/// The engines, what makes programs, and the number of differences so far.
pub(crate) struct Bench {
    comparator: Comparator,
    shop: Workshop,
    differences: u64,
    /// Programs can read the number of their CPU.
    _pinned: kernel::Pinned,
}

impl Campaign for Options {
    type Bench = Bench;

    const TOLD: u64 = 64;

    fn bench(&self) -> Result<Bench, String> {
        let pinned = kernel::pin();
        let comparator = comparator(self, pinned.cpu())?;
        Ok(Bench { comparator, shop: Workshop::new(maps()), differences: 0, _pinned: pinned })
    }

    fn attempt(&self, bench: &mut Bench, seed: u64, totals: &mut Totals) {
        let Bench { comparator, shop, differences, .. } = bench;
        *differences += u64::from(one(self, seed, comparator, shop, totals, *differences));
    }

    fn report(&self, totals: &Totals, crashes: &[u64], time: Duration) -> Result<(), String> {
        for &seed in crashes.iter().take(self.most as usize) {
            print_smallest_crash(self, seed)?;
        }
        report(self, totals, crashes.len(), time.as_secs_f64());
        Ok(())
    }
}

/// Runs the program of a seed. Returns whether engines differ.
fn one(
    options: &Options,
    seed: u64,
    comparator: &mut Comparator,
    shop: &Workshop,
    totals: &mut Totals,
    earlier: u64,
) -> bool {
    if options.show {
        show(seed);
    }
    let made =
        shop.work(seed, options.runs).and_then(|(candidate, work)| less(options, shop, candidate, work));
    let (candidate, work) = match made {
        Ok(made) => made,
        Err(refusal) => {
            totals.add("not valid", 1, seed);
            if options.show
                && let Some(refusal) = &refusal
            {
                say!("refused: {refusal}");
            }
            let reason = refusal.map_or_else(|| "a jump is too long".to_owned(), |r| r.cause.to_string());
            totals.add(format!("refused verifier: {}", reason_class(&reason)), 1, seed);
            return false;
        }
    };
    if options.skip.as_ref().is_some_and(|text| candidate.features.iter().any(|f| f.starts_with(text))) {
        totals.add("skipped", 1, seed);
        return false;
    }
    totals.add("accepted", 1, seed);
    totals.add("runs", work.inputs.len() as u64, seed);
    if options.stats
        && let Some(main) = work.programs.first()
    {
        let mut variety = Variety::default();
        variety.add(main.program(), shop.specs(), main);
        variety.add_features(&candidate);
        variety.counts().for_each(|(name, count)| totals.add(format!("variety {name}"), count, seed));
    }
    match comparator.compare(&work) {
        Comparison::Same(refused) => {
            if options.kernel && !refused.iter().any(|(name, _)| *name == "kernel") {
                totals.add("kernel runs", work.inputs.len() as u64, seed);
            }
            for (name, reason) in refused {
                totals.add(format!("refused {name} {}", reason_class(&reason)), 1, seed);
            }
            false
        }
        Comparison::Different(difference) => {
            totals.add("differences", 1, seed);
            let is_pure = comparator.is_pure(&work);
            let pure = if is_pure { "" } else { " (it depends on addresses or random numbers)" };
            say!("DIFFERENCE seed {seed}: {}{pure}", headline(&difference));
            if earlier < options.most {
                print_smallest(comparator, shop, &candidate, &work, seed);
            }
            true
        }
    }
}

/// The program and its work without the omitted parts.
fn less(
    options: &Options,
    shop: &Workshop,
    candidate: Candidate,
    work: Work,
) -> Result<(Candidate, Work), Option<Box<Refusal>>> {
    if options.without.is_empty() {
        return Ok((candidate, work));
    }
    let candidate = candidate.without(&options.without).ok_or(None)?;
    let work = candidate.program().and_then(|program| shop.with_program(&work, program)).ok_or(None)?;
    Ok((candidate, work))
}

/// Maximum time for shrinking a program that ends the process.
const SHRINKING: Duration = Duration::from_secs(60);

/// Removes parts of a program that ends the process, as long as it still does, and prints it.
fn print_smallest_crash(options: &Options, seed: u64) -> Result<(), String> {
    let shop = Workshop::new(maps());
    let Ok((candidate, work)) = shop.work(seed, options.runs) else { return Ok(()) };
    let (start, mut path) = (Instant::now(), Vec::new());
    let mut next = 0;
    while start.elapsed() < SHRINKING {
        let longer = [&path[..], &[next]].concat();
        let Some(smaller) = candidate.without(&longer) else { break };
        next += 1;
        if smaller.program().and_then(|program| shop.with_program(&work, program)).is_none() {
            continue;
        }
        let numbers: Vec<String> = longer.iter().map(usize::to_string).collect();
        let arguments = ["--seed", &seed.to_string(), "--count", "1", "--most", "0", "--without"];
        let arguments: Vec<String> =
            arguments.map(str::to_owned).into_iter().chain([numbers.join(",")]).collect();
        if child::crashes(&arguments)? {
            (path, next) = (longer, 0);
        }
    }
    let Some(small) = candidate.without(&path).and_then(|candidate| candidate.program()) else {
        return Ok(());
    };
    let Some(mut work) = shop.with_program(&work, small) else { return Ok(()) };
    let numbers: Vec<String> = path.iter().map(usize::to_string).collect();
    let arguments = format!("--seed {} --count 1 --most 0 --runs 1 --without {}", seed, numbers.join(","));
    let one_packet: Vec<String> = arguments.split(' ').map(str::to_owned).collect();
    if !path.is_empty() && child::crashes(&one_packet)? {
        work.inputs.truncate(1);
    }
    // The plain interpreter's result is the expected one.
    let mut plain = Comparator::new(Vec::new(), None, kernel::pin().cpu())?;
    say!("{}", plain.to_case(&format!("crash_{}", seed), &work, &shop));
    Ok(())
}

fn show(seed: u64) {
    say!("seed {seed}:");
    let program = candidate(seed, Purpose::Run).program();
    for line in disassemble(&program.map(|program| program.insns).unwrap_or_default()) {
        say!("    {line}");
    }
}

fn headline(difference: &Difference) -> String {
    let [one, other] = difference.engines;
    match difference.run {
        Some(run) => format!("{one} and {other} on packet {run}"),
        None => format!("{one} and {other} in a map"),
    }
}

fn print_smallest(
    comparator: &mut Comparator,
    shop: &Workshop,
    candidate: &Candidate,
    work: &Work,
    seed: u64,
) {
    let small = comparator.shrink(candidate, work, shop);
    let Some(work) = small.program().and_then(|program| shop.with_program(work, program)) else { return };
    // Fewer packets, if they suffice.
    let single = (0..work.inputs.len())
        .map(|run| Work { inputs: work.inputs[run..=run].to_vec(), ..work.clone() })
        .find(|single| matches!(comparator.compare(single), Comparison::Different(_)));
    let work = single.unwrap_or(work);
    if let Comparison::Different(difference) = comparator.compare(&work) {
        paceline_testkit::console::print(format_args!("{}", difference.text));
    }
    say!("{}", comparator.to_case(&format!("seed_{seed}"), &work, shop));
}

fn report(options: &Options, totals: &Totals, crashes: usize, seconds: f64) {
    let runs = totals.get("runs");
    say!(
        "{} programs from seed {}: {} accepted, {} not, {} differences, {crashes} crashes; {runs} runs on each engine in \
         {seconds:.1} s, {:.0} a second",
        options.seeds.count,
        options.seeds.first,
        totals.get("accepted"),
        totals.get("not valid"),
        totals.get("differences"),
        runs as f64 / seconds.max(1e-9)
    );
    if options.kernel {
        say!("{} runs in the kernel", totals.get("kernel runs"));
    }
    for (reason, count, seed) in totals.of("refused ") {
        say!("{count:8} x {reason} (seed {seed})");
    }
    if options.stats {
        paceline_testkit::console::print(format_args!(
            "{}",
            totals.of("variety ").map(|(name, count, _)| (name, count)).collect::<Variety>()
        ));
    }
}
