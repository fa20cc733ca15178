//! Runs that are recorded, and runs with one branch inverted.

use std::sync::Arc;

use paceline_btf::Btf;
use paceline_frame::{Burst, PushError, Verdict};
use paceline_spec::Meaning;
use paceline_vm::{Fault, Host, Observed, Program, Steer};

use crate::fact::FactWriter;
use crate::journal::Journal;
use crate::line_counts::LineCounts;
use crate::recorder::{Compares, Recorder};
use crate::trace::{Explanation, Outcome, Packet};

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
    /// [`PushError::TooLong`].
    pub fn run(&mut self, packet: &Packet<'_>, host: &mut Host) -> Result<Outcome, PushError> {
        self.steered(packet, host, |_| Steer::Follow)
    }

    /// Number of instructions that a packet takes, also of programs that are tail called; maps and host are left as they were.
    ///
    /// # Errors
    /// [`PushError::TooLong`].
    pub(crate) fn count(
        &mut self,
        packet: &Packet<'_>,
        host: &mut Host,
    ) -> Result<(Outcome, u64), PushError> {
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
        packet: &Packet<'_>,
        host: &mut Host,
        counts: &mut LineCounts,
    ) -> Result<Outcome, PushError> {
        self.rehearsed(packet, host, |observed| {
            counts.see(observed);
            Steer::Follow
        })
    }

    /// Runs the program over a packet, and says why it did what it did. Maps and host are afterwards as after one run.
    ///
    /// # Errors
    /// [`PushError::TooLong`].
    pub fn explain(&mut self, packet: &Packet<'_>, host: &mut Host) -> Result<Explanation, PushError> {
        self.explain_with(packet, host, |_| {})
    }

    /// The same; `note` sees the last run, the one that stays, before each instruction.
    pub(crate) fn explain_with(
        &mut self,
        packet: &Packet<'_>,
        host: &mut Host,
        mut note: impl FnMut(&Observed<'_>),
    ) -> Result<Explanation, PushError> {
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
        packet: &Packet<'_>,
        host: &mut Host,
        recorder: &Recorder<'_>,
        outcome: &Outcome,
    ) -> Result<Option<usize>, PushError> {
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
            if same_fate(&other, outcome) {
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
        packet: &Packet<'_>,
        host: &mut Host,
        mut steer: impl FnMut(&Observed<'_>) -> Steer,
    ) -> Result<Outcome, PushError> {
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
        packet: &Packet<'_>,
        host: &mut Host,
        steer: impl FnMut(&Observed<'_>) -> Steer,
    ) -> Result<Outcome, PushError> {
        self.burst.clear();
        self.burst.push(packet.bytes, packet.meta)?;
        host.arrive(&self.burst);
        let mut frame = self.burst.frame_mut(0);
        frame.set_ingress(packet.ingress, packet.queue);
        // Metadata that another frame had fits into this one.
        let _ = frame.set_metadata(packet.metadata);
        let run = self.program.run_steered(&mut frame, host, steer);
        let fault: Option<Fault> = run.err().map(|fault| *fault);
        let frame = self.burst.frame(0);
        let verdict = match self.program.spec().kind.rules().meaning {
            _ if fault.is_some() => Verdict::Aborted,
            // The code of a socket filter is the number of bytes that it keeps.
            Meaning::BytesKept if frame.code() == 0 => Verdict::Drop,
            Meaning::BytesKept => Verdict::Pass,
            Meaning::Verdict | Meaning::Action(_) => frame.verdict(),
        };
        let redirect = frame.redirect().filter(|_| verdict == Verdict::Redirect);
        let (bytes, metadata) = (frame.packet().to_vec(), frame.metadata().to_vec());
        Ok(Outcome { verdict, code: frame.code(), redirect, bytes, metadata, fault })
    }
}

/// Whether a packet fares the same: verdict and target. Its bytes may differ.
fn same_fate(a: &Outcome, b: &Outcome) -> bool {
    let fate = |outcome: &Outcome| (outcome.verdict, outcome.code, outcome.redirect, outcome.fault.is_some());
    fate(a) == fate(b)
}
