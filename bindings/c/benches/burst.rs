//! A burst of 64 through the C library, as a C program calls it, against the same call in Rust: the bar is 1.05.
//!
//! `cargo bench -p paceline-c` measures both by turns in one process, the C side through the dynamic library that Cargo built beside it.
#![allow(unsafe_code, reason = "functions of a dynamic library")]
#![allow(clippy::print_stdout, reason = "a command prints")]
#![allow(dead_code, reason = "what the tests share")]

#[path = "../tests/it/door.rs"]
mod door;
#[path = "../tests/it/library.rs"]
mod library;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use door::*;
use library::c;
use paceline::isa::RawInsn;
use paceline::{
    Burst, FrameMeta, Host, LoadOptions, Object, ProgramKind, ProgramSpec, VerifiedProgram, XdpAttach,
};
use paceline_c::*;

/// Bursts of a round, and rounds.
const BURSTS: usize = 4000;
const ROUNDS: usize = 60;

/// Limit of the time in C, as a multiple of that in Rust.
const BAR: f64 = 1.05;

type Run = extern "C" fn(
    *const paceline_program,
    *mut paceline_burst,
    *mut paceline_host,
    Out<*mut paceline_error>,
) -> paceline_status;

/// TCP to port 443, and nothing in it.
fn frame() -> [u8; 64] {
    let mut frame = [0; 64];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0x40, 0, 64, 6]);
    frame[26..34].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 1]);
    frame[34..48].copy_from_slice(&[0x30, 0x39, 1, 0xbb, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02]);
    frame
}

fn rust(object: &str, program: &str) -> VerifiedProgram {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(object);
    let object = Object::open(path).expect("it opens");
    let collection = object.load(&LoadOptions::default()).expect("it loads");
    collection.program(Some(program)).expect("it is accepted")
}

/// Nanoseconds of a burst.
fn time(mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..BURSTS).for_each(|_| run());
    start.elapsed().as_secs_f64() * 1e9 / BURSTS as f64
}

/// The best rounds of both, in Rust and in C.
fn measure(program: &VerifiedProgram, c_program: *mut paceline_program) -> (f64, f64) {
    let packet_bytes = frame();
    let (mut burst, mut host) = (Burst::default(), Host::new(0));
    while !burst.is_full() {
        burst.push(&packet_bytes, FrameMeta::default()).expect("there is room");
    }
    let c_host = handle(|error| c::paceline_host_new(0, error)).expect("a host");
    let c_burst = handle(|error| c::paceline_burst_new(64, error)).expect("a burst");
    let packets = vec![packet(&packet_bytes); 64];
    status(|error| c::paceline_burst_push(c_burst, all(&packets), 64, unwanted(), error))
        .expect("there is room");
    // SAFETY: the function of this name has this type.
    let run = *unsafe { library::LIBRARY.get::<Run>(b"paceline_program_run_burst") }.expect("it is there");
    let mut error = std::ptr::null_mut();
    let (mut best, mut best_c) = (f64::INFINITY, f64::INFINITY);
    for round in 0..ROUNDS {
        let mut in_rust =
            || best = best.min(time(|| program.run_burst(&mut burst, &mut host).expect("it runs")));
        let mut in_c = || {
            let one = || assert_eq!(run(c_program, c_burst, c_host, out(&mut error)), paceline_status::Ok);
            best_c = best_c.min(time(one));
        };
        if round % 2 == 0 {
            in_rust();
            in_c();
        } else {
            in_c();
            in_rust();
        }
    }
    (best, best_c)
}

/// The least program there is, which drops all: what remains is the call.
fn least() -> (VerifiedProgram, *mut paceline_program) {
    let raw = |opcode, imm| RawInsn { opcode, dst: 0, src: 0, offset: 0, imm };
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let spec = ProgramSpec::new("least", kind, vec![raw(0xb7, 1), raw(0x95, 0)]);
    let collection = Object::of_program(spec).load(&LoadOptions::default()).expect("it loads");

    let builder = handle(|error| c::paceline_builder_new(no_bytes(), 0, error)).expect("a builder");
    let of = |code, immediate| paceline_instruction { code, registers: 0, offset: 0, immediate };
    let (name, code) = (c_string("least"), [of(0xb7, 1), of(0x95, 0)]);
    let spec = paceline_program_spec {
        name: text(&name),
        instructions: list(&code),
        instruction_count: code.len(),
        ..zeroed()
    };
    status(|error| c::paceline_builder_add_program(builder, given(&spec), error)).expect("it is added");
    let object = handle(|error| c::paceline_builder_object(builder, error)).expect("an object");
    let made = handle(|error| c::paceline_object_load(object, nothing(), error)).expect("it loads");
    let program = handle(|error| c::paceline_collection_program(made, no_text(), error));
    (collection.program(None).expect("it is accepted"), program.expect("it is accepted"))
}

fn main() -> ExitCode {
    let of = |object, name| (name, (rust(object, name), example(object, name)));
    let programs = [
        ("least", least()),
        of("counter.o", "counter"),
        of("firewall.o", "firewall"),
        of("balancer.o", "balancer"),
    ];
    let mut is_met = true;
    for (name, (program, c_program)) in &programs {
        let (rust, c) = measure(program, *c_program);
        let ratio = c / rust;
        // The least program shows what the call costs; the bar is for programs that do something.
        is_met &= ratio <= BAR || *name == "least";
        println!("{name}: {rust:.1} ns a burst of 64 in Rust, {c:.1} ns in C, {ratio:.3} times");
    }
    if is_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
