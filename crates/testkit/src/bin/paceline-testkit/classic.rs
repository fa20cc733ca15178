//! `classic`: random classic programs: the checker against the kernel's, and accepted ones converted and run on all engines,
//! against the kernel's packet sockets, its verifier and test run, and libpcap.
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- classic --count 100000
//! ```
//!
//! Program n of a run has seed `--seed` + n. Exit status 1 if two sides disagree; the program is shrunk and printed.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline_classic::text::{to_asm, to_c_array};
use paceline_testkit::classic::{Bench, Interface, Libpcap, Sample, sample, shrink};
use paceline_testkit::say;

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seed of the first program; the others follow
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Programs
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// Packets that each program is run on
    #[arg(long, default_value_t = 4)]
    packets: usize,
    /// Do not ask the kernel's verifier, which takes most of the time
    #[arg(long)]
    no_kernel: bool,
    /// Print each program and run none
    #[arg(long)]
    show: bool,
}

/// The references; missing ones are reported.
fn bench(options: &Options) -> Bench {
    let interface = Interface::new().map_err(|error| paceline_testkit::skip("packet sockets", &error)).ok();
    let libpcap = Libpcap::open().map_err(|error| paceline_testkit::skip("libpcap", &error)).ok();
    let kernel = !options.no_kernel && paceline_testkit::kernel::available_for("kernel");
    Bench::new(interface, libpcap, kernel)
}

pub(crate) fn run(options: &Options) -> Outcome {
    if options.show {
        for seed in options.seed..options.seed.saturating_add(options.count) {
            say!("; seed {seed}\n{}", to_asm(&sample(seed, 0).insns));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut bench = bench(options);
    let start = Instant::now();
    let mut told = start;
    for done in 0..options.count {
        let seed = options.seed.wrapping_add(done);
        let sample = sample(seed, options.packets);
        if let Err(difference) = bench.check(&sample) {
            say!("seed {seed}: {difference}");
            let small = shrink(&sample, |candidate| {
                bench.check(candidate).is_err_and(|found| found.is_like(&difference))
            });
            report(&small, &mut bench);
            return Ok(ExitCode::FAILURE);
        }
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            eprintln!("{done} programs, {:.0} a second", done as f64 / start.elapsed().as_secs_f64());
        }
    }
    say!("{} programs from seed {}: no difference", options.count, options.seed);
    for (what, times) in &bench.tally {
        say!("  {times:>9} {what}");
    }
    say!("  in {:.1} s", start.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

fn report(small: &Sample, bench: &mut Bench) {
    if let Err(difference) = bench.check(small) {
        say!("made small: {difference}");
    }
    say!("{}{}", to_asm(&small.insns), to_c_array(&small.insns));
    for packet in &small.packets {
        say!("packet: {}", packet.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    let Ok(filter) = paceline_classic::Filter::new(small.insns.clone(), paceline_classic::Purpose::Socket)
    else {
        return;
    };
    for spec in [
        filter.to_xdp("xdp", &Default::default()),
        filter.to_socket_filter("socket_filter", &Default::default()),
    ]
    .into_iter()
    .flatten()
    {
        say!("{}:", spec.name);
        for line in paceline_isa::disassemble(&spec.insns) {
            say!("{line}");
        }
    }
}
