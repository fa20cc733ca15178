//! The conditional jumps of a run, and whether each could have gone the other way.

use std::collections::{HashMap, VecDeque};

use paceline_isa::Condition;
use paceline_spec::MapKind;
use paceline_spec::helper::HelperId;

use super::writers::StepId;
use crate::explain::origin::{Element, Origin, Source};
use crate::explain::trace::Fact;

/// Most jumps that are kept of a run, the last ones.
const MOST_JUMPS: usize = 1 << 16;

/// A conditional jump that ran.
pub(crate) struct Jump {
    pub(crate) step: StepId,
    /// Its number among all conditional jumps of the run, from 1.
    pub(crate) number: u64,
    /// Its event, where that is kept.
    pub(crate) event: Option<usize>,
    pub(crate) taken: bool,
    /// Frame pointer of its function.
    pub(crate) frame: u64,
    pub(crate) condition: Condition,
    /// Sources and values of its operands.
    pub(crate) left: (Origin, u64),
    pub(crate) right: (Origin, u64),
    /// Addresses of the packet and of its end.
    pub(crate) packet: [u64; 2],
}

/// A place where a run leaves a program, or could.
pub(crate) enum Leave {
    /// A tail call of an entry: whether it was there, and what its index was made of.
    TailCall { entry: String, index: Vec<Fact>, event: Option<usize>, is_there: bool },
    /// A load of the packet that ends the program if it is outside.
    Load,
}

/// Whether the other side of a branch was possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It compares what the path set: the branch that led there has the reason.
    HandsOn,
    /// It was not.
    Impossible,
    /// It was, with another constant that is set before the program is loaded.
    Setting,
    /// It was, but for what goes without saying: a check of bounds that holds, a helper that did its work.
    Weak,
    /// It was.
    Strong,
}

/// The jumps of a run.
#[derive(Default)]
pub(crate) struct Jumps {
    kept: VecDeque<Jump>,
    leaves: HashMap<StepId, Leave>,
}

impl Jumps {
    pub(crate) fn push(&mut self, jump: Jump) {
        if self.kept.len() == MOST_JUMPS {
            self.kept.pop_front();
        }
        self.kept.push_back(jump);
    }

    pub(crate) fn leave(&mut self, step: StepId, leave: Leave) {
        self.leaves.insert(step, leave);
    }

    /// Notes that a tail call went to a program, with its event.
    pub(crate) fn entered(&mut self, step: StepId, to: Option<usize>) {
        if let Some(Leave::TailCall { event, is_there, .. }) = self.leaves.get_mut(&step) {
            (*event, *is_there) = (to, true);
        }
    }

    pub(crate) fn leave_at(&self, step: StepId) -> Option<&Leave> {
        self.leaves.get(&step)
    }

    pub(crate) fn index_of(&self, step: StepId) -> Option<usize> {
        self.kept.binary_search_by_key(&step, |jump| jump.step).ok()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Jump> {
        self.kept.get(index)
    }

    pub(crate) fn at(&self, step: StepId) -> Option<&Jump> {
        self.kept.get(self.index_of(step)?)
    }

    /// The jump of an event.
    pub(crate) fn of_event(&self, event: usize) -> Option<&Jump> {
        // Both rise.
        let index = self.kept.partition_point(|jump| jump.event.is_some_and(|known| known < event));
        self.kept.get(index).filter(|jump| jump.event == Some(event))
    }

    /// The jumps after a step and before another one.
    pub(crate) fn between(&self, after: StepId, before: StepId) -> impl Iterator<Item = &Jump> {
        let start = self.kept.partition_point(|jump| jump.step < after);
        let end = self.kept.partition_point(|jump| jump.step < before).max(start);
        self.kept.range(start..end)
    }
}

impl Jump {
    /// Sources of both operands.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.left.0.sources.iter().chain(&self.right.0.sources).map(|source| &**source)
    }

    /// Whether its condition held.
    pub(crate) fn standing(&self) -> Standing {
        if self.sources().next().is_none() || self.is_of_pointer() {
            return Standing::HandsOn;
        }
        if let Some(holds) = self.bounds_hold() {
            return if holds { Standing::Weak } else { Standing::Strong };
        }
        let mut sources = self.sources();
        if self.sources().all(is_setting) {
            return Standing::Setting;
        }
        match (sources.next(), sources.next()) {
            (Some(Source::Element(element)), None) => of_element(element),
            (Some(Source::Result { name, value }), None) if succeeded(name, *value) => Standing::Weak,
            _ => Standing::Strong,
        }
    }

