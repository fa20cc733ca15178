//! Verifies every program of the objects named, here and in the kernel, and compares verdicts and times.
#![allow(clippy::print_stdout, reason = "a command")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline::Object;
use paceline_spec::ProgramSpec;
use paceline_testkit::kernel::{KernelObject, LoadOptions};
use paceline_verifier::{Options, Verified, verify};

/// Rounds per program; the shortest counts.
const ROUNDS: u32 = 20;

fn main() -> ExitCode {
    let mut agree = true;
    println!("| program | instructions | simulated | states | ours | kernel | ratio | verdict |");
    println!("|---|---|---|---|---|---|---|---|");
    for path in std::env::args().skip(1) {
        match Object::open(&path) {
            Ok(object) => {
                for program in &object.programs {
                    agree &= report(&path, &object, program);
                }
            }
            Err(error) => println!("| {path} | | | | | | | {error} |"),
        }
    }
    if agree { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(path: &str, object: &Object, program: &ProgramSpec) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let slots = program.insns.len();
    let (ours, our_time) =
        shortest(|| verify(program, &object.maps, object.btf.as_deref(), &Options::default()));
    let (kernel, kernel_time) = load(object, program);
    let (simulated, states) =
        ours.as_ref().map_or((0, 0), |v: &Verified| (v.stats().instructions, v.stats().peak_states));
    let verdict = match (&ours, &kernel) {
        (Ok(_), Ok(())) => "both accept".to_owned(),
        (Err(refusal), Ok(())) => format!("only the kernel accepts: {refusal}"),
        (Ok(_), Err(error)) => format!("only we accept: {error}"),
        (Err(refusal), Err(error)) => format!("both refuse: {refusal} / {error}"),
    };
    let ratio = our_time.as_secs_f64() / kernel_time.as_secs_f64();
    println!(
        "| {file}:{} | {slots} | {simulated} | {states} | {our_time:.1?} | {kernel_time:.1?} | {ratio:.2} | {verdict} |",
        program.name
    );
    ours.is_ok() == kernel.is_ok()
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

/// Loads a program with its object's maps; the time is that of `BPF_PROG_LOAD` alone, compilation included.
fn load(object: &Object, program: &ProgramSpec) -> (Result<(), String>, Duration) {
    let maps_only = KernelObject::load(&object.maps, [], LoadOptions::default());
    if let Err(error) = maps_only {
        return (Err(error.to_string()), Duration::ZERO);
    }
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        match KernelObject::load_timed(&object.maps, program, LoadOptions::default()) {
            Ok(time) => best = best.min(time),
            Err(error) => return (Err(error.to_string()), Duration::ZERO),
        }
    }
    (Ok(()), best)
}
