//! A program of a graph, as input of the emitter.

use paceline_isa::Insn;
use paceline_spec::context::Layout;
use paceline_verifier::FunctionFact;

use crate::const_exit::ConstExits;
use crate::links::Links;
use crate::liveness::Liveness;
use crate::plan::{Needs, Plan, asks_for_start};
use crate::settings::Settings;
use crate::source::Source;

pub(crate) struct ChainProgram<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) links: &'a Links,
    /// The functions and their needs, the main function first.
    pub(crate) functions: Vec<(FunctionFact, Needs)>,
    pub(crate) liveness: Liveness,
    /// Instructions with code of their own: loads of the packet's start and exits are shared with other programs.
    pub(crate) instructions: usize,
    /// Constant results of the main function by slot, in a loop.
    pub(crate) returns: ConstExits,
}

impl<'a> ChainProgram<'a> {
    pub(crate) fn new(source: Source<'a>, links: &'a Links) -> Self {
        let functions = source
            .functions
            .iter()
            .map(|&function| (function, Needs::of(&source, links, &function)))
            .collect();
        let liveness = Liveness::of(&source, links);
        let instructions = instructions(&source, &liveness);
        let returns = source.functions.first().map(|main| ConstExits::of(&source, main)).unwrap_or_default();
        Self { source, links, functions, liveness, instructions, returns }
    }

    /// Whether a function of the program has a need.
    pub(crate) fn any(&self, need: impl Fn(&Needs) -> bool) -> bool {
        self.functions.iter().any(|(_, needs)| need(needs))
    }

    /// Whether a subprogram needs the host.
    fn shares_host(&self) -> bool {
        self.functions.iter().skip(1).any(|(_, needs)| needs.host)
    }

    /// The plan of a function with a call frame of its own.
    pub(crate) fn plan(&self, index: usize, settings: &Settings) -> Option<(FunctionFact, Plan)> {
        let &(function, needs) = self.functions.get(index)?;
        let plan = if settings.checked {
            Plan::checked()
        } else {
            Plan::new(&function, needs, index == 0, self.shares_host(), settings)
        };
        Some((function, plan))
    }

    /// The context's layout, if the packet's own area has to be initialized before the program.
    pub(crate) fn area(&self) -> Option<&'static Layout> {
        let layout = self.source.kind.context();
        let is_used = |needs: &Needs| needs.area || needs.tail_calls;
        (!layout.area.is_empty() && self.any(is_used)).then_some(layout)
    }

    /// Number of CPUs for which all of the program's per-CPU arrays have values; `None` without such arrays.
    pub(crate) fn cpus(&self) -> Option<u32> {
        let maps = self.source.maps().filter_map(|index| self.links.maps.get(index));
        maps.filter_map(|map| map.cpus).min()
    }
}

/// Counts instructions with code of their own, see [`ChainProgram::instructions`].
fn instructions(source: &Source<'_>, liveness: &Liveness) -> usize {
    let is_needed = |&(slot, insn): &(usize, &Insn)| match *insn {
        Insn::Exit => false,
        Insn::Load { .. } if asks_for_start(source, slot, insn) => false,
        Insn::JumpIf { .. } => {
            let fact = source.fact(slot);
            fact.may_jump && fact.may_fall_through
        }
        Insn::Alu { dst, .. } | Insn::Load { dst, .. } | Insn::LoadImm64 { dst, .. } => {
            liveness.after(source, slot, insn).contains(dst)
        }
        _ => true,
    };
    source.functions.iter().map(|function| source.reached(function).filter(is_needed).count()).sum()
}