    /// Whether it compares an address with null: there is one where the path has made one.
    fn is_of_pointer(&self) -> bool {
        let is_address = |value: u64| (self.packet[0]..=self.packet[1]).contains(&value) && value != 0;
        let is_null = |(origin, value): &(Origin, u64)| *value == 0 && origin.sources.is_empty();
        let is_pointer = |(origin, value): &(Origin, u64)| {
            let points = origin.element.as_ref().is_some_and(|element| element.address != 0);
            let is_element = origin.sources.iter().any(|source| matches!(**source, Source::Element(_)));
            is_address(*value) || (points && !is_element)
        };
        matches!(self.condition, Condition::Eq | Condition::Ne)
            && ((is_null(&self.right) && is_pointer(&self.left))
                || (is_null(&self.left) && is_pointer(&self.right)))
    }

    /// For a comparison of a place in the packet with its end: whether the place is inside.
    fn bounds_hold(&self) -> Option<bool> {
        // The condition as one on the place.
        let condition = match self.place()? {
            (_, true) => self.condition.exchanged(),
            (_, false) => self.condition,
        };
        match condition {
            Condition::Gt | Condition::Ge => Some(!self.taken),
            Condition::Lt | Condition::Le => Some(self.taken),
            _ => None,
        }
    }

    /// For a comparison with the packet's end: the other operand, and whether that is the right one.
    fn place(&self) -> Option<(&(Origin, u64), bool)> {
        let is_end = |(origin, value): &(Origin, u64)| {
            *value == self.packet[1]
                && origin.sources.iter().any(|source| matches!(**source, Source::Length(_)))
        };
        match (is_end(&self.left), is_end(&self.right)) {
            (false, true) => Some((&self.left, false)),
            (true, false) => Some((&self.right, true)),
            _ => None,
        }
    }

    /// For a comparison of a fixed place in the packet with its end: the place, counted from its start.
    pub(crate) fn fixed_place(&self) -> Option<usize> {
        let ((origin, value), _) = self.place().filter(|_| self.bounds_hold().is_some())?;
        let place = origin.sources.is_empty().then(|| value.checked_sub(self.packet[0]))??;
        usize::try_from(place).ok().filter(|place| *place < LONGEST)
    }
}

/// Places farther from the start of a packet are none.
const LONGEST: usize = 1 << 16;

/// Whether a value was set when the program was loaded.
pub(crate) fn is_setting(source: &Source) -> bool {
    matches!(source, Source::Value { element, .. } if element.map.spec().is_constant())
}

/// A check whether an element is there.
fn of_element(element: &Element) -> Standing {
    let is_array = matches!(element.map.spec().kind, MapKind::Array | MapKind::PerCpuArray);
    match element.address {
        // All elements of an array are there.
        0 if is_array => Standing::Strong,
        _ if is_array && element.is_certain => Standing::Impossible,
        _ if is_array => Standing::Weak,
        _ => Standing::Strong,
    }
}

/// Whether a result says only that a helper did what it should.
fn succeeded(name: &str, result: u64) -> bool {
    let is = |id: &HelperId| id.row().name == name;
    (result == 0 && ACTS.iter().any(is)) || (result != 0 && is(&HelperId::RingbufReserve))
}

/// Helpers that return 0 when they did what they should.
const ACTS: [HelperId; 25] = [
    HelperId::MapUpdateElem,
    HelperId::MapPushElem,
    HelperId::PerfEventOutput,
    HelperId::RingbufOutput,
    HelperId::XdpAdjustHead,
    HelperId::XdpAdjustTail,
    HelperId::XdpAdjustMeta,
    HelperId::XdpLoadBytes,
    HelperId::XdpStoreBytes,
    HelperId::SkbLoadBytes,
    HelperId::SkbLoadBytesRelative,
    HelperId::SkbStoreBytes,
    HelperId::SkbPullData,
    HelperId::SkbChangeProto,
    HelperId::SkbChangeType,
    HelperId::SkbChangeHead,
    HelperId::SkbChangeTail,
    HelperId::SkbAdjustRoom,
    HelperId::SkbVlanPush,
    HelperId::SkbVlanPop,
    HelperId::SkbSetTunnelKey,
    HelperId::SkbSetTunnelOpt,
    HelperId::L3CsumReplace,
    HelperId::L4CsumReplace,
    HelperId::CloneRedirect,
];
