//! The decisions that made an outcome: those of the slice whose other side was possible.

use paceline_engine::{Arrival, ArrivalError, Host, Outcome, Steer};
use paceline_isa::Insn;

use crate::explain::condition::condition;
use crate::explain::explainer::Explainer;
use crate::explain::fact::FactWriter;
use crate::explain::flows::Flows;
use crate::explain::jump::{Leave, Standing, is_setting};
use crate::explain::recorder::{Record, Recorder};
use crate::explain::slice::{Reason, ReasonKind, Slice};
use crate::explain::trace::{At, Cause, CauseKind};

/// Most runs with a branch inverted for one explanation.
const MOST_TRIALS: usize = 256;

/// Most of them for one branch.
const MOST_TRIALS_OF_A_BRANCH: usize = 32;

/// Most causes of an outcome that are listed.
const MOST_CAUSES: usize = 64;

/// A run with an inverted branch may take so many times the instructions of the recorded run, and this many more.
const LONGER: u64 = 4;
const MORE: u64 = 10_000;

/// The causes of an outcome.
#[derive(Default)]
pub(crate) struct Found {
    /// Nearest first.
    pub(crate) causes: Vec<Cause>,
    pub(crate) is_known: bool,
    /// The sentence with which the packet would fare the same without the nearest one.
    pub(crate) otherwise: Option<String>,
}

/// Walks the slice of a run.
pub(crate) struct Search<'a, 'p> {
    pub(crate) explainer: &'a mut Explainer,
    pub(crate) packet: &'a Arrival<'p>,
    pub(crate) host: &'a mut Host,
    pub(crate) record: &'a Record,
    pub(crate) outcome: &'a Outcome,
    pub(crate) flows: &'a mut Flows,
    trials: usize,
}

impl Explainer {
    /// The decisions that made the outcome of a recorded run, nearest first. A fault decides by itself.
    pub(crate) fn causes(
        &mut self,
        packet: &Arrival<'_>,
        host: &mut Host,
        record: &Record,
        outcome: &Outcome,
        flows: &mut Flows,
    ) -> Result<Found, ArrivalError> {
        if outcome.fault.is_some() {
            return Ok(Found::default());
        }
        let mut search = Search { explainer: self, packet, host, record, outcome, flows, trials: 0 };
        search.run()
    }
}

impl Search<'_, '_> {
    fn run(&mut self) -> Result<Found, ArrivalError> {
        let record = self.record;
        let mut slice = slice_of(record);
        let (mut causes, mut weak): (Vec<Cause>, Vec<Cause>) = (Vec::new(), Vec::new());
        let mut otherwise = None;
        while let Some(reason) = slice.next() {
            if causes.len() == MOST_CAUSES || self.trials >= MOST_TRIALS {
                slice.is_cut = true;
                break;
            }
            match standing(record, reason) {
                Standing::HandsOn => slice.follow_operands(reason.step),
                Standing::Impossible => {}
                Standing::Weak | Standing::Setting => {
                    if weak.is_empty() && self.decides(reason)? {
                        weak.extend(self.cause(reason));
                    }
                }
                Standing::Strong if self.is_told(&causes, reason) || !self.decides(reason)? => {}
                Standing::Strong => {
                    let cause = self.cause(reason);
                    if !self.explainer.wants_all {
                        causes.extend(cause);
                        break;
                    }
                    if let Some(cause) = cause.as_ref().filter(|_| causes.is_empty()) {
                        otherwise = self.otherwise(reason, cause)?;
                    }
                    causes.extend(cause);
                    slice.follow_operands(reason.step);
                }
            }
        }
        if causes.is_empty() {
            causes = weak;
        }
        Ok(Found { is_known: !slice.is_cut, causes, otherwise })
    }

    /// Whether a branch belongs to a condition that is told already.
    fn is_told(&self, causes: &[Cause], reason: Reason) -> bool {
        let event = self.record.jumps.at(reason.step).and_then(|jump| jump.event);
        event.is_some_and(|event| causes.iter().any(|cause| cause.events.contains(&event)))
    }

    fn cause(&self, reason: Reason) -> Option<Cause> {
        self.cause_in(self.record, reason)
    }

