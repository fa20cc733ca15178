//! `mutate`: programs of real objects with one or two instructions replaced by similar ones, on all engines and the kernel.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use paceline::Object;
use paceline_isa::disassemble;
use paceline_spec::ProgramSpec;
use paceline_testkit::child::{self, Event, Jobs};
use paceline_testkit::determinize::determinize;
use paceline_testkit::kernel;
use paceline_testkit::object_runs::{
    ENGINES, Trial, files_below, fill_from_seed, has_large_maps, packets_of, pool, size_maps, try_program,
};
use paceline_testkit::random::near;
use paceline_testkit::say;
use serde_json::{Value, json};

use crate::Outcome;
use crate::tally::{Tally, cause, line_of};

/// Directories with objects of Debian's packages (`xdp-tools`, `libxdp1`).
const DEBIAN: &str = "/usr/lib/x86_64-linux-gnu/bpf";
/// Number of simulated instructions above which a program is too expensive to verify repeatedly.
const MOST_INSTRUCTIONS: usize = 20_000;

/// Maximum number of printed programs that are not failures.
const MOST_SHOWN: usize = 8;

#[derive(clap::Args, Clone)]
pub(crate) struct Options {
    /// Objects, or directories of them; Debian's if there are none
    objects: Vec<PathBuf>,
    /// Compile the programs of an installed linux-source, and change those too; this is the directory for what is built, in
    /// which the campaign replaces `linux`
    #[arg(long)]
    linux: Option<PathBuf>,
    /// First seed: each gives one changed program
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Changed programs
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Packets that each program is run on
    #[arg(long, default_value_t = 32)]
    runs: usize,
    /// Stop after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Seconds that one program may take
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// Leave the kernel out
    #[arg(long)]
    no_kernel: bool,
    /// Print all reasons of refusals, and not the most frequent ones alone
    #[arg(long)]
    stats: bool,
    /// Run here, without children
    #[arg(long, hide = true)]
    child: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let sources = sources(options)?;
    if sources.is_empty() {
        paceline_testkit::skip("mutate", &"no objects: xdp-tools and libxdp1 are not installed");
        return Ok(ExitCode::SUCCESS);
    }
    if options.child {
        return run_jobs(options, &sources);
    }
    let mut options = options.clone();
    options.no_kernel |= !kernel::available_for("mutate in the kernel");
    campaign(&options, &sources)
}

/// A program that is accepted without changes.
struct Source {
    path: PathBuf,
    object: Arc<Object>,
    program: String,
}

fn sources(options: &Options) -> Result<Vec<Source>, String> {
    let mut places = options.objects.clone();
    if places.is_empty() {
        places.extend(Path::new(DEBIAN).is_dir().then(|| PathBuf::from(DEBIAN)));
    }
    if let Some(directory) = &options.linux {
        match paceline_testkit::sources::build(directory) {
            Ok(built) => places.extend(built.objects),
            Err(reason) => paceline_testkit::skip("mutate linux-source", &reason),
        }
    }
    let mut sources = Vec::new();
    for path in files_below(&places, &["o", "elf"]) {
        let Ok(mut object) = paceline_testkit::adapted::open(&path) else { continue };
        let specs = object.specs_mut();
        let types = specs.btf.as_mut().map(Arc::make_mut);
        size_maps(&mut specs.maps);
        determinize(&mut specs.programs, &mut specs.maps, types);
        if has_large_maps(&object) {
            continue;
        }
        let object = Arc::new(object);
        for spec in object.programs() {
            let is_short =
                |verified: &paceline_verifier::Verified| verified.stats().instructions <= MOST_INSTRUCTIONS;
            if object.verify(spec).is_ok_and(|verified| is_short(&verified)) {
                let (path, object, program) = (path.clone(), Arc::clone(&object), spec.name.clone());
                sources.push(Source { path, object, program });
            }
        }
    }
    Ok(sources)
}

/// The changed program of a seed, and its source.
fn changed(sources: &[Source], seed: u64) -> Option<(&Source, Object)> {
    let mut rng = Rng::with_seed(seed);
    let source = rng.choice(sources)?;
    let mut object = Object::clone(&source.object);
    let spec = object.specs_mut().programs.iter_mut().find(|spec| spec.name == source.program)?;
    *spec = near(spec, &mut rng);
    fill_from_seed(&mut object, seed);
    Some((source, object))
}

