//! Runs that are recorded, and runs with one branch inverted.

use std::sync::Arc;

use paceline_btf::Btf;
use paceline_frame::Burst;
use paceline_vm::{Arrival, ArrivalError, Host, Observed, Outcome, Program, RanAs, Steer};

use crate::fact::FactWriter;
use crate::journal::Journal;
use crate::line_counts::LineCounts;
use crate::recorder::{Compares, Recorder};
use crate::trace::Explanation;

/// A run with an inverted branch may take so many times the instructions of the recorded run, and this many more.
const LONGER: u64 = 4;
const MORE: u64 = 10_000;

/// Explains what a program does with packets.
pub struct Explainer {
    program: Program,
    btf: Option<Arc<Btf>>,
    burst: Burst,
}

impl Explainer {
    /// An explainer of a program, of any engine; it runs on the plain interpreter. Keys and values of maps are shown by the types of the
    /// program's object.
    #[must_use]
    pub fn new(program: Program, btf: Option<Arc<Btf>>) -> Self {
        Self { program, btf, burst: Burst::new(1) }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs the program over a packet.
    ///
    /// # Errors
    /// [`ArrivalError`].
    pub fn run(&mut self, packet: &Arrival<'_>, host: &mut Host) -> Result<Outcome, ArrivalError> {
        self.steered(packet, host, |_| Steer::Follow)
    }

    /// Number of instructions that a packet takes, also of programs that are tail called; maps and host are left as they were.
    ///
    /// # Errors
    /// [`ArrivalError`].
    pub(crate) fn count(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
    ) -> Result<(Outcome, u64), ArrivalError> {
        let mut instructions = 0;
        let outcome = self.rehearsed(packet, host, |_| {
            instructions += 1;
            Steer::Follow
        })?;
        Ok((outcome, instructions))
    }

    /// Adds the instructions that a packet takes to counts by line; maps and host are left as they were.
    pub(crate) fn count_lines(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
        counts: &mut LineCounts,
    ) -> Result<Outcome, ArrivalError> {
        self.rehearsed(packet, host, |observed| {
            counts.see(observed);
            Steer::Follow
        })
    }

    /// Runs the program over a packet, and says why it did what it did. Maps and host are afterwards as after one run.
    ///
    /// # Errors
    /// [`ArrivalError`].
    pub fn explain(&mut self, packet: &Arrival<'_>, host: &mut Host) -> Result<Explanation, ArrivalError> {
        self.explain_with(packet, host, |_| {})
    }

    /// The same; `note` sees the last run, the one that stays, before each instruction.
    pub(crate) fn explain_with(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
        mut note: impl FnMut(&Observed<'_>),
    ) -> Result<Explanation, ArrivalError> {
        let btf = self.btf.clone();
        let mut recorder = Recorder::new(FactWriter { btf: btf.as_deref() });
        let rehearsed = self.rehearsed(packet, host, |observed| {
            recorder.see(observed);
            Steer::Follow
        })?;
        let decision = self.decision(packet, host, &recorder, &rehearsed)?;
        let outcome = self.steered(packet, host, |observed| {
            note(observed);
            Steer::Follow
        })?;
        let truncated = recorder.is_truncated();
        let Recorder { programs, events, end, .. } = recorder;
        Ok(Explanation { programs, events, decision, end, outcome, truncated })
    }

    /// The last branch whose inversion changes the outcome. One that compares constants only was decided before: by the branch that led to
    /// these constants. A check of bounds decides if an invalid access is behind it, or if no other branch does.
    fn decision(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
        recorder: &Recorder<'_>,
        outcome: &Outcome,
    ) -> Result<Option<usize>, ArrivalError> {
        let limit = recorder.instructions * LONGER + MORE;
        // A fault decides by itself, and such a run may be long.
        if outcome.fault.is_some() {
            return Ok(None);
        }
        let mut check = None;
        for jump in recorder.branches.iter().rev() {
            let (mut branches, mut instructions) = (0, 0);
            let other = self.rehearsed(packet, host, |observed| {
                instructions += 1;
                if instructions > limit {
                    return Steer::Stop;
                }
                if !matches!(observed.insn(), Some(paceline_isa::Insn::JumpIf { .. })) {
                    return Steer::Follow;
                }
                branches += 1;
                if branches == jump.number { Steer::Invert } else { Steer::Follow }
            })?;
            if other.fares_as(outcome) {
                continue;
            }
            if jump.compares == Compares::Input || other.fault.is_some() {
                return Ok(jump.event);
            }
            check = check.or(jump.event);
        }
        Ok(check)
    }

    /// A run whose changes are undone.
    fn rehearsed(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
        mut steer: impl FnMut(&Observed<'_>) -> Steer,
    ) -> Result<Outcome, ArrivalError> {
        let mut journal = Journal::default();
        let outcome = host.rehearse(|host| {
            self.steered(packet, host, |observed| {
                journal.note(observed);
                steer(observed)
            })
        });
        journal.undo();
        outcome
    }

    pub(crate) fn steered(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
        steer: impl FnMut(&Observed<'_>) -> Steer,
    ) -> Result<Outcome, ArrivalError> {
        packet.enter(&mut self.burst, host)?;
        let run = self.program.run_steered(&mut self.burst.frame_mut(0), host, steer);
        let ran = RanAs::Program(self.program.spec().kind.rules().meaning);
        Ok(Outcome::of(self.burst.frame(0), host, ran, run.err().map(|fault| *fault)))
    }
}
