//! Chains from the form: their programs as one function, in a loop over a burst.

use paceline_codegen::Room;
use paceline_frame::Verdict;
use paceline_graph::{COUNTS, Graph, MAX_RUNS, Next, Node};
use paceline_ir::{
    CONTEXT_BYTES, ChainError, Exit, Exits, First, Limit, Module, Part, Pass, Passes, Rules, Source, chain,
    optimize_chain,
};
use paceline_spec::Meaning;
use paceline_spec::context::Layout;
use paceline_verifier::Verified;

use super::op::Entered;
use super::target::Target;
use super::{Code, Lack, Looping, ProgramUse, cpus, form, generator, passes};
use crate::error::{CompileError, FormError};
use crate::links::Links;
use crate::program::Compiled;
use crate::settings::{Architecture, OptLevel, Settings};
use crate::x64::Assembler;

/// The class of all values that are no verdict.
const NONE: u32 = Verdict::ALL.len() as u32;

/// A program as the function of a loop: tail calls are calls.
pub(super) fn in_loop(
    module: &Module,
    program: &ProgramUse,
    level: OptLevel,
) -> Result<Module, CompileError> {
    let other = Exit { next: paceline_ir::Next::End(0), counter: 0 };
    let exits = Exits { cases: Vec::new(), own: Some(u32::MAX), other };
    let part = part(module, program, First { function: 1, ..First::default() }, exits);
    // The program's passes have run, and it is the only one.
    let passes = passes(level).with(Pass::Values, false).with(Pass::Bounds, false).with(Pass::Fold, false);
    optimized(chain(&[part], &Rules::default()).map_err(Lack::Fused)?, &passes)
}

/// A chain after its passes.
fn optimized(mut module: Module, passes: &Passes) -> Result<Module, CompileError> {
    match optimize_chain(&mut module, passes) {
        Ok(()) => Ok(module),
        Err(cause) => Err(FormError::new(cause, &module).into()),
    }
}

fn part<'a>(module: &'a Module, program: &ProgramUse, first: First, exits: Exits) -> Part<'a> {
    let area = program.area.is_some();
    let begins = area || program.tail_calls || program.rounds;
    Part { module, first, exits, begins, area, finishes: program.defers }
}

/// A program of a chain.
struct Program<'a> {
    verified: &'a Verified,
    links: &'a Links,
    source: Source<'a>,
    module: Module,
    uses: ProgramUse,
    first: First,
}

/// Compiles a chain. An error names a program, that of a whole chain its first one.
pub(crate) fn compile_chain(
    programs: &[(&Verified, &Links)],
    graph: &Graph,
    settings: &Settings,
) -> Result<Compiled, (Node, CompileError)> {
    match settings.architecture {
        Architecture::X86_64 => compile_for::<Assembler>(programs, graph, settings),
        Architecture::Arm64 => compile_for::<crate::arm64::Assembler>(programs, graph, settings),
    }
}

fn compile_for<A: Target>(
    programs: &[(&Verified, &Links)],
    graph: &Graph,
    settings: &Settings,
) -> Result<Compiled, (Node, CompileError)> {
    let mut made: Vec<Program<'_>> = Vec::with_capacity(programs.len());
    let mut first = First { function: 1, ..First::default() };
    // The structures of context so far.
    let mut contexts: Vec<&Layout> = Vec::new();
    // Returns of one number stay apart, as more is known at one than at another.
    let passes = passes(settings.opt_level).with(Pass::Returns, false);
    for (node, &(verified, links)) in (0..).map(Node::new).zip(programs) {
        let source = Source::verified(verified);
        let context = source.program().kind.context();
        let known = contexts.iter().position(|known| *known == context).unwrap_or_else(|| {
            contexts.push(context);
            contexts.len() - 1
        });
        first.context = CONTEXT_BYTES * known as i32;
        let (module, _) = form(&source, links, &passes).map_err(|error| (node, error))?;
        let uses = ProgramUse::of(&module, &source);
        let next = after(&first, verified, links, &module);
        let next = next.ok_or((Node::ENTRY, Lack::Fused(ChainError::TooLarge).into()))?;
        made.push(Program {
            verified,
            links,
            source,
            module,
            uses,
            first: std::mem::replace(&mut first, next),
        });
    }
    all::<A>(&made, graph, settings).map_err(|error| (Node::ENTRY, error))
}