fn run_jobs(options: &Options, sources: &[Source]) -> Outcome {
    let pinned = kernel::pin();
    for seed in options.seed..options.seed.saturating_add(options.count) {
        child::begin(seed);
        let Some((source, object)) = changed(sources, seed) else { continue };
        let inputs = packets_of(pool(), seed, options.runs);
        let program = source.program.as_str();
        let trial = Trial {
            object: &object,
            program,
            inputs: &inputs,
            seed,
            engines: &ENGINES,
            network: None,
            cpu: pinned.cpu(),
        };
        // Kernel functions lend buffers in ways that not every kernel checks: what we change is not run there.
        let spec = object.programs().iter().find(|spec| spec.name == program);
        let in_kernel = !options.no_kernel && spec.is_some_and(|spec| spec.kfuncs.is_empty());
        let findings = try_program(&trial, in_kernel);
        say!("{}", line_of(seed, &name(source), &findings));
    }
    child::finish();
    Ok(ExitCode::SUCCESS)
}

fn name(source: &Source) -> String {
    format!("{}:{}", source.path.display(), source.program)
}

fn campaign(options: &Options, sources: &[Source]) -> Outcome {
    let start = Instant::now();
    let end = options.seed.saturating_add(options.count);
    let jobs = Jobs { first: options.seed, end, limit: Duration::from_secs(options.limit) };
    let command = |first: u64| {
        let mut command = child::command()?;
        command.arg("mutate").args(&options.objects).arg("--child");
        command.args(["--seed", &first.to_string(), "--count", &(end - first).to_string()]);
        command.args(["--runs", &options.runs.to_string()]);
        if let Some(directory) = &options.linux {
            command.arg("--linux").arg(directory);
        }
        if options.no_kernel {
            command.arg("--no-kernel");
        }
        Ok(command)
    };
    let (mut tally, mut shown) = (Tally::default(), Vec::new());
    child::supervise(jobs, command, |event| {
        match event {
            Event::Line(line) => {
                let line: Value = serde_json::from_str(&line).unwrap_or_default();
                tally.add(&line);
                if line["ours"].is_null() && line["kernel"] == json!("refuses") {
                    shown.push((
                        line["program"].as_u64().unwrap_or_default(),
                        format!("only we accept: {}", line["reason"].as_str().unwrap_or_default()),
                    ));
                }
                if let Some(reason) = line["not_taken"][0][1].as_str() {
                    shown.push((
                        line["program"].as_u64().unwrap_or_default(),
                        format!("does not run: {reason}"),
                    ));
                }
                let part = |index: usize| line["difference"][index].as_str().unwrap_or_default();
                match (line["difference"].is_array(), line["pure"].as_bool()) {
                    (true, Some(false)) => {}
                    (true, _) => {
                        tally.failures += 1;
                        let seed = line["program"].as_u64().unwrap_or_default();
                        print_program(sources, seed, &format!("FAILURE: {}: {}", part(0), part(1)));
                    }
                    (false, _) => {}
                }
            }
            Event::Failed(seed, ran) => {
                tally.failures += 1;
                print_program(sources, seed, &format!("FAILURE: {ran}"));
            }
        }
        options.seconds.is_none_or(|seconds| start.elapsed() < Duration::from_secs(seconds))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    say!(
        "{} changed programs of {} from seed {} in {seconds:.1} s ({:.1} a second), {} packets each: {} accepted here; both accept {}, \
         both refuse {}, of {} that the kernel was asked about; {} differ that depend on addresses or unwritten memory; {} failures",
        tally.programs,
        sources.len(),
        options.seed,
        tally.programs as f64 / seconds.max(1e-9),
        options.runs,
        tally.ours_accepted,
        tally.both_accept,
        tally.both_refuse,
        tally.kernel_asked,
        tally.impure,
        tally.failures,
    );
    tally.print_reasons(options.stats);
    // One of each kind.
    let mut kinds = BTreeSet::new();
    for (seed, text) in shown.into_iter().filter(|(_, text)| kinds.insert(cause(text))).take(MOST_SHOWN) {
        print_program(sources, seed, &text);
    }
    Ok(if tally.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The changed instructions, after the message.
fn print_program(sources: &[Source], seed: u64, text: &str) {
    say!("seed {seed}: {text}");
    let Some((source, object)) = changed(sources, seed) else { return };
    say!("  {}", name(source));
    let code = |object: &Object| {
        let spec: Option<&ProgramSpec> = object.programs().iter().find(|spec| spec.name == source.program);
        spec.map(|spec| (spec.insns.clone(), disassemble(&spec.insns))).unwrap_or_default()
    };
    let ((before, old), (after, new)) = (code(&source.object), code(&object));
    let is_changed = |slot: usize| before.get(slot) != after.get(slot);
    for (mark, lines) in [('-', old), ('+', new)] {
        for line in lines.iter().filter(|line| is_changed(line.slot)) {
            say!("  {mark} {line}");
        }
    }
}
