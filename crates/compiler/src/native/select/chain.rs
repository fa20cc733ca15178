//! Chains from the form: their programs as one function, in a loop over a burst.

use crate::codegen::Room;
use crate::ir;
use crate::ir::{
    Around, CONTEXT_BYTES, ChainError, Exit, Exits, First, Limit, Module, Pass, Passes, Placed, Rules,
    Source, chain, optimize_chain,
};
use paceline_frame::Verdict;
use paceline_spec::context::AreaUse;
use paceline_spec::context::Layout;
use paceline_spec::graph::{COUNTS, Graph, MAX_RUNS, Next, Node};
use paceline_spec::{Meaning, ProgramKind};
use paceline_verifier::Verified;

use super::code::{Body, Code, Count, Looping, generator};
use super::form::{form, passes};
use super::uses::{ProgramUse, cpus};
use crate::internal::Internal;
use crate::native::compiled::Compiled;
use crate::native::error::{CompileError, FormError};
use crate::native::links::Links;
use crate::native::machine::emit::Emit;
use crate::native::machine::op::Entered;
use crate::native::settings::{OptLevel, Settings};
use crate::native::unsupported::Unsupported;

/// The class of all values that are no verdict.
const NONE: u32 = Verdict::ALL.len() as u32;

/// A program as the function of a loop: tail calls are calls.
pub(super) fn in_loop(
    module: &Module,
    program: &ProgramUse,
    level: OptLevel,
) -> Result<(Module, ir::Graph), CompileError> {
    let other = Exit { next: ir::Next::End(0), counter: 0 };
    let exits = Exits { cases: Vec::new(), own: Some(u32::MAX), other };
    let part = ir::Part::of(module.clone(), around(program)).map_err(Unsupported::Part)?;
    let program = Placed { part: &part, first: First { function: 1, ..First::default() }, exits };
    // The program's passes have run, and it is the only one.
    let passes = passes(level).with(Pass::Gvn, false).with(Pass::Bounds, false).with(Pass::Fold, false);
    optimized(chain(&[program], &Rules::default()).map_err(Unsupported::Fused)?, &passes)
}

/// A chain after its passes.
fn optimized(mut module: Module, passes: &Passes) -> Result<(Module, ir::Graph), CompileError> {
    match optimize_chain(&mut module, passes) {
        Ok(Some(graph)) => Ok((module, graph)),
        Ok(None) => Err(Internal("a chain has no function").into()),
        Err(cause) => Err(FormError::new(cause, &module).into()),
    }
}

fn around(program: &ProgramUse) -> Around {
    let area = !program.area.is_empty();
    let begins = area || program.tail_calls || program.rounds;
    Around { begins, area, finishes: program.defers }
}

/// A verified program for chains: what does not depend on the other programs is computed once, its passes among it.
#[derive(Clone, Debug)]
pub struct Part {
    form: ir::Part,
    uses: ProgramUse,
    kind: ProgramKind,
    links: Links,
    cpus: Option<u32>,
    count: Count,
    /// Number of slots.
    slots: u32,
}

impl Part {
    /// A program with its links.
    ///
    /// # Errors
    /// [`CompileError`]; [`CompileError::Unsupported`] for a program that has no native code.
    pub fn new(verified: &Verified, links: Links, settings: &Settings) -> Result<Self, CompileError> {
        let source = Source::verified(verified);
        // Returns of one number stay apart, as more is known at one than at another.
        let passes = passes(settings.opt_level).with(Pass::Returns, false);
        let (module, _) = form(&source, &links, &passes)?;
        let uses = ProgramUse::of(&module, &source);
        Ok(Self {
            form: ir::Part::of(module, around(&uses)).map_err(Unsupported::Part)?,
            uses,
            kind: source.program().kind,
            cpus: cpus(&source, &links),
            count: Count::of(&source),
            slots: u32::try_from(verified.code().len())
                .map_err(|_| Unsupported::Fused(ChainError::TooLarge))?,
            links,
        })
    }
}

/// A program at its place in a chain.
struct Program<'a> {
    part: &'a Part,
    first: First,
}

