//! Programs that are replaced while others tail call them: two threads, two seconds, all pairs of engines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paceline::{Burst, FrameMeta, Host, Limits, Map, Program};
use paceline_testkit::AnyEngine;
use paceline_testkit::case::{Case, parse_file};
use paceline_verifier::{Options, Verified, verify};

/// Programs in the chain, which are entries of the array.
const STEPS: u32 = 8;

/// Duration.
const TIME: Duration = Duration::from_secs(2);

/// A chain of programs, each of which tail calls the next one. Every second one does so in a subprogram, and continues after
/// it; all have stacks of different sizes.
fn chain() -> Case {
    let mut text = format!("case: chain\nmap: jump prog_array key 4 value 4 entries {STEPS}\n");
    text.push_str("program:\n r2 = map[jump] ll\n r3 = 0\n call bpf_tail_call\n r0 = 99\n exit\n");
    for step in 0..STEPS {
        let (next, stack, result) = (step + 1, 8 * (step + 1), 100 + step);
        let call = format!("r2 = map[jump] ll\n r3 = {next}\n call bpf_tail_call\n r0 = {result}\n exit");
        let frame = format!("r6 = {step}\n *(u64 *)(r10 - {stack}) = r6");
        let program = match step % 2 {
            0 => format!("{frame}\n {call}"),
            _ => format!(
                "{frame}\n call sub\n r1 = *(u64 *)(r10 - {stack})\n r1 ^= r6\n r0 += r1\n r0 += 0x10000\n exit\nsub:\n {call}"
            ),
        };
        text.push_str(&format!("program: step{step}\n {program}\n"));
    }
    text.push_str("verifier: accepts\n");
    let mut cases = parse_file(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    cases.remove(0)
}

/// Return value of the chain if it ends at a step: that step's number, and the number of programs that continued after a
/// subprogram.
fn result(last: u32) -> u64 {
    u64::from(100 + last) + u64::from(last.div_ceil(2)) * 0x10000
}

#[test]
fn results_end_in_a_step() {
    assert_eq!([0, 1, 2, 3].map(result), [100, 0x10065, 0x10066, 0x20067]);
}

struct Soak {
    verified: Vec<Verified>,
    map: Arc<Map>,
    engines: Vec<AnyEngine>,
    runs: Vec<AtomicU64>,
    changes: AtomicU64,
    done: AtomicBool,
}

impl Soak {
    fn new() -> Self {
        let case = chain();
        let limits = Limits { cpus: 1, memory: 1 << 20 };
        let verified = |spec| match verify(spec, &case.maps, Some(&case.btf), &Options::default()) {
            Ok(verified) => verified,
            Err(refusal) => panic!("{refusal}"),
        };
        let engines: Vec<AnyEngine> = AnyEngine::available().collect();
        Self {
            verified: case.programs.iter().map(verified).collect(),
            map: Map::create(&case.maps[0], &limits).expect("a program array"),
            runs: engines.iter().map(|_| AtomicU64::new(0)).collect(),
            engines,
            changes: AtomicU64::new(0),
            done: AtomicBool::new(false),
        }
    }

    fn load(&self, program: usize, engine: AnyEngine) -> Program {
        engine.load(&self.verified[program], vec![self.map.clone()]).expect("every engine takes it")
    }

    /// Runs the chain, its first program on each engine in turn, over bursts.
    fn run(&self) {
        let mains: Vec<Program> = self.engines.iter().map(|&engine| self.load(0, engine)).collect();
        let possible: Vec<u64> = std::iter::once(99).chain((0..STEPS).map(result)).collect();
        let mut host = Host::default();
        let mut burst = Burst::default();
        while burst.push(&[0; 60], FrameMeta::default()).is_ok() {}
        while !self.done.load(Ordering::Relaxed) {
            for (main, runs) in mains.iter().zip(&self.runs) {
                main.run_burst(&mut burst, &mut host).expect("no engine stops");
                for frame in burst.iter() {
                    let code = u64::from(frame.code());
                    assert!(possible.contains(&code), "{code:#x} on {}", main.engine());
                }
                runs.fetch_add(burst.len() as u64, Ordering::Relaxed);
            }
        }
    }

    /// Replaces and removes programs, most of which are owned only by their entry.
    fn change(&self, rng: &mut fastrand::Rng) {
        while !self.done.load(Ordering::Relaxed) {
            let index = rng.u32(..STEPS);
            match rng.u8(..8) {
                0 => drop(self.map.delete(&index.to_ne_bytes())),
                _ => {
                    let engine = self.engines[rng.usize(..self.engines.len())];
                    let program = self.load(index as usize + 1, engine);
                    program.install(&self.map, index).expect("the entry is there");
                }
            }
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Stops the threads also if one of them panics.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn programs_come_and_go_under_tail_calls() {
    let soak = Soak::new();
    let seed = std::env::var("PACELINE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("PACELINE_SEED={seed}");
    thread::scope(|scope| {
        let runner = scope.spawn(|| {
            let _ends = Ends(&soak.done);
            soak.run();
        });
        let changer = scope.spawn(|| {
            let _ends = Ends(&soak.done);
            soak.change(&mut fastrand::Rng::with_seed(seed));
        });
        let start = Instant::now();
        while start.elapsed() < TIME && !runner.is_finished() && !changer.is_finished() {
            thread::sleep(Duration::from_millis(20));
        }
        soak.done.store(true, Ordering::Relaxed);
    });
    let runs: Vec<u64> = soak.runs.iter().map(|runs| runs.load(Ordering::Relaxed)).collect();
    let changes = soak.changes.load(Ordering::Relaxed);
    eprintln!("{:?}: {runs:?} packets, {changes} changes", soak.engines);
    assert!(changes > 100 && runs.iter().all(|&runs| runs > 100));
}
