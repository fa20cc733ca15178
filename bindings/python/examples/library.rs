//! A million packets of 64 bytes through the Rust library, as `run_many` of the Python package runs them: to compare with. Prints the
//! nanoseconds of a packet, the least of some rounds.

#![allow(clippy::print_stdout, reason = "a command")]

use std::error::Error;
use std::time::{Duration, Instant};

use paceline::{Burst, FrameMeta, Host, LoadOptions, Object, Verdict};

const PACKETS: usize = 1_000_000;
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let object = std::env::args().nth(1).ok_or("the path of an object is missing")?;
    let collection = Object::open(object)?.load(&LoadOptions::default())?;
    let program = collection.program(None)?;
    let mut packet = paceline::packet::build("eth / ipv4 src=10.0.0.9 / tcp dport=80")?;
    packet.resize(64, 0);
    let packets = packet.repeat(PACKETS);
    let (mut burst, mut host, mut least) = (Burst::default(), Host::default(), Duration::MAX);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut verdicts: Vec<Verdict> = Vec::with_capacity(PACKETS);
        for part in packets.chunks(64 * 64) {
            burst.clear();
            for packet in part.chunks(64) {
                burst.push(packet, FrameMeta { original_len: 64, ..FrameMeta::default() })?;
            }
            program.run_burst(&mut burst, &mut host)?;
            verdicts.extend(burst.iter().map(|frame| frame.verdict()));
        }
        least = least.min(start.elapsed());
        std::hint::black_box(&verdicts);
    }
    println!("{:.1}", least.as_secs_f64() * 1e9 / PACKETS as f64);
    Ok(())
}
