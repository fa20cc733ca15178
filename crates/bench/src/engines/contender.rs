//! Contenders, and the check that their results agree.

use std::error::Error;

use paceline::{Engine, FrameMut};

/// Runs this number of packets, cyclically over the frames, and returns the sum of the results.
type Run<'a> = Box<dyn FnMut(&mut [FrameMut<'_>], usize) -> u64 + 'a>;

/// Counters of a workload.
type Counts<'a> = Box<dyn Fn() -> Vec<u64> + 'a>;

/// Kind of a contender, which selects its bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each but ours comes with a feature")]
pub(crate) enum Role {
    /// One of our engines.
    Ours(Engine),
    /// The operations of the threaded interpreter, dispatched by a `match`.
    Match,
    /// The C compiler's code, called.
    Native,
    /// The same code inlined into the loop, as a lower bound for engines that are called.
    Inlined,
    /// Native code of another engine.
    Jit,
    /// Another interpreter.
    Interpreter,
    /// libpcap's interpreter of classic BPF.
    Libpcap,
    /// The kernel's code, in its test-run loop.
    Kernel,
    /// The empty loop, which is part of every figure.
    Loop,
}

/// A contender for a workload.
pub(crate) struct Contender<'a> {
    /// Its name and version.
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) run: Run<'a>,
    counts: Option<Counts<'a>>,
}

