//! Arrays to which no program writes, where two are compared: their values are the same for both programs and on all paths, so that an element is a
//! function of its index, and none that a path asked for. As for bytes of the packet at unknown places ([`crate::symbolic::settle`]), that equal indices
//! have equal values is added where a model has it otherwise.

use std::collections::HashMap;

use crate::solver::Term;
use paceline_isa::{Callee, Insn};
use paceline_spec::MapSpec;
use paceline_spec::helper::{Helper, HelperId};
use paceline_verifier::{Base, InsnFact, MapFact, Verified};

/// The value of an element of an array to which no program writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FixedValue {
    pub(crate) map: usize,
    /// The bytes of the element's key: an index within the array.
    pub(crate) key: Vec<Term>,
}

/// The values that paths asked for, each once, by number.
#[derive(Debug, Default)]
pub(crate) struct FixedValues {
    /// Whether no program writes to a map, by the map's index.
    maps: Vec<bool>,
    values: Vec<FixedValue>,
    numbers: HashMap<FixedValue, usize>,
}

impl FixedValues {
    /// None yet, of the arrays to which none of some programs writes.
    pub(crate) fn of(maps: &[MapSpec], programs: &[&Verified]) -> Self {
        let is_fixed = |(index, map): (usize, &MapSpec)| {
            map.kind.is_array()
                && !map.kind.is_per_cpu()
                && !map.is_constant()
                && !programs.iter().any(|program| may_write(program, index))
        };
        Self { maps: maps.iter().enumerate().map(is_fixed).collect(), ..Self::default() }
    }

    /// Whether no program writes to a map.
    pub(crate) fn has(&self, map: usize) -> bool {
        self.maps.get(map).copied().unwrap_or(false)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The number of a value.
    pub(crate) fn number(&mut self, map: usize, key: Vec<Term>) -> usize {
        let value = FixedValue { map, key };
        if let Some(&number) = self.numbers.get(&value) {
            return number;
        }
        self.values.push(value.clone());
        self.numbers.insert(value, self.values.len() - 1);
        self.values.len() - 1
    }

    pub(crate) fn get(&self, number: usize) -> Option<&FixedValue> {
        self.values.get(number)
    }
}

/// Whether a program may write to values of a map.
pub(crate) fn may_write(program: &Verified, map: usize) -> bool {
    let reached = program.code().iter().map(|(slot, insn)| (insn, program.fact(slot)));
    reached.filter(|(_, fact)| fact.reached).any(|(insn, fact)| writes(insn, &fact, map))
}

fn writes(insn: &Insn, fact: &InsnFact, map: usize) -> bool {
    match insn {
        Insn::Store { .. } | Insn::StoreRelease { .. } | Insn::Atomic { .. } => {
            match fact.memory.map(|memory| memory.base) {
                Some(Base::Context | Base::OwnStack | Base::CallerStack | Base::Packet) => false,
                Some(Base::MapValue(target)) => target.inner || target.index as usize == map,
                // Memory that is given to a function may be a value.
                Some(Base::SomeMapValue | Base::Memory | Base::Mixed) | None => true,
            }
        }
        Insn::Call(Callee::Helper(id)) => match Helper::from_imm(*id).map(|helper| helper.id) {
            Some(HelperId::MapUpdateElem | HelperId::MapDeleteElem) => match fact.map {
                Some(MapFact::Always(target)) => target.inner || target.index as usize == map,
                _ => true,
            },
            Some(id) => !leaves_memory(id),
            None => true,
        },
        Insn::Call(Callee::Kfunc { .. }) | Insn::CallReg(_) => true,
        _ => false,
    }
}

/// Whether a helper writes to no memory that a program gives it, but perhaps to the packet.
const fn leaves_memory(id: HelperId) -> bool {
    matches!(
        id,
        HelperId::MapLookupElem
            | HelperId::KtimeGetNs
            | HelperId::KtimeGetBootNs
            | HelperId::KtimeGetCoarseNs
            | HelperId::KtimeGetTaiNs
            | HelperId::Jiffies64
            | HelperId::GetPrandomU32
            | HelperId::GetSmpProcessorId
            | HelperId::GetNumaNodeId
            | HelperId::CsumDiff
            | HelperId::L3CsumReplace
            | HelperId::Redirect
            | HelperId::RedirectMap
            | HelperId::TailCall
            | HelperId::TracePrintk
            | HelperId::PerfEventOutput
            | HelperId::RingbufOutput
            | HelperId::RingbufReserve
            | HelperId::RingbufSubmit
            | HelperId::RingbufDiscard
            | HelperId::XdpAdjustHead
            | HelperId::XdpAdjustMeta
            | HelperId::XdpAdjustTail
            | HelperId::XdpGetBuffLen
            | HelperId::XdpStoreBytes
            | HelperId::SkbStoreBytes
            | HelperId::SkbVlanPush
            | HelperId::Loop
    )
}