/// Compiles a chain for a machine. An error is one of the whole chain.
pub(crate) fn compile_chain<A: Emit>(
    parts: &[&Part],
    graph: &Graph,
    counts: bool,
    settings: &Settings,
) -> Result<Compiled, CompileError> {
    let programs = placed(parts).ok_or(Unsupported::Fused(ChainError::TooLarge))?;
    let Some(entry) = parts.first() else {
        return Err(Internal("a chain has no program").into());
    };
    let links = all_links(parts, entry);
    let fused = fused(&programs, graph, counts, settings)?;
    let entered = |program: &Program<'_>| {
        let Part { uses, kind, links, .. } = program.part;
        uses.entered(program.first.slot, *kind, links)
    };
    let generator = generator::<A>(&fused.0, &links, settings, programs.iter().map(entered).collect())?;
    let code = Code {
        generator,
        room: Room::default(),
        pieces: Vec::new(),
        checked: settings.verify_allocation,
        prefetch: settings.prefetch,
    };
    let any = |has: fn(&ProgramUse) -> bool| parts.iter().any(|part| has(&part.uses));
    let looping = Looping {
        entered: Entered { frame: any(|uses| uses.calls), tail_calls: false, area: AreaUse::default() },
        defers: false,
        meaning: Meaning::Verdict,
        redirects: any(|uses| uses.redirects),
    };
    let cpus = parts.iter().filter_map(|part| part.cpus).min();
    code.chain(&Body::of(&fused)?, &looping, cpus, parts.iter().map(|part| part.count).sum())
}

/// The programs with their numbers; `None` if there are too many.
fn placed<'a>(parts: &[&'a Part]) -> Option<Vec<Program<'a>>> {
    let mut first = First { function: 1, ..First::default() };
    // The structures of context so far.
    let mut contexts: Vec<&Layout> = Vec::new();
    let place = |part: &&'a Part| {
        let context = part.kind.context();
        let found = contexts.iter().position(|known| *known == context);
        if found.is_none() {
            contexts.push(context);
        }
        let known = found.map_or(contexts.len() - 1, |found| found);
        first.context = CONTEXT_BYTES * known as i32;
        let next = after(&first, part)?;
        Some(Program { part, first: std::mem::replace(&mut first, next) })
    };
    parts.iter().map(place).collect()
}

/// The numbers of the program behind one; `None` if there are too many.
fn after(first: &First, part: &Part) -> Option<First> {
    Some(First {
        slot: first.slot.checked_add(part.slots)?,
        map: first.map.checked_add(u32::try_from(part.links.maps.len()).ok()?)?,
        kfunc: first.kfunc.checked_add(i32::try_from(part.links.kfuncs.len()).ok()?)?,
        function: first.function + part.form.function_count() - 1,
        context: 0,
    })
}

/// The links of all programs: those of the first one with the maps and kernel functions of all.
fn all_links(parts: &[&Part], entry: &Part) -> Links {
    Links {
        maps: parts.iter().flat_map(|part| part.links.maps.iter().copied()).collect(),
        kfuncs: parts.iter().flat_map(|part| part.links.kfuncs.iter().copied()).collect(),
        ..entry.links.clone()
    }
}

/// The programs as one module.
fn fused(
    programs: &[Program<'_>],
    graph: &Graph,
    counts: bool,
    settings: &Settings,
) -> Result<(Module, ir::Graph), CompileError> {
    let place = |(node, &Program { part, first })| Placed {
        part: &part.form,
        first,
        exits: exits(graph, node, part.kind.rules().meaning, counts),
    };
    let placed: Vec<Placed<'_>> = (0..).map(Node::new).zip(programs).map(place).collect();
    let limit =
        Limit { runs: MAX_RUNS, verdict: Verdict::Aborted as u32, counter: (programs.len() * COUNTS) as u32 };
    let rules = Rules { counts, limit: graph.may_exceed_runs().then_some(limit) };
    optimized(chain(&placed, &rules).map_err(Unsupported::Fused)?, &passes(settings.opt_level))
}

/// The exits of a program.
fn exits(graph: &Graph, node: Node, meaning: Meaning, counts: bool) -> Exits {
    let exit = |code: u32| {
        let next = match graph.after(node, code) {
            Next::Program(next) => ir::Next::Program(next.index()),
            Next::End(verdict) => ir::Next::End(verdict as u32),
        };
        Exit { next, counter: (node.index() * COUNTS) as u32 + code.min(NONE) }
    };
    if let Some(actions) = meaning.translated() {
        let list = actions.list.iter().filter(|action| action.verdict != actions.other);
        let cases = list.map(|action| (action.value, exit(action.verdict as u32))).collect();
        return Exits { cases, own: None, other: exit(actions.other as u32) };
    }
    let is_own = |code: u32| !counts && exit(code).next == ir::Next::End(code);
    let own = (0..NONE).any(is_own).then_some(NONE - 1);
    let cases = (0..NONE).filter(|code| !is_own(*code)).map(|code| (code, exit(code))).collect();
    Exits { cases, own, other: exit(NONE) }
}
