//! What would have become of a packet if the nearest decision had been another one.

use paceline_engine::{Arrival, ArrivalError, Outcome, Steer};

use crate::explain::cause::{Search, slice_of, standing};
use crate::explain::fact::FactWriter;
use crate::explain::field::Comparison;
use crate::explain::jump::{Jump, Standing};
use crate::explain::recorder::{Record, Recorder};
use crate::explain::slice::Reason;
use crate::explain::trace::{Cause, Explanation};

/// Lengths of the shortest and the longest common packet in bytes.
const SHORT: usize = 60;
const LONG: usize = 1514;

impl Search<'_, '_> {
    /// The sentence of another decision with the same outcome, if there is one without this decision. A decision about one field of the packet
    /// is tried with packets in which the field has other values, and others with the branch inverted.
    pub(crate) fn otherwise(
        &mut self,
        reason: Reason,
        cause: &Cause,
    ) -> Result<Option<String>, ArrivalError> {
        if let Some(found) = self.with_other_values(cause)? {
            return Ok(found);
        }
        let Some(jump) = self.record.jumps.at(reason.step) else { return Ok(None) };
        let (outcome, record) = self.invert(&[jump.number])?;
        if outcome.fault.is_some() || !outcome.fares_as(self.outcome) {
            return Ok(None);
        }
        let mut slice = slice_of(&record);
        while let Some(later) = slice.next().filter(|later| later.step > reason.step) {
            match standing(&record, later) {
                Standing::HandsOn => slice.follow_operands(later.step),
                Standing::Strong => {
                    let causes = self.cause_in(&record, later).into_iter().collect();
                    return Ok(Some(sentence(record, causes, outcome)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// The same for a decision about one field, or the length; `None` if it is about more, or the packet was changed before.
    fn with_other_values(&mut self, cause: &Cause) -> Result<Option<Option<String>>, ArrivalError> {
        let mut same = None;
        for bytes in self.others(cause).unwrap_or_default() {
            let packet = Arrival { bytes: &bytes, ..*self.packet };
            let outcome = self.explainer.rehearsed(&packet, self.host, |_| Steer::Follow)?;
            if !outcome.fares_as(self.outcome) {
                return Ok(Some(None));
            }
            same = same.or(Some(bytes));
        }
        let Some(bytes) = same else { return Ok(None) };
        self.sentence_of(&Arrival { bytes: &bytes, ..*self.packet }).map(|sentence| Some(Some(sentence)))
    }

    /// The packet with other values of what a decision is about.
    fn others(&self, cause: &Cause) -> Option<Vec<Vec<u8>>> {
        let jumps = cause.events.iter().filter_map(|event| self.record.jumps.of_event(*event));
        let jumps: Vec<_> = jumps.collect();
        let packets = self.other_values(&jumps).or_else(|| self.other_lengths(&jumps))?;
        let mut others: Vec<Vec<u8>> = Vec::new();
        for packet in packets {
            if packet != self.packet.bytes && !others.contains(&packet) {
                others.push(packet);
            }
        }
        Some(others)
    }

    fn other_values(&self, jumps: &[&Jump]) -> Option<Vec<Vec<u8>>> {
        let comparisons = jumps.iter().map(|jump| Comparison::of(jump)).collect::<Option<Vec<_>>>()?;
        let first = comparisons.first()?;
        let is_input = |one: &Comparison<'_>| {
            *one.bits.packet == *self.packet.bytes && one.bits.positions().eq(first.bits.positions())
        };
        let greatest = first.bits.greatest();
        let near = |number: u64| [number, number.wrapping_add(1), number.wrapping_sub(1)];
        let numbers = comparisons.iter().flat_map(|one| near(one.number)).chain([0, greatest, greatest / 2]);
        let packets = numbers.filter_map(|number| first.bits.patched(number)).collect();
        comparisons.iter().all(is_input).then_some(packets)
    }

    /// Packets that are cut before the places that a decision needs, or long enough for them.
    fn other_lengths(&self, jumps: &[&Jump]) -> Option<Vec<Vec<u8>>> {
        let places = jumps.iter().map(|jump| jump.fixed_place()).collect::<Option<Vec<_>>>()?;
        let last = places.into_iter().max()?;
        let lengths = [last.saturating_sub(1), last, last + 1, SHORT.max(last), LONG.max(last)];
        let zeros = std::iter::repeat(0);
        let packet = |len: usize| self.packet.bytes.iter().copied().chain(zeros.clone()).take(len).collect();
        Some(lengths.into_iter().filter(|len| *len > 0).map(packet).collect())
    }

    /// The sentence of another packet.
    fn sentence_of(&mut self, packet: &Arrival<'_>) -> Result<String, ArrivalError> {
        let btf = self.explainer.btf.clone();
        let mut recorder = Recorder::new(FactWriter { btf: btf.as_deref() }, self.flows);
        let outcome = self.explainer.rehearsed(packet, self.host, |observed| {
            recorder.see(observed);
            Steer::Follow
        })?;
        let record = recorder.finish();
        let wanted = std::mem::take(&mut self.explainer.wants_all);
        let found = self.explainer.causes(packet, self.host, &record, &outcome, self.flows);
        self.explainer.wants_all = wanted;
        Ok(sentence(record, found?.causes, outcome))
    }
}

fn sentence(record: Record, causes: Vec<Cause>, outcome: Outcome) -> String {
    let target = outcome.redirect.map(|redirect| record.target(redirect.target));
    let (end, truncated) = (record.end, record.is_truncated);
    let Record { programs, events, .. } = record;
    let (is_known, otherwise) = (true, None);
    Explanation { programs, events, causes, is_known, otherwise, end, outcome, target, truncated }.sentence()
}
