//! Cost of a step in the kernel: a tail call, and a call of a subprogram.

use std::error::Error;
use std::fmt::Write;

use paceline::Object;
use paceline_isa::assemble;
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_testkit::kernel::{KernelObject, LoadOptions};

use crate::kernel;
use crate::measure::{Timing, Work, rounds};
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings};

/// `workloads/chain.bpf.c`
const OBJECT: &[u8] = include_bytes!("../../workloads/chain.o");
/// Steps of a long chain.
const STEPS: usize = 32;
/// Rounds of a full measurement.
const ROUNDS: usize = 15;
/// Runs per round.
const ROUND: u32 = 200_000;

/// Each further program, compared with a step in the kernel.
pub(super) fn rows(settings: Settings, fused: Timing) -> Rows {
    let tail = [tail_calls(1)?, tail_calls(STEPS)?];
    let functions = [calls(1)?, calls(STEPS)?];
    let count = if settings.smoke { 10 } else { ROUND };
    let work = |(object, index): &(KernelObject, usize)| -> Result<u64, Box<dyn Error>> {
        let program = object.programs.get(*index).ok_or("no program")?;
        program.time(&[0; 64], count)?;
        Ok(u64::from(count))
    };
    let mut works: Vec<Work<'_>> = Vec::new();
    for object in tail.iter().chain(&functions) {
        works.push(Box::new(move || work(object)));
    }
    let times = rounds(if settings.smoke { 0 } else { ROUNDS }, &mut works)?;
    let step = |pair: &[Timing]| pair[1].minus(pair[0]).divided_by((STEPS - 1) as f64);
    let steps = [("a tail call", step(&times[..2])), ("a call of a function", step(&times[2..]))];
    let row = |(what, against): (&str, Timing)| {
        let figure = Figure::Time { ours: fused, against: Some(against) };
        let row =
            Row::new("PASS then DROP: each further program", format!("{what}, {}", kernel::name()), figure);
        Row { bar: Some(Bar::Ratio(1.0)), reach: Some(Bar::Ratio(2.0)), ..row }
    };
    Ok(steps.into_iter().map(row).collect())
}

/// A chain of this number of tail calls; returns the index of its first program.
fn tail_calls(steps: usize) -> Result<(KernelObject, usize), Box<dyn Error>> {
    use std::os::fd::AsRawFd;
    let object = Object::parse(OBJECT)?;
    let loaded = kernel::load(&object)?;
    let place = |name: &str| object.programs().iter().position(|program| program.name == name);
    let array = loaded.maps.first().ok_or("no map")?;
    for index in 0..steps {
        let next = if index + 1 < steps { place(&format!("link_{}", index + 1)) } else { place("end") };
        let program = next.and_then(|next| loaded.programs.get(next)).ok_or("no such program")?;
        array.update(&(index as u32).to_ne_bytes(), &program.fd().as_raw_fd().to_ne_bytes(), 0)?;
    }
    let first = place("link_0").ok_or("no first program")?;
    Ok((loaded, first))
}

/// A program that calls functions one after the other while they pass the packet.
fn calls(steps: usize) -> Result<(KernelObject, usize), Box<dyn Error>> {
    let mut text = String::new();
    for step in 0..steps {
        let _ = writeln!(text, "call step{step}\nif r0 != 2 goto out");
    }
    text += "out:\nexit\n";
    for step in 0..steps {
        let _ = writeln!(text, "step{step}:\nr0 = 2\nexit");
    }
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let mut program = ProgramSpec::new("calls", kind, assemble(&text, &())?.encode()?);
    program.license = "GPL".to_owned();
    let options = LoadOptions { btf: None, leave_out_types: true, cpu: 0 };
    Ok((KernelObject::load(&[], &[program], options)?, 0))
}