impl<'a> Contender<'a> {
    /// A contender that runs each packet by a call of `run`.
    pub(crate) fn new(
        name: impl Into<String>,
        role: Role,
        mut run: impl FnMut(&mut FrameMut<'_>) -> u64 + 'a,
    ) -> Self {
        let mut round = 0;
        Self::looping(name, role, move |frames, count| {
            round += 1;
            each(round, frames, count, &mut run)
        })
    }

    /// A contender with its own loop.
    pub(crate) fn looping(
        name: impl Into<String>,
        role: Role,
        run: impl FnMut(&mut [FrameMut<'_>], usize) -> u64 + 'a,
    ) -> Self {
        Self { name: name.into(), role, run: Box::new(run), counts: None }
    }

    /// The same with the counters of the workload, if it has any.
    pub(crate) fn with_counts(self, counts: impl Fn() -> Vec<u64> + 'a) -> Self {
        Self { counts: Some(Box::new(counts)), ..self }
    }

    /// The verdict of each packet, and the increments of the counters, if any.
    fn answers(&mut self, frames: &mut [FrameMut<'_>]) -> (Vec<u32>, Option<Vec<u64>>) {
        let before = self.counts.as_ref().map(|counts| counts());
        let verdicts = frames.chunks_mut(1).map(|frame| (self.run)(frame, 1) as u32).collect();
        let after = self.counts.as_ref().map(|counts| counts());
        let counted = before.zip(after).map(|(before, after)| -> Vec<u64> {
            after.iter().zip(before).map(|(after, before)| after.wrapping_sub(before)).collect()
        });
        (verdicts, counted.filter(|counts| counts.iter().any(|&count| count > 0)))
    }
}

/// Runs this number of packets one by one, in a loop at another address in each round: the position of its branches within
/// fetch lines affects the time of short programs, and is independent of the contender.
#[inline(always)]
pub(super) fn each(
    round: usize,
    frames: &mut [FrameMut<'_>],
    count: usize,
    run: impl FnMut(&mut FrameMut<'_>) -> u64,
) -> u64 {
    match round % 4 {
        0 => each_at::<0>(frames, count, run),
        1 => each_at::<16>(frames, count, run),
        2 => each_at::<32>(frames, count, run),
        _ => each_at::<48>(frames, count, run),
    }
}

/// The loop at an offset within a 64-byte line. A single repeated packet needs no nested loop, whose cost would dominate
/// that of short programs.
#[inline(always)]
fn each_at<const PLACE: usize>(
    frames: &mut [FrameMut<'_>],
    count: usize,
    mut run: impl FnMut(&mut FrameMut<'_>) -> u64,
) -> u64 {
    place::<PLACE>();
    let (mut sum, mut left) = (0_u64, count);
    if let [frame] = frames {
        for _ in 0..count {
            sum = sum.wrapping_add(run(frame));
        }
        return sum;
    }
    while left > 0 {
        for frame in frames.iter_mut().take(left) {
            sum = sum.wrapping_add(run(frame));
        }
        left = left.saturating_sub(frames.len());
    }
    sum
}

/// Places the following code at an offset from the start of a line.
#[inline(always)]
#[allow(unsafe_code, reason = "there is no other way to say where code is to be")]
fn place<const PLACE: usize>() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: consists only of no-op instructions.
    unsafe {
        std::arch::asm!(".p2align 6", ".skip {}, 0x90", const PLACE, options(nomem, nostack, preserves_flags));
    }
}

/// Checks that all contenders have the same verdict for each packet, and the same counts.
///
/// # Errors
/// The contender that differs from the first, and the packet.
pub(crate) fn agree(
    workload: &str,
    contenders: &mut [Contender<'_>],
    frames: &mut [FrameMut<'_>],
) -> Result<(), Box<dyn Error>> {
    let mut answering = contenders.iter_mut().filter(|contender| contender.role != Role::Loop);
    let Some(first) = answering.next() else { return Ok(()) };
    let (expected, expected_counts) = first.answers(frames);
    for other in answering {
        let (found, counts) = other.answers(frames);
        if let Some(index) = expected.iter().zip(&found).position(|(expected, found)| expected != found) {
            let (theirs, ours) = (found[index], expected[index]);
            let text = format!(
                "{workload}, packet {index}: {} says {ours}, {} says {theirs}",
                first.name, other.name
            );
            return Err(text.into());
        }
        if counts != expected_counts {
            return Err(format!("{workload}: {} counts otherwise than {}", other.name, first.name).into());
        }
    }
    Ok(())
}

/// The programs of the object, loaded by an engine.
pub(super) trait Chain {
    /// Sets the program at an index of the program array.
    fn install(&mut self, index: usize, program: usize) -> Result<(), Box<dyn Error>>;
    /// Result of the first program.
    fn verdict(&mut self, frame: &mut FrameMut<'_>) -> Result<u64, Box<dyn Error>>;
    /// Runs the first program this number of times.
    fn repeat(&mut self, frame: &mut FrameMut<'_>, count: usize) -> Result<(), Box<dyn Error>>;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use paceline::{Burst, FrameMeta};

    use super::*;

    fn check(contenders: &mut [Contender<'_>]) -> Result<(), String> {
        let mut burst = Burst::default();
        burst.push(&[0; 64], FrameMeta::default()).unwrap();
        burst.push(&[0; 60], FrameMeta::default()).unwrap();
        let mut frames: Vec<_> = burst.iter_mut().collect();
        agree("W", contenders, &mut frames).map_err(|error| error.to_string())
    }

    #[test]
    fn whoever_differs_is_named() {
        let by_len = |name: &str| Contender::new(name, Role::Jit, |frame| u64::from(frame.len() == 64));
        let empty = Contender::new("empty", Role::Loop, |_| 7);
        check(&mut [by_len("a"), empty, by_len("b")]).unwrap();
        let error = check(&mut [by_len("a"), Contender::new("b", Role::Jit, |_| 1)]).unwrap_err();
        assert_eq!(error, "W, packet 1: a says 0, b says 1");
    }

    #[test]
    fn counts_are_compared_by_how_they_grow() {
        let (ours, theirs) = (Cell::new(5), Cell::new(0));
        fn counting<'a>(name: &str, cell: &'a Cell<u64>) -> Contender<'a> {
            let count = |_: &mut FrameMut<'_>| {
                cell.set(cell.get() + 1);
                2
            };
            Contender::new(name, Role::Jit, count).with_counts(|| vec![cell.get()])
        }
        check(&mut [counting("a", &ours), counting("b", &theirs)]).unwrap();
        let idle = Contender::new("c", Role::Jit, |_| 2).with_counts(|| vec![0]);
        assert_eq!(check(&mut [counting("a", &ours), idle]).unwrap_err(), "W: c counts otherwise than a");
    }
}
