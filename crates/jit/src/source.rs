//! A program as input of the code generator: verified, with facts, or unverified, without.

use std::borrow::Cow;

use paceline_isa::{Callee, Code, Imm64, Insn, Reg, RegSet};
use paceline_spec::ProgramKind;
use paceline_spec::helper::Helper;
use paceline_verifier::{FunctionFact, InsnFact, MapFact, Verified};

use crate::bounds_elim::{Lengths, Narrowed};

/// Stack size in bytes of a function of an unverified program (`MAX_BPF_STACK`).
const MAX_STACK: u32 = 512;

pub(crate) struct Source<'a> {
    pub(crate) kind: ProgramKind,
    pub(crate) code: &'a Code,
    facts: Option<Cow<'a, [InsnFact]>>,
    pub(crate) functions: Cow<'a, [FunctionFact]>,
}

impl<'a> Source<'a> {
    pub(crate) fn verified(verified: &'a Verified) -> Self {
        Self {
            kind: verified.program().kind,
            code: verified.code(),
            facts: Some(verified.facts().into()),
            functions: verified.functions().into(),
        }
    }

    pub(crate) fn unverified(kind: ProgramKind, code: &'a Code) -> Self {
        let called = code.iter().filter_map(|(slot, insn)| insn.subprogram_target(slot));
        let mut starts: Vec<usize> = called.filter_map(|target| usize::try_from(target).ok()).collect();
        starts.push(0);
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([code.len()]);
        let functions = starts.iter().zip(ends).map(|(&start, end)| unknown_function(code, start, end));
        Self { kind, code, facts: None, functions: functions.collect() }
    }

    /// Whether facts about instructions are available.
    pub(crate) fn has_facts(&self) -> bool {
        self.facts.is_some()
    }

    /// Adds facts about packet lengths that other programs of the chain proved.
    pub(crate) fn narrow(&mut self, lengths: &Lengths) {
        let Some(function) = self.functions.first().copied() else { return };
        let changes: Vec<(usize, Narrowed)> = self
            .reached(&function)
            .map(|(slot, _)| (slot, lengths.narrowed(slot)))
            .filter(|(_, narrowed)| *narrowed != Narrowed::Same)
            .collect();
        let Some(facts) = &mut self.facts else { return };
        for (slot, narrowed) in changes {
            let Some(fact) = facts.to_mut().get_mut(slot) else { continue };
            match narrowed {
                Narrowed::Same => {}
                Narrowed::Unreached => fact.reached = false,
                Narrowed::Goes(taken) => (fact.may_jump, fact.may_fall_through) = (taken, !taken),
            }
        }
    }

    /// Facts about an instruction; conservative ones for an unverified program.
    pub(crate) fn fact(&self, slot: usize) -> InsnFact {
        match &self.facts {
            Some(facts) => facts.get(slot).copied().unwrap_or_default(),
            None => InsnFact { reached: true, may_jump: true, may_fall_through: true, ..InsnFact::default() },
        }
    }

    /// Functions whose address the program takes, by increasing slot.
    pub(crate) fn callbacks(&self) -> Vec<usize> {
        let taken = |(slot, insn): (usize, &Insn)| match insn {
            Insn::LoadImm64 { .. } => usize::try_from(insn.subprogram_target(slot)?).ok(),
            _ => None,
        };
        let mut starts: Vec<usize> = self.code.iter().filter_map(taken).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Maps that the program refers to, by index.
    pub(crate) fn maps(&self) -> impl Iterator<Item = usize> {
        let reached = self.functions.iter().flat_map(|function| self.reached(function));
        reached.filter_map(|(_, insn)| match insn {
            Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => usize::try_from(*index).ok(),
            _ => None,
        })
    }

    /// Reachable instructions of a function, each with its slot.
    pub(crate) fn reached(&self, function: &FunctionFact) -> impl Iterator<Item = (usize, &'a Insn)> {
        let slots = self.code.slots().get(function.start..function.end).unwrap_or_default();
        let insns = (function.start..).zip(slots).filter_map(|(slot, insn)| Some((slot, insn.as_ref()?)));
        insns.filter(|&(slot, _)| self.fact(slot).reached)
    }
}

fn unknown_function(code: &Code, start: usize, end: usize) -> FunctionFact {
    let insns = || (start..end).filter_map(|slot| code.get(slot));
    let written = insns().filter(|insn| !insn.is_call()).fold(RegSet::EMPTY, |all, i| all.union(i.writes()));
    FunctionFact {
        start,
        end,
        stack: MAX_STACK,
        zeroed: u64::MAX,
        shared: u64::MAX,
        prints: true,
        saved: written.intersection(RegSet::CALLEE_SAVED).minus(RegSet::of(Reg::R10)),
        is_callback: false,
        tail_calls: insns().any(is_tail_call),
        calls: insns().any(|insn| insn.is_call() && !is_tail_call(insn)),
    }
}

/// Index of the map argument of a call, if it is the same in all runs.
pub(crate) fn known_map(source: &Source<'_>, slot: usize) -> Option<u32> {
    match source.fact(slot).map {
        Some(MapFact::Always(map)) if !map.inner => Some(map.index),
        _ => None,
    }
}

pub(crate) fn is_tail_call(insn: &Insn) -> bool {
    matches!(insn, Insn::Call(Callee::Helper(Helper::TAIL_CALL)))
}
