//! The functions of a program: which are reached, and the parameters of those that are built.

use paceline_isa::{Insn, Reg};
use paceline_verifier::FunctionFact;

use crate::ir::arena::Key;
use crate::ir::entity::FuncId;
use crate::ir::function::Function;
use crate::ir::source::Source;

/// A function during construction.
pub(super) enum Made {
    Not,
    /// Its callees are being built.
    Begun,
    Done(Box<Function>),
}

pub(super) struct Functions<'a> {
    pub(super) source: &'a Source<'a>,
    /// The functions that are reached, or whose address is taken.
    pub(super) facts: Vec<FunctionFact>,
    pub(super) made: Vec<Made>,
}

impl<'a> Functions<'a> {
    pub(super) fn of(source: &'a Source<'a>) -> Self {
        let code = source.code.iter().filter(|(slot, _)| source.is_reached(*slot));
        let taken: Vec<i64> = code.filter_map(|(slot, insn)| insn.subprogram_target(slot)).collect();
        // A helper that calls a function no time is given its address too.
        let used =
            |fact: &&FunctionFact| source.is_reached(fact.start) || taken.contains(&(fact.start as i64));
        let facts: Vec<FunctionFact> = source.functions().iter().filter(used).copied().collect();
        let made = facts.iter().map(|_| Made::Not).collect();
        Self { source, facts, made }
    }

    /// The function that an instruction calls or takes the address of; `None` if it is not reached.
    pub(super) fn called(&self, slot: usize, insn: &Insn) -> Option<FuncId> {
        let target = usize::try_from(insn.subprogram_target(slot)?).ok()?;
        self.facts.iter().position(|fact| fact.start == target).map(FuncId::new)
    }

    /// The registers that a function's parameters come in, once it is built.
    pub(super) fn arguments(&self, function: FuncId) -> Option<&[Reg]> {
        match self.made.get(function.index())? {
            Made::Done(function) => Some(&function.arguments),
            _ => None,
        }
    }

    pub(super) fn name(&self, fact: &FunctionFact) -> &str {
        let program = self.source.program;
        let named = program.functions.iter().find(|function| function.start == fact.start);
        named.map_or("", |function| &function.name)
    }
}