    /// The decision of a reason in a run.
    pub(crate) fn cause_in(&self, record: &Record, reason: Reason) -> Option<Cause> {
        let at = record.steps.get(reason.step)?.at;
        let writer = FactWriter { btf: self.explainer.btf.as_deref() };
        let cause = match (reason.kind, record.jumps.leave_at(reason.step)) {
            (ReasonKind::Value, _) => {
                let facts = writer.facts(&record.returned.sources);
                Cause { facts, ..bare(at, CauseKind::Value) }
            }
            (_, Some(Leave::TailCall { entry, index, event, is_there })) => {
                let kind = CauseKind::TailCall { entry: entry.clone(), is_there: *is_there };
                Cause { facts: index.clone(), events: event.iter().copied().collect(), ..bare(at, kind) }
            }
            (_, Some(Leave::Load)) => bare(at, CauseKind::Load),
            _ => return condition(record, record.jumps.index_of(reason.step)?, writer),
        };
        Some(Cause { after: record.after(reason.step), ..cause })
    }

    /// Whether the outcome would be another one without a branch, or is made again by a branch that comes later, and so on.
    fn decides(&mut self, reason: Reason) -> Result<bool, ArrivalError> {
        let Some(jump) = self.record.jumps.at(reason.step) else { return Ok(true) };
        let number = jump.number;
        let most = (self.trials + MOST_TRIALS_OF_A_BRANCH).min(MOST_TRIALS);
        self.changes(reason, &mut vec![number], most)
    }

    /// The same, for the last of some branches that are inverted. When all trials are used up, the slice alone tells.
    fn changes(
        &mut self,
        reason: Reason,
        inverted: &mut Vec<u64>,
        most: usize,
    ) -> Result<bool, ArrivalError> {
        if self.trials >= most {
            return Ok(reason.kind == ReasonKind::Control);
        }
        self.trials += 1;
        let (other, record) = self.invert(inverted)?;
        if other.fault.is_some() {
            // The other side needs what is not there. Memory that it might have written is a guess.
            return Ok(reason.kind != ReasonKind::Memory);
        }
        if !other.fares_as(self.outcome) {
            return Ok(true);
        }
        let mut slice = slice_of(&record);
        while let Some(later) = slice.next().filter(|later| later.step > reason.step) {
            match (standing(&record, later), record.jumps.at(later.step)) {
                (Standing::HandsOn, _) => slice.follow_operands(later.step),
                (Standing::Strong, None) => return Ok(true),
                (Standing::Strong, Some(jump)) => {
                    inverted.push(jump.number);
                    if self.changes(later, inverted, most)? {
                        return Ok(true);
                    }
                    inverted.pop();
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// A run with branches inverted, given by their rising numbers.
    pub(crate) fn invert(&mut self, inverted: &[u64]) -> Result<(Outcome, Record), ArrivalError> {
        let limit = self.record.instructions * LONGER + MORE;
        let btf = self.explainer.btf.clone();
        let (mut branches, mut instructions) = (0, 0);
        let mut recorder = Recorder::new(FactWriter { btf: btf.as_deref() }, self.flows);
        let other = self.explainer.rehearsed(self.packet, self.host, |observed| {
            instructions += 1;
            if instructions > limit {
                return Steer::Stop;
            }
            recorder.see(observed);
            if !matches!(observed.insn(), Some(Insn::JumpIf { .. })) {
                return Steer::Follow;
            }
            branches += 1;
            if inverted.contains(&branches) { Steer::Invert } else { Steer::Follow }
        })?;
        Ok((other, recorder.finish()))
    }
}

pub(crate) fn slice_of(record: &Record) -> Slice<'_> {
    Slice::of(&record.steps, &record.jumps, !record.returned.sources.is_empty())
}

pub(crate) fn standing(record: &Record, reason: Reason) -> Standing {
    match (record.jumps.at(reason.step), record.jumps.leave_at(reason.step)) {
        (Some(jump), _) => jump.standing(),
        // The load that ended the run is its reason; others were inside of the packet.
        _ if reason.kind == ReasonKind::Value => {
            match record.returned.sources.iter().all(|source| is_setting(source)) {
                true => Standing::Setting,
                false => Standing::Strong,
            }
        }
        (None, Some(Leave::Load)) if reason.step != record.steps.end => Standing::Weak,
        _ => Standing::Strong,
    }
}

fn bare(at: At, kind: CauseKind) -> Cause {
    Cause { at, after: None, kind, facts: Vec::new(), variables: Vec::new(), events: Vec::new() }
}
