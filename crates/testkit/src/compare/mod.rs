//! Accepted random programs on several engines that must leave the same: what they return, packets, metadata, redirect
//! targets, maps.
//!
//! What is on a function's stack when it returns goes into what it returns (the generator sees to that), so that it is
//! compared too. A program is made once for each engine and run on many packets; what may be is kept from program to
//! program.

mod chain;
mod dirt;
mod engine;
mod kernel;
mod work;

pub(crate) use self::chain::random_graph;
pub use self::chain::{ChainSubject, ChainWay, ChainWork, compare_chains};
pub use self::engine::EngineSubject;
pub(crate) use self::engine::records;
pub use self::kernel::KernelSubject;
pub(crate) use self::work::is_keyed;
pub use work::{Input, Work, Workshop};

use std::fmt::Write;
use std::time::{Duration, Instant};

use paceline::{Engine, Redirect, RedirectTarget};

use crate::Contents;
use crate::case::{CaseRun, write_cases};
use crate::random::Candidate;

/// Longest that a program is shrunk.
const SHRINKING: Duration = Duration::from_secs(30);

/// What one run left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Low 32 bits of `r0`.
    pub code: u32,
    /// All of it, from engines that tell.
    pub r0: Option<u64>,
    /// The packet.
    pub data: Vec<u8>,
    /// The metadata before it.
    pub meta: Vec<u8>,
    /// Where the packet is redirected: whether to a map's element, its key or interface, and flags; from engines that tell.
    pub redirect: Option<Option<(bool, u32, u32)>>,
}

impl Left {
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        (self.code, &self.data, &self.meta) == (other.code, &other.data, &other.meta)
            && same(&self.r0, &other.r0)
            && same(&self.redirect, &other.redirect)
    }
}

pub(crate) fn redirect_of(redirect: Option<Redirect>) -> Option<(bool, u32, u32)> {
    redirect.map(|redirect| match redirect.target {
        RedirectTarget::Interface { ifindex } => (false, ifindex, redirect.flags),
        RedirectTarget::Map { key, .. } => (true, key, redirect.flags),
    })
}

/// Why an engine did not finish a piece of work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// It does not take the program.
    #[error("does not take the program: {0}")]
    Refused(String),
    /// A run went wrong.
    #[error("run {run}: {reason}")]
    Run {
        /// Which run.
        run: usize,
        /// What happened.
        reason: String,
    },
}

/// Something that runs work.
pub trait Subject {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Whether it may refuse what our verifier accepts.
    fn may_refuse(&self) -> bool {
        false
    }

    /// Runs the program on all packets, over maps with the contents that the work says, and tells what each run left in
    /// `left` (as many as there are packets), and what the maps hold afterwards
    /// (`None` where it does not say).
    ///
    /// # Errors
    /// [`Stopped`].
    fn run(&mut self, work: &Work, left: &mut [Left]) -> Result<Vec<Option<Contents>>, Stopped>;
}

/// What two engines do differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Names of the engines.
    pub engines: [&'static str; 2],
    /// Which run, `None` for the maps after all of them.
    pub run: Option<usize>,
    /// What they left, for people.
    pub text: String,
}

/// How a comparison of one program went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// All engines that took it left the same. Those that did not, with their reasons.
    Same(Vec<(&'static str, String)>),
    /// Two did not.
    Different(Difference),
}

/// Compares engines; keeps its buffers from program to program.
///
/// The plain interpreter, which trusts no proof, comes first: what it faults on is a failure, and runs nowhere else, where it
/// might write over this process or the kernel. The kernel comes last.
pub struct Comparator {
    subjects: Vec<Box<dyn Subject>>,
    lefts: Vec<Vec<Left>>,
    /// The plain interpreter once more, at other addresses and with other random numbers: programs on which the two
    /// differ depend on these.
    twin: EngineSubject,
}

impl Comparator {
    /// Of these engines, and the kernel, on a CPU of that number: all are compared with the plain interpreter.
    ///
    /// # Errors
    /// A map that cannot be made.
    pub fn new(
        engines: Vec<Box<dyn Subject>>,
        kernel: Option<KernelSubject>,
        cpu: usize,
    ) -> Result<Self, String> {
        let mut subjects: Vec<Box<dyn Subject>> = vec![Box::new(EngineSubject::new(Engine::Plain, cpu)?)];
        subjects.extend(engines);
        subjects.extend(kernel.map(|kernel| Box::new(kernel) as Box<dyn Subject>));
        let lefts = subjects.iter().map(|_| Vec::new()).collect();
        Ok(Self { subjects, lefts, twin: EngineSubject::twin(Engine::Plain, cpu)? })
    }

    /// Names of all that are compared, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.subjects.iter().map(|subject| subject.name())
    }

    /// Whether the program comes to the same wherever its memory is and whatever random numbers it draws.
    pub fn is_pure(&mut self, work: &Work) -> bool {
        let Some(first) = self.subjects.first_mut() else { return true };
        let mut lefts = [vec![Left::default(); work.inputs.len()], vec![Left::default(); work.inputs.len()]];
        let [one, other] = &mut lefts;
        match (first.run(work, one), self.twin.run(work, other)) {
            // What is said of a fault has addresses in it.
            (Err(Stopped::Run { run: one, .. }), Err(Stopped::Run { run: other, .. })) => one == other,
            (ran, again) => ran == again && one == other,
        }
    }

    /// Runs a piece of work on all of them.
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
                // Every engine takes an accepted program, and runs it without a fault.
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
            // What nobody wrote differs on its own: on the kernel's stack lies what lay there.
            smaller.unwritten_words() <= work.unwritten_words()
                && matches!(self.compare(&smaller), Comparison::Different(_))
                && self.is_pure(&smaller)
        })
    }

    /// The work as a text case that expects what the first engine leaves.
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