/// The numbers of the program behind one; `None` if there are too many.
fn after(first: &First, verified: &Verified, links: &Links, module: &Module) -> Option<First> {
    Some(First {
        slot: first.slot.checked_add(u32::try_from(verified.code().len()).ok()?)?,
        map: first.map.checked_add(u32::try_from(links.maps.len()).ok()?)?,
        kfunc: first.kfunc.checked_add(i32::try_from(links.kfuncs.len()).ok()?)?,
        function: first.function + module.functions.len().checked_sub(1)?,
        context: 0,
    })
}

fn all<A: Target>(
    programs: &[Program<'_>],
    graph: &Graph,
    settings: &Settings,
) -> Result<Compiled, CompileError> {
    let Some(entry) = programs.first() else {
        return Err(CompileError::Internal("a chain has no program"));
    };
    let links = all_links(programs, entry.links);
    let fused = |counts| fused(programs, graph, counts, settings);
    let (plain, counted) = (fused(false)?, fused(true)?);
    let entered = |program: &Program<'_>| {
        program.uses.entered(program.first.slot, program.verified.program().kind, program.links)
    };
    let generator = generator::<A>(&plain, &links, settings, programs.iter().map(entered).collect())?;
    let code = Code {
        generator,
        room: Room::default(),
        pieces: Vec::new(),
        checked: settings.verify_allocation,
        prefetch: settings.prefetch,
    };
    let any = |has: fn(&ProgramUse) -> bool| programs.iter().any(|program| has(&program.uses));
    let looping = Looping {
        entered: Entered { frame: any(|uses| uses.calls), tail_calls: false, area: None },
        defers: false,
        meaning: Meaning::Verdict,
        redirects: any(|uses| uses.redirects),
    };
    let cpus = programs.iter().filter_map(|program| cpus(&program.source, program.links)).min();
    let sources: Vec<&Source<'_>> = programs.iter().map(|program| &program.source).collect();
    code.chain(&counted, &looping, cpus, &sources)
}

/// The links of all programs: those of the first one with the maps and kernel functions of all.
fn all_links(programs: &[Program<'_>], entry: &Links) -> Links {
    Links {
        maps: programs.iter().flat_map(|program| program.links.maps.iter().copied()).collect(),
        kfuncs: programs.iter().flat_map(|program| program.links.kfuncs.iter().copied()).collect(),
        ..entry.clone()
    }
}

/// The programs as one module.
fn fused(
    programs: &[Program<'_>],
    graph: &Graph,
    counts: bool,
    settings: &Settings,
) -> Result<Module, CompileError> {
    let parts: Vec<Part<'_>> = (0..)
        .map(Node::new)
        .zip(programs)
        .map(|(node, program)| {
            let exits = exits(graph, node, program.verified.program().kind.rules().meaning, counts);
            part(&program.module, &program.uses, program.first, exits)
        })
        .collect();
    let limit =
        Limit { runs: MAX_RUNS, verdict: Verdict::Aborted as u32, counter: (programs.len() * COUNTS) as u32 };
    let rules = Rules { counts, limit: graph.may_exceed_runs().then_some(limit) };
    optimized(chain(&parts, &rules).map_err(Lack::Fused)?, &passes(settings.opt_level))
}

/// The exits of a program.
fn exits(graph: &Graph, node: Node, meaning: Meaning, counts: bool) -> Exits {
    let exit = |code: u32| {
        let next = match graph.after(node, code) {
            Next::Program(next) => paceline_ir::Next::Program(next.index()),
            Next::End(verdict) => paceline_ir::Next::End(verdict as u32),
        };
        Exit { next, counter: (node.index() * COUNTS) as u32 + code.min(NONE) }
    };
    if let Some(actions) = meaning.translated() {
        let list = actions.list.iter().filter(|action| action.verdict != actions.other);
        let cases = list.map(|action| (action.value, exit(action.verdict as u32))).collect();
        return Exits { cases, own: None, other: exit(actions.other as u32) };
    }
    let is_own = |code: u32| !counts && exit(code).next == paceline_ir::Next::End(code);
    let own = (0..NONE).any(is_own).then_some(NONE - 1);
    let cases = (0..NONE).filter(|code| !is_own(*code)).map(|code| (code, exit(code))).collect();
    Exits { cases, own, other: exit(NONE) }
}
