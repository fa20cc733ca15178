//! What programs use of the state of a run.

use crate::ir::{Callee, Module, Op, Source, Terminator};
use paceline_isa::Size;
use paceline_spec::ProgramKind;
use paceline_spec::context::AreaUse;
use paceline_spec::helper::Helper;

use super::choose::is_loaded;
use crate::native::links::Links;
use crate::native::machine::generator::Program;
use crate::native::machine::op::Entered;

/// What a program uses of the state of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProgramUse {
    /// It makes tail calls.
    pub(super) tail_calls: bool,
    /// It makes calls.
    pub(super) calls: bool,
    /// The part of the packet's own area that the program uses.
    pub(super) area: AreaUse,
    /// It may defer work to the end of a run.
    pub(super) defers: bool,
    /// It may set a redirect target.
    pub(super) redirects: bool,
    /// It counts rounds.
    pub(super) rounds: bool,
}

impl ProgramUse {
    pub(super) fn of(module: &Module, source: &Source<'_>) -> Self {
        let kind = source.program().kind;
        let has_area = !kind.context().area.is_empty();
        let mut found = Self::default();
        for (_, function) in module.functions.iter() {
            for block in function.layout.iter().map(|block| function.block(*block)) {
                found.rounds |= matches!(block.terminator, Terminator::MayGoto(_));
                for op in block.insts.iter().map(|inst| &function.inst(*inst).op) {
                    match *op {
                        Op::Call { callee, .. } => {
                            found.called(callee);
                            found.area |= area_of_call(kind, callee);
                        }
                        Op::ContextLoad { offset, size, .. } if has_area => {
                            found.area |= area_of_access(kind, offset, size, false);
                        }
                        Op::ContextStore { offset, size, .. } if has_area => {
                            found.area |= area_of_access(kind, offset, size, true);
                        }
                        _ => {}
                    }
                }
            }
        }
        // What a program does that is tail called is not known.
        found.defers |= found.tail_calls && kind.context().waits_for_end;
        found.redirects |= found.tail_calls;
        found
    }

    /// Notes a call.
    pub(super) fn called(&mut self, callee: Callee) {
        self.calls |= !is_loaded(callee);
        self.tail_calls |= matches!(callee, Callee::TailCall);
        if let Callee::Helper(id) = callee {
            self.defers |= Helper::from_imm(id).is_some_and(Helper::waits_for_end);
            self.redirects |= matches!(id, Helper::REDIRECT | Helper::REDIRECT_MAP);
        }
    }

    /// The program in code whose slots begin with its own at a number.
    pub(super) fn entered(&self, first: u32, kind: ProgramKind, links: &Links) -> Program {
        let entered = Entered { frame: false, tail_calls: self.tail_calls, area: self.area };
        Program { first, kind, entered, readable: links.readable }
    }
}

/// The part of the packet's own area that an access to the context uses.
fn area_of_access(kind: ProgramKind, offset: i32, size: Size, write: bool) -> AreaUse {
    let start = u64::try_from(offset).ok();
    let field = start.and_then(|start| kind.context_field(start, size.bytes() as u64, write));
    // default: an access that is to no field is refused later.
    field.map(AreaUse::of).unwrap_or_default()
}

/// The part of the packet's own area that a call may use.
fn area_of_call(kind: ProgramKind, callee: Callee) -> AreaUse {
    let uses = match callee {
        Callee::Helper(id) => Helper::from_imm(id).is_none_or(|helper| helper.uses_area(kind)),
        // A program that is tail called may use all of it.
        Callee::TailCall | Callee::Program => true,
        Callee::Kfunc { .. } => kind.context().waits_for_end,
        Callee::Function(_) | Callee::LookUp { .. } => false,
    };
    if uses { AreaUse::all(kind.context()) } else { AreaUse::default() }
}

/// Number of CPUs for which all of a program's per-CPU arrays have values; `None` without such arrays.
pub(super) fn cpus(source: &Source<'_>, links: &Links) -> Option<u32> {
    // To find the maps that a program names takes a look at each instruction.
    links.maps.iter().find(|map| map.cpus.is_some())?;
    let maps = source.named_maps().filter_map(|index| links.maps.get(index));
    maps.filter_map(|map| map.cpus).min()
}
