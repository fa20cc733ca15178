//! What is seen in the run of an input.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use paceline_analysis::symbolic::{Call, CallResult, Edge, Input, Meets, Side};
use paceline_engine::{Observed, Outcome, Program};
use paceline_frame::Verdict;
use paceline_isa::{Callee, Imm64, Insn, Reg};
use paceline_maps::Map;
use paceline_spec::Errno;
use paceline_spec::helper::{Helper, HelperId};

use super::found::Missed;
use super::left::{Changes, Event, Handover, Target};
use super::receive::Receiver;
use super::run::{edges, host, observed, side};
use crate::load::Collection;
use crate::load::Object;

/// An element of a map, by the map's index and the key.
pub(super) type Key = (usize, Vec<u8>);

/// What a run did.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(super) outcome: Outcome,
    /// The sides that it took, one after the other.
    pub(super) sides: Vec<Side>,
    /// The edges of comparisons that it came to, by slot.
    pub(super) edges: BTreeSet<(usize, Edge)>,
    /// What the map operations met, by slot.
    pub(super) met: BTreeSet<(usize, Meets)>,
    /// Slot of the program's last instruction.
    pub(super) last: usize,
    /// The elements that it asked for, as they were then.
    pub(super) asked: BTreeMap<Key, Option<Vec<u8>>>,
    /// What its helper calls led to, one after the other.
    pub(super) calls: Vec<Call>,
    /// The elements that it changed.
    pub(super) changes: Changes,
    /// The events that it sent, and the traces that it wrote.
    pub(super) sent: (Vec<Event>, Vec<u8>),
    /// The first tail call that led to another program.
    pub(super) handover: Option<Handover>,
}

/// Runs an input, and notes all that it does.
pub(super) fn trace(
    object: &Object,
    collection: &Collection,
    program: &Program,
    input: &Input,
) -> Result<Trace, Missed> {
    let mut host = host(input);
    let indices = object.maps().iter().enumerate();
    let indices = indices.filter_map(|(index, spec)| Some((collection.map(&spec.name)?.id(), index)));
    let mut watch = Watch {
        collection,
        indices: indices.collect(),
        receiver: Receiver::new(collection, &mut host),
        sides: Vec::new(),
        edges: BTreeSet::new(),
        met: BTreeSet::new(),
        last: 0,
        asked: BTreeMap::new(),
        calls: Vec::new(),
        running: Vec::new(),
        called: None,
        tail: None,
        handover: None,
    };
    let outcome = observed(program, &mut host, input, |seen| watch.see(seen))?;
    watch.handed_over();
    let (changes, sent) = (watch.changes(), watch.receiver.sent());
    let Watch { sides, edges, met, last, asked, calls, handover, .. } = watch;
    let asked = asked.into_iter().map(|(key, (_, value))| (key, value)).collect();
    Ok(Trace { outcome, sides, edges, met, last, asked, calls, changes, sent, handover })
}

/// Notes of a run.
struct Watch<'c> {
    collection: &'c Collection,
    /// Indices of maps in the object, by the maps' numbers.
    indices: BTreeMap<u32, usize>,
    receiver: Receiver,
    sides: Vec<Side>,
    edges: BTreeSet<(usize, Edge)>,
    met: BTreeSet<(usize, Meets)>,
    last: usize,
    /// Elements that were asked for, with their map and the value that they had then.
    asked: BTreeMap<Key, (Arc<Map>, Option<Vec<u8>>)>,
    calls: Vec<Call>,
    /// Helper calls that have not returned: slot and call depth.
    running: Vec<(usize, usize)>,
    /// The map operation that was executed last: its slot and helper, whether there was an element, whether the map has keys.
    called: Option<(usize, HelperId, bool, bool)>,
    /// The tail call that was executed last, with slot and call depth, until it is seen to fail.
    tail: Option<(usize, usize, Handover)>,
    handover: Option<Handover>,
}

