//! `verify`: verifies every program of objects, here and in the kernel, and compares verdicts and times: the minimum of 20
//! rounds, of the verifier alone on both sides (the kernel's own `verification time`, without the JIT).

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline::Object;
use paceline_spec::ProgramSpec;
use paceline_testkit::adapted;
use paceline_testkit::kernel::{KernelObject, LoadOptions, VerifierStats};
use paceline_testkit::say;
use paceline_verifier::{Verified, verify};

use crate::Outcome;

/// Rounds per program; the minimum counts.
const ROUNDS: u32 = 20;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Objects
    #[arg(required = true)]
    objects: Vec<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let mut agree = true;
    say!(
        "| program | instructions | simulated | by the kernel | peak states | of the kernel | time | kernel's | ratio | verdict |"
    );
    say!("|---|---|---|---|---|---|---|---|---|---|");
    for path in &options.objects {
        match adapted::open(path) {
            Ok(object) => {
                for program in object.programs() {
                    agree &= report(path, &object, program);
                }
            }
            Err(error) => say!("| {} | | | | | | | | | {error} |", path.display()),
        }
    }
    Ok(if agree { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(path: &Path, object: &Object, program: &ProgramSpec) -> bool {
    let file = path.file_name().unwrap_or(path.as_os_str()).display();
    let slots = program.insns.len();
    let (ours, our_time) =
        shortest(|| verify(program, object.maps(), object.btf(), &paceline_verifier::Options::default()));
    let kernel = in_kernel(object, program);
    let untyped = kernel.as_ref().map(|(_, untyped)| untyped.clone()).unwrap_or_default();
    let kernel = kernel.map(|(stats, _)| stats);
    let (simulated, states) =
        ours.as_ref().map_or((0, 0), |v: &Verified| (v.stats().instructions, v.stats().peak_states));
    let verdict = match (&ours, &kernel) {
        (Ok(_), Ok(_)) => "both accept".to_owned(),
        (Err(refusal), Ok(_)) => format!("only the kernel accepts: {refusal}"),
        (Ok(_), Err(error)) => format!("only we accept: {error}"),
        (Err(refusal), Err(error)) => format!("both refuse: {refusal} / {error}"),
    };
    let verdict =
        std::iter::once(verdict).chain(untyped.iter().map(|what| format!("kernel without types: {what}")));
    let verdict = verdict.collect::<Vec<_>>().join("; ");
    let agree = ours.is_ok() == kernel.is_ok();
    let kernel = kernel.unwrap_or_default();
    // The kernel's resolution is a microsecond; a shorter verification is 0.
    let ratio = our_time.as_secs_f64() / kernel.time.as_secs_f64().max(1e-6);
    say!(
        "| {file}:{} | {slots} | {simulated} | {} | {states} | {} | {our_time:.1?} | {:.1?} | {ratio:.2} | {verdict} |",
        program.name,
        kernel.instructions,
        kernel.peak_states,
        kernel.time
    );
    agree
}

fn shortest<T>(mut run: impl FnMut() -> T) -> (T, Duration) {
    let mut timed = || {
        let start = Instant::now();
        let result = run();
        (result, start.elapsed())
    };
    let mut best = timed();
    for _ in 1..ROUNDS {
        let next = timed();
        best = if next.1 < best.1 { next } else { best };
    }
    best
}

/// The kernel's statistics of its verification, and what was loaded without types.
fn in_kernel(object: &Object, program: &ProgramSpec) -> Result<(VerifierStats, Vec<String>), String> {
    let options = LoadOptions { btf: object.btf(), leave_out_types: true, ..LoadOptions::default() };
    KernelObject::verify_timed(object.maps(), program, options, ROUNDS as usize)
        .map_err(|error| paceline::with_causes(&error))
}
