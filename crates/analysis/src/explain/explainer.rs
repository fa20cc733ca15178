//! Runs that are recorded, and runs with one branch inverted.

use std::sync::Arc;

use paceline_btf::Btf;
use paceline_engine::{Arrival, ArrivalError, Host, Observed, Outcome, Program, RanAs, Steer};
use paceline_frame::Burst;

use crate::explain::fact::FactWriter;
use crate::explain::flows::Flows;
use crate::explain::journal::Journal;
use crate::explain::line_counts::LineCounts;
use crate::explain::recorder::Recorder;
use crate::explain::trace::Explanation;

/// Explains what a program does with packets.
pub struct Explainer {
    program: Program,
    pub(crate) btf: Option<Arc<Btf>>,
    burst: Burst,
    pub(crate) flows: Flows,
    pub(crate) wants_all: bool,
}

impl std::fmt::Debug for Explainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Explainer").finish_non_exhaustive()
    }
}

impl Explainer {
    /// An explainer of a program, of any engine; it runs on the plain interpreter. Keys and values of maps are shown by the types of the
    /// program's object.
    #[must_use]
    pub fn new(program: Program, btf: Option<Arc<Btf>>) -> Self {
        Self { program, btf, burst: Burst::new(1), flows: Flows::default(), wants_all: false }
    }

    /// Has explanations contain all causes, and not only the nearest one: they take longer.
    pub fn want_all_causes(&mut self, wanted: bool) {
        self.wants_all = wanted;
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
        let mut flows = std::mem::take(&mut self.flows);
        let mut recorder = Recorder::new(FactWriter { btf: btf.as_deref() }, &mut flows);
        let rehearsed = self.rehearsed(packet, host, |observed| {
            recorder.see(observed);
            Steer::Follow
        })?;
        let mut record = recorder.finish();
        let found = self.causes(packet, host, &record, &rehearsed, &mut flows)?;
        self.flows = flows;
        let outcome = self.steered(packet, host, |observed| {
            note(observed);
            Steer::Follow
        })?;
        let (programs, events) = (std::mem::take(&mut record.programs), std::mem::take(&mut record.events));
        let end = record.after(record.steps.end).unwrap_or(record.end);
        let truncated = record.is_truncated;
        let target = outcome.redirect.map(|redirect| record.target(redirect.target));
        Ok(Explanation {
            programs,
            events,
            causes: found.causes,
            is_known: found.is_known,
            otherwise: found.otherwise,
            end,
            outcome,
            target,
            truncated,
        })
    }

    /// Runs the program over a packet and undoes its changes of maps and host; `steer` sees each instruction, and may invert branches.
    ///
    /// # Errors
    /// [`ArrivalError`].
    pub fn rehearsed(
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