impl Watch<'_> {
    fn see(&mut self, seen: &Observed<'_>) {
        self.returned(seen);
        self.last = seen.slot;
        self.sides.extend(side(seen));
        self.edges.extend(edges(seen));
        match seen.insn() {
            Some(&Insn::Call(Callee::Helper(helper))) => {
                if let Some(helper) = Helper::from_imm(helper) {
                    self.running.push((seen.slot, seen.depth()));
                    self.call(seen, helper.id);
                }
            }
            Some(&Insn::LoadImm64 { value: Imm64::MapValueIndex { index, .. }, .. }) => {
                if let Some(map) = seen.map_at(index) {
                    self.ask(map, vec![0; 4]);
                }
            }
            _ => {}
        }
    }

    /// Notes a map operation before it is executed.
    fn call(&mut self, seen: &Observed<'_>, helper: HelperId) {
        let register = |reg: Reg| seen.registers[usize::from(reg.number())];
        let key = match helper {
            HelperId::MapLookupElem | HelperId::MapUpdateElem | HelperId::MapDeleteElem => None,
            HelperId::RedirectMap => Some((register(Reg::R2) as u32).to_ne_bytes().to_vec()),
            HelperId::TailCall => return self.tail_call(seen),
            _ => return,
        };
        let Some(map) = seen.map(register(Reg::R1)) else { return };
        let key = key.or_else(|| seen.read(register(Reg::R2), map.spec().key_size as usize));
        let Some(key) = key else { return };
        let is_there = self.ask(map, key);
        let kind = map.spec().kind;
        self.called = Some((seen.slot, helper, is_there, !kind.has_indices()));
    }

    /// Notes an element that is asked for; whether it is there.
    fn ask(&mut self, map: &Arc<Map>, key: Vec<u8>) -> bool {
        let value = map.lookup(&key).ok();
        let is_there = value.is_some();
        if let Some(&index) = self.indices.get(&map.id()) {
            self.asked.entry((index, key)).or_insert_with(|| (Arc::clone(map), value));
        }
        is_there
    }

    /// The elements that were changed so far.
    fn changes(&self) -> Changes {
        let now = self.asked.iter().map(|(key, (map, before))| (key, before, map.lookup(&key.1).ok()));
        now.filter(|(_, before, now)| now != *before).map(|(key, _, now)| (key.clone(), now)).collect()
    }

    /// Notes a tail call before it is executed, and what the program that is called finds.
    fn tail_call(&mut self, seen: &Observed<'_>) {
        let register = |reg: Reg| seen.registers[usize::from(reg.number())];
        let Some(map) = seen.map(register(Reg::R2)) else { return };
        let bytes = |bytes: Option<&[u8]>| bytes.unwrap_or_default().to_vec();
        let (events, traces) = self.receiver.sent();
        let handover = Handover {
            map: map.spec().name.clone(),
            index: register(Reg::R3) as u32,
            bytes: bytes(seen.packet_bytes()),
            metadata: bytes(seen.metadata()),
            headroom: bytes(seen.headroom()),
            redirect: seen.redirect().map(|redirect| Target::of(self.collection, redirect)),
            changes: self.changes(),
            events,
            traces,
        };
        self.tail = Some((seen.slot, seen.depth(), handover));
    }

    /// Notes that another program runs, or has run, in place of the function that made the last tail call, unless the call was seen to fail.
    fn handed_over(&mut self) {
        let Some((slot, depth, handover)) = self.tail.take() else { return };
        self.running.retain(|call| *call != (slot, depth));
        self.calls.push(Call { slot, result: CallResult::Program(handover.index) });
        self.handover.get_or_insert(handover);
    }

    /// Notes what the calls before an instruction led to.
    fn returned(&mut self, seen: &Observed<'_>) {
        if let Some((slot, depth, _)) = &self.tail {
            match (seen.slot, seen.depth()) == (*slot + 1, *depth) {
                true => self.tail = None,
                false => self.handed_over(),
            }
        }
        let result = seen.registers[0];
        if let Some(&(slot, depth)) = self.running.last()
            && (seen.slot, seen.depth()) == (slot + 1, depth)
        {
            self.running.pop();
            self.calls.push(Call { slot, result: CallResult::Number(result) });
        }
        self.met(result);
    }

    /// Notes what the map operation that was executed last met, from its result.
    fn met(&mut self, result: u64) {
        let Some((slot, helper, is_there, has_keys)) = self.called.take() else { return };
        let found = match helper {
            HelperId::MapLookupElem => result != 0,
            HelperId::RedirectMap => result as u32 == Verdict::Redirect as u32,
            HelperId::MapDeleteElem => result == 0,
            _ => is_there,
        };
        let is_full = helper == HelperId::MapUpdateElem && has_keys && result == Errno::E2BIG.to_return();
        let meets = match (is_full, found) {
            (true, _) => Meets::Full,
            (_, true) => Meets::Found,
            (_, false) => Meets::NotFound,
        };
        self.met.insert((slot, meets));
    }
}
