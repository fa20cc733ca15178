//! A program before construction: verified, with facts, or unverified, without.

use std::borrow::Cow;

use paceline_isa::{Callee, Code, Imm64, Insn, Reg, RegSet};
use paceline_spec::helper::Helper;
use paceline_spec::{MapSpec, ProgramSpec};
use paceline_verifier::{Base, FunctionFact, InsnFact, MemoryFact, Verified};

use crate::ir::types::STACK_BYTES;

/// A program, and what is known of its instructions.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    pub(crate) program: &'a ProgramSpec,
    pub(crate) code: &'a Code,
    pub(crate) maps: &'a [MapSpec],
    facts: Cow<'a, [InsnFact]>,
    functions: Cow<'a, [FunctionFact]>,
    /// Number of registers, from `r1` on, that the main program is given.
    pub(crate) given: usize,
}

impl<'a> Source<'a> {
    /// A verified program, with the facts of its proof.
    #[must_use]
    pub fn verified(verified: &'a Verified) -> Self {
        Self {
            program: verified.program(),
            code: verified.code(),
            maps: verified.maps(),
            facts: verified.facts().into(),
            functions: verified.functions().into(),
            given: 1,
        }
    }

    /// A program that nobody verified: nothing is known of it. No load is one from a context, so it has to be a program over plain memory,
    /// which is given its address and its length. Its code accesses what it says.
    #[must_use]
    pub fn unverified(program: &'a ProgramSpec, code: &'a Code) -> Self {
        let starts = code.function_starts();
        let ends = starts.iter().skip(1).copied().chain([code.len()]);
        let functions = starts.iter().zip(ends).map(|(&start, end)| unknown_function(code, start, end));
        let memory =
            MemoryFact { base: Base::Mixed, min_offset: i64::MIN, max_offset: i64::MAX, packet_bytes: None };
        let fact = InsnFact {
            reached: true,
            may_jump: true,
            may_fall_through: true,
            memory: Some(memory),
            ..InsnFact::default()
        };
        let facts = vec![fact; code.len()];
        Self { program, code, maps: &[], facts: facts.into(), functions: functions.collect(), given: 2 }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &'a ProgramSpec {
        self.program
    }

    /// Whether it is a program over plain memory.
    #[must_use]
    pub fn is_over_memory(&self) -> bool {
        self.given > 1
    }

    /// The functions, the main program first.
    #[must_use]
    pub fn functions(&self) -> &[FunctionFact] {
        &self.functions
    }

    /// The fact about the instruction of a slot.
    #[must_use]
    pub fn fact(&self, slot: usize) -> InsnFact {
        // default: without a fact an instruction is not reached, and its accesses are refused.
        self.known(slot).copied().unwrap_or_default()
    }

    /// The fact about the instruction of a slot, if there is one.
    pub(crate) fn known(&self, slot: usize) -> Option<&InsnFact> {
        self.facts.get(slot)
    }

    /// Whether the instruction of a slot is reached.
    pub(crate) fn is_reached(&self, slot: usize) -> bool {
        self.known(slot).is_some_and(|fact| fact.reached)
    }

    /// The instructions of a function that are reached, each with its slot.
    pub fn reached(&self, function: &FunctionFact) -> impl Iterator<Item = (usize, &'a Insn)> {
        let slots = &self.code.slots()[function.start..function.end];
        let insns = (function.start..).zip(slots).filter_map(|(slot, insn)| Some((slot, insn.as_ref()?)));
        insns.filter(|&(slot, _)| self.is_reached(slot))
    }

    /// Number of instructions, those that are not reached too.
    #[must_use]
    pub fn instruction_count(&self) -> usize {
        self.code.iter().count()
    }

    /// Number of instructions that are reached.
    #[must_use]
    pub fn reached_count(&self) -> usize {
        self.functions.iter().map(|function| self.reached(function).count()).sum()
    }

    /// Indices of the maps that it names.
    pub fn named_maps(&self) -> impl Iterator<Item = usize> {
        let reached = self.functions.iter().flat_map(|function| self.reached(function));
        reached.filter_map(|(_, insn)| match insn {
            Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => usize::try_from(*index).ok(),
            _ => None,
        })
    }
}

fn unknown_function(code: &Code, start: usize, end: usize) -> FunctionFact {
    let insns = || (start..end).filter_map(|slot| code.get(slot));
    let written = insns().filter(|insn| !insn.is_call()).fold(RegSet::EMPTY, |all, i| all.union(i.writes()));
    let is_tail_call = |insn: &Insn| matches!(insn, Insn::Call(Callee::Helper(Helper::TAIL_CALL)));
    FunctionFact {
        start,
        end,
        stack: STACK_BYTES.unsigned_abs(),
        zeroed: u64::MAX,
        shared: u64::MAX,
        prints: true,
        saved: written.intersection(RegSet::CALLEE_SAVED).minus(RegSet::of(Reg::R10)),
        is_callback: false,
        tail_calls: insns().any(is_tail_call),
        calls: insns().any(|insn| insn.is_call() && !is_tail_call(insn)),
    }
}
