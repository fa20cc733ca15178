//! Accepted random programs on several engines, which must have equal results: return values, packets, metadata, redirect
//! targets, maps.
//!
//! The generator folds the contents of the stack into the return value, so that the stack is compared too. A program is
//! compiled once for each engine and run on many packets; maps and buffers are reused between programs where possible.

mod chain;
mod dirt;
mod engine;
mod kernel;
mod named;
mod subject;
mod work;

pub(crate) use self::chain::random_graph;
pub use self::chain::{ChainSubject, ChainWay, ChainWork, compare_chains};
pub use self::engine::EngineSubject;
pub(crate) use self::engine::records;
pub use self::kernel::KernelSubject;
pub use self::named::Named;
pub use work::{Input, Work, Workshop};

use crate::AnyEngine;
use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::Contents;
use crate::case::{CaseRun, write_cases};
use crate::random::Candidate;

pub(crate) use subject::redirect_of;
pub use subject::{Left, Stopped, Subject};

/// Maximum time for shrinking a program.
const SHRINKING: Duration = Duration::from_secs(30);

/// A difference between two engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Names of the engines.
    pub engines: [&'static str; 2],
    /// Index of the run; `None` for the maps after all runs.
    pub run: Option<usize>,
    /// Both results, as text.
    pub text: String,
}

/// Result of the comparison of one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// All engines that ran it agree. Engines that did not run it, with their reasons.
    Same(Vec<(&'static str, String)>),
    /// Two engines differ.
    Different(Difference),
}

/// Compares engines; reuses its buffers.
///
/// The plain interpreter, which relies on no proof, runs first: a fault is a failure, and the program runs on no other
/// engine, where it could corrupt this process or the kernel. The kernel runs last.
pub struct Comparator {
    subjects: Vec<Box<dyn Subject>>,
    lefts: Vec<Vec<Left>>,
    /// The plain interpreter with other addresses and random numbers: a program on which the two differ depends on these.
    twin: EngineSubject,
}

impl Comparator {
    /// Compares these engines and the kernel, on the CPU of this number, with the plain interpreter.
    ///
    /// # Errors
    /// A map cannot be created.
    pub fn new(
        engines: Vec<Box<dyn Subject>>,
        kernel: Option<KernelSubject>,
        cpu: usize,
    ) -> Result<Self, String> {
        let mut subjects: Vec<Box<dyn Subject>> = vec![Box::new(EngineSubject::new(AnyEngine::Plain, cpu)?)];
        subjects.extend(engines);
        subjects.extend(kernel.map(|kernel| Box::new(kernel) as Box<dyn Subject>));
        let lefts = subjects.iter().map(|_| Vec::new()).collect();
        Ok(Self { subjects, lefts, twin: EngineSubject::twin(AnyEngine::Plain, cpu)? })
    }

    /// Names of all compared engines, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.subjects.iter().map(|subject| subject.name())
    }

    /// Whether the result is independent of addresses and random numbers.
    pub fn is_pure(&mut self, work: &Work) -> bool {
        let Some(first) = self.subjects.first_mut() else { return true };
        let mut lefts = [vec![Left::default(); work.inputs.len()], vec![Left::default(); work.inputs.len()]];
        let [one, other] = &mut lefts;
        match (first.run(work, one), self.twin.run(work, other)) {
            // Messages of faults contain addresses.
            (Err(Stopped::Run { run: one, .. }), Err(Stopped::Run { run: other, .. })) => one == other,
            (ran, again) => ran == again && one == other,
        }
    }

    /// Runs a piece of work on all engines.
    pub fn compare(&mut self, work: &Work) -> Comparison {
        let mut refused = Vec::new();
        let mut first: Option<(usize, Vec<Option<Contents>>)> = None;
        for index in 0..self.subjects.len() {
            let (subject, left) = (&mut self.subjects[index], &mut self.lefts[index]);
            left.resize_with(work.inputs.len(), Left::default);
            let name = subject.name();
            let maps = match subject.run(work, left) {
                Ok(maps) => maps,
                Err(Stopped::Refused(reason)) if subject.may_refuse() => {
                    refused.push((name, reason));
                    continue;
                }
                // Engines must load each accepted program, and run it without a fault.
                Err(stopped) => {
                    let text = format!("{name}: {stopped}\n");
                    let run = match stopped {
                        Stopped::Run { run, .. } => run,
                        Stopped::Refused(_) => 0,
                    };
                    return Comparison::Different(Difference { engines: [name, name], run: Some(run), text });
                }
            };
            match &first {
                None => first = Some((index, maps)),
                Some((other, others)) => {
                    if let Some(difference) = self.difference(work, *other, others, index, &maps) {
                        return Comparison::Different(difference);
                    }
                }
            }
        }
        Comparison::Same(refused)
    }

    fn difference(
        &self,
        work: &Work,
        one: usize,
        ones: &[Option<Contents>],
        other: usize,
        others: &[Option<Contents>],
    ) -> Option<Difference> {
        let engines = [self.subjects[one].name(), self.subjects[other].name()];
        let lefts = || self.lefts[one].iter().zip(&self.lefts[other]);
        if let Some(run) = lefts().position(|(one, other)| !one.agrees(other)) {
            let (left, right) = (&self.lefts[one][run], &self.lefts[other][run]);
            let text = format!("{}: {left:x?}\n{}: {right:x?}\n", engines[0], engines[1]);
            return Some(Difference { engines, run: Some(run), text });
        }
        let both_say = |(one, other): (&Option<Contents>, &Option<Contents>)| {
            one.is_some() && other.is_some() && one != other
        };
        let differs = ones.iter().zip(others).position(both_say)?;
        let map = work.used.get(differs).copied().unwrap_or_default();
        let mut text = format!("map {map} after the last run\n");
        for (name, contents) in [(engines[0], &ones[differs]), (engines[1], &others[differs])] {
            let _ = writeln!(text, "{name}: {contents:x?}");
        }
        Some(Difference { engines, run: None, text })
    }

    /// The smallest program found on which two engines still differ.
    pub fn shrink(&mut self, candidate: &Candidate, work: &Work, shop: &Workshop) -> Candidate {
        let start = Instant::now();
        candidate.shrink(|smaller| {
            if start.elapsed() > SHRINKING {
                return false;
            }
            let Some(smaller) = smaller.program().and_then(|program| shop.with_program(work, program)) else {
                return false;
            };
            // Uninitialized memory differs by itself: the kernel does not clear its stack.
            smaller.unwritten_words() <= work.unwritten_words()
                && matches!(self.compare(&smaller), Comparison::Different(_))
                && self.is_pure(&smaller)
        })
    }

    /// The work as a text case that expects the first engine's results.
    pub fn to_case(&mut self, name: &str, work: &Work, shop: &Workshop) -> String {
        let Some((subject, left)) = self.subjects.first_mut().zip(self.lefts.first_mut()) else {
            return String::new();
        };
        left.resize_with(work.inputs.len(), Left::default);
        let maps = subject.run(work, left).unwrap_or_default();
        let runs: Vec<CaseRun<'_>> = work
            .inputs
            .iter()
            .zip(left)
            .map(|(input, left)| CaseRun {
                data: &input.data,
                meta: &input.meta,
                r0: left.r0,
                output: &left.data,
                output_meta: &left.meta,
            })
            .collect();
        let specs: Vec<_> =
            work.used.iter().filter_map(|&index| Some((index, shop.contents_of(index, work)?))).collect();
        let programs: Vec<_> = work.programs.iter().map(|verified| verified.program()).collect();
        write_cases(name, &specs, &programs, &runs, &maps)
    }
}
