//! Chains from the form: their programs as one function, in a loop over a burst.

use paceline_frame::Verdict;
use paceline_graph::{COUNTS, Graph, MAX_RUNS, Next, Node};
use paceline_ir::{ChainError, Exit, Exits, First, Limit, Module, Part, Pass, Rules, chain, optimize_chain};
use paceline_spec::Meaning;
use paceline_verifier::Verified;

use super::op::Entered;
use super::target::Target;
use super::{Code, Lack, Looping, ProgramUse, form, generator, passes};
use crate::burst::may_overrun;
use crate::error::{CompileError, FormError};
use crate::links::Links;
use crate::program::Compiled;
use crate::settings::{Architecture, CodeSource, Settings};
use crate::source::Source;
use crate::x64::Assembler;

/// The class of all values that are no verdict.
const NONE: u32 = Verdict::ALL.len() as u32;

/// A program as the function of a loop: tail calls are calls.
pub(super) fn in_loop(
    module: &Module,
    program: &ProgramUse,
    source: CodeSource,
) -> Result<Result<Module, CompileError>, ChainError> {
    let other = Exit { next: paceline_ir::Next::End(0), counter: 0 };
    let exits = Exits { cases: Vec::new(), own: Some(u32::MAX), other };
    let part = part(module, program, First { function: 1, ..First::default() }, exits);
    Ok(optimized(chain(&[part], &Rules::default())?, source))
}

/// A chain after its passes.
fn optimized(mut module: Module, source: CodeSource) -> Result<Module, CompileError> {
    match optimize_chain(&mut module, &passes(source)) {
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

/// Compiles a chain by the forms of its programs. The inner error is an operation that has no code from the form.
pub(crate) fn compile_chain(
    programs: &[(&Verified, &Links)],
    graph: &Graph,
    settings: &Settings,
) -> Result<Result<Compiled, Lack>, (Node, CompileError)> {
    match settings.architecture {
        Architecture::X86_64 => compile_for::<Assembler>(programs, graph, settings),
        Architecture::Arm64 => compile_for::<crate::arm64::Assembler>(programs, graph, settings),
    }
}

fn compile_for<A: Target>(
    programs: &[(&Verified, &Links)],
    graph: &Graph,
    settings: &Settings,
) -> Result<Result<Compiled, Lack>, (Node, CompileError)> {
    let mut made: Vec<Program<'_>> = Vec::with_capacity(programs.len());
    let mut first = First { function: 1, ..First::default() };
    // Returns of one number stay apart, as more is known at one than at another.
    let passes = passes(settings.source).with(Pass::Returns, false);
    for (node, &(verified, links)) in (0..).map(Node::new).zip(programs) {
        let module = match form(verified, links, &passes).map_err(|error| (node, error))? {
            Ok((module, _)) => module,
            Err(lack) => return Ok(Err(lack)),
        };
        let source = Source::verified(verified);
        let uses = ProgramUse::of(&module, &source);
        let Some(next) = after(&first, verified, links, &module) else {
            return Ok(Err(Lack::Fused(ChainError::TooLarge)));
        };
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
    })
}

fn all<A: Target>(
    programs: &[Program<'_>],
    graph: &Graph,
    settings: &Settings,
) -> Result<Result<Compiled, Lack>, CompileError> {
    let Some(entry) = programs.first() else {
        return Err(CompileError::Internal("a chain has no program"));
    };
    let kind = entry.verified.program().kind;
    if programs.iter().any(|program| program.verified.program().kind != kind) {
        return Ok(Err(Lack::Kinds));
    }
    let links = all_links(programs, entry.links);
    let [plain, counted] = match [false, true].map(|counts| fused(programs, graph, counts, settings)) {
        [Ok(plain), Ok(counted)] => [plain?, counted?],
        [Err(cause), _] | [_, Err(cause)] => return Ok(Err(Lack::Fused(cause))),
    };
    let parts =
        programs.iter().map(|program| program.uses.entered(program.first.slot, program.links)).collect();
    let generator = generator::<A>(&plain, &links, settings, kind, parts)?;
    let code = Code {
        generator,
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
    code.chain(&counted, &looping, cpus, &sources, settings.source)
}

/// Number of CPUs for which all of a program's per-CPU arrays have values; `None` without such arrays.
fn cpus(source: &Source<'_>, links: &Links) -> Option<u32> {
    source.maps().filter_map(|index| links.maps.get(index)).filter_map(|map| map.cpus).min()
}

/// The links of all programs: those of the first one with the maps and kernel functions of all.
fn all_links(programs: &[Program<'_>], entry: &Links) -> Links {
    Links {
        maps: programs.iter().flat_map(|program| program.links.maps.iter().copied()).collect(),
        kfuncs: programs.iter().flat_map(|program| program.links.kfuncs.iter().copied()).collect(),
        ..entry.clone()
    }
}

/// The programs as one module. The outer error is that they cannot be one.
fn fused(
    programs: &[Program<'_>],
    graph: &Graph,
    counts: bool,
    settings: &Settings,
) -> Result<Result<Module, CompileError>, ChainError> {
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
    let rules = Rules { counts, limit: may_overrun(graph).then_some(limit) };
    Ok(optimized(chain(&parts, &rules)?, settings.source))
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
