//! From a program to its code.

use paceline_isa::Code;
use paceline_spec::ProgramKind;
use paceline_verifier::{FunctionFact, Verified};

use crate::emitter::{Emitter, Leave};
use crate::error::CompileError;
use crate::links::Links;
use crate::plan::{Needs, Plan};
use crate::settings::Settings;
use crate::source::Source;
use crate::x64::{Fill, Mark, Relocation};

/// Functions begin at a multiple of 2 to this power: what a processor fetches at once.
const ALIGNMENT: u8 = 4;

/// Code that runs anywhere within reach of its relocations' targets, once they are applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The instructions. Their address must be a multiple of 16.
    pub bytes: Vec<u8>,
    /// Distances to the runtime that depend on where the code is placed.
    pub relocations: Vec<Relocation>,
    /// Where packets enter, in bytes from the start. Checked code is entered there alone, as
    /// `extern "C" fn(r1, r2, &mut Run) -> r0`.
    pub entry: u32,
    /// Where tail calls enter.
    pub tail_entry: u32,
    /// The functions by rising offset, the main program first.
    pub functions: Vec<CompiledFunction>,
    /// Where the code of which slot begins ([`Mark::tag`]), by rising offset.
    pub marks: Vec<Mark>,
    /// How much it is.
    pub stats: Stats,
}

/// Where a function's code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompiledFunction {
    /// The function's first slot.
    pub slot: usize,
    /// Bytes from the start of the code.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
}

/// How much code it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions that some path reaches.
    pub instructions: usize,
    /// Instructions that no path reaches, which have no code.
    pub dropped: usize,
    /// Bytes of code.
    pub bytes: usize,
}

/// Compiles a program that was verified.
///
/// # Errors
/// [`CompileError`] names the first instruction that there is no code for.
pub fn compile(verified: &Verified, links: &Links, settings: &Settings) -> Result<Compiled, CompileError> {
    // What checks the verifier does not build on what the verifier found.
    let source = if settings.checked {
        Source::unverified(verified.program().kind, verified.code())
    } else {
        Source::verified(verified)
    };
    compile_source(&source, links, settings)
}

/// Compiles a program that nobody verified. Unless the code is [checked](Settings::checked) it does what the program does:
/// read and write anywhere. Loads from a context are not known as such then, so it is for programs that have none.
///
/// # Errors
/// [`CompileError`] names the first instruction that there is no code for.
pub fn compile_unverified(
    kind: ProgramKind,
    code: &Code,
    links: &Links,
    settings: &Settings,
) -> Result<Compiled, CompileError> {
    compile_source(&Source::unverified(kind, code), links, settings)
}

fn compile_source(source: &Source<'_>, links: &Links, settings: &Settings) -> Result<Compiled, CompileError> {
    let plans = plans(source, links, settings);
    let Some(main) = plans.first().cloned() else {
        return Err(CompileError::JumpTarget { slot: 0, target: 0 });
    };
    let mut emitter = Emitter::new(source, links, settings, main)?;
    let (entry, tail_entry) = (emitter.asm.new_label(), emitter.asm.new_label());
    emitter.asm.bind(entry);
    let main = emitter.entry_of(0);
    if settings.checked {
        emitter.prepare_checks()?;
        main.into_iter().for_each(|main| emitter.enter_checked(main));
    } else {
        let tail_calls = plans.iter().any(|(_, plan)| plan.needs.tail_calls);
        let scratch = plans.iter().any(|(_, plan)| plan.needs.scratch);
        let has_scratch = source.kind == ProgramKind::SocketFilter;
        let calls = plans.iter().any(|(_, plan)| plan.needs.calls);
        emitter.enter_run(calls, tail_calls, has_scratch && (scratch || tail_calls));
    }
    emitter.asm.bind(tail_entry);
    let mut ends = Vec::with_capacity(plans.len());
    for (index, (function, plan)) in plans.into_iter().enumerate() {
        if index != 0 {
            emitter.asm.align(ALIGNMENT, Fill::Int3);
        }
        if let Some(label) = emitter.entry_of(function.start) {
            emitter.asm.bind(label);
        }
        (emitter.function, emitter.plan) = (function, plan);
        if settings.checked {
            emitter.enter_checked_function();
        } else {
            emitter.leave = Leave::Return;
            if index == 0 {
                emitter.check_cpu();
            }
            emitter.prologue();
        }
        emitter.body()?;
        let end = emitter.asm.new_label();
        emitter.asm.bind(end);
        ends.push((function.start, end));
    }
    emitter.callbacks();
    emitter.finish_checks();
    let labels: Vec<_> =
        ends.iter().filter_map(|&(slot, end)| Some((slot, emitter.entry_of(slot)?, end))).collect();
    let instructions = source.functions.iter().map(|f| source.reached(f).count()).sum();
    let code = emitter.asm.finish()?;
    let offset = |label| code.offset(label).unwrap_or(0);
    let mut functions: Vec<CompiledFunction> = labels
        .into_iter()
        .map(|(slot, start, end)| {
            let offset_of_start = if slot == 0 { 0 } else { offset(start) };
            CompiledFunction {
                slot,
                offset: offset_of_start,
                len: offset(end).saturating_sub(offset_of_start),
            }
        })
        .collect();
    // What follows the last function belongs to it as far as names go.
    if let Some(last) = functions.last_mut() {
        last.len = (code.bytes.len() as u32).saturating_sub(last.offset);
    }
    let stats =
        Stats { instructions, dropped: source.code.iter().count() - instructions, bytes: code.bytes.len() };
    let (entry, tail_entry) = (offset(entry), offset(tail_entry));
    Ok(Compiled {
        entry,
        tail_entry,
        functions,
        stats,
        bytes: code.bytes,
        relocations: code.relocations,
        marks: code.marks,
    })
}

/// The functions with their plans.
fn plans(source: &Source<'_>, links: &Links, settings: &Settings) -> Vec<(FunctionFact, Plan)> {
    let needs: Vec<Needs> =
        source.functions.iter().map(|function| Needs::of(source, links, function)).collect();
    if settings.checked {
        return source.functions.iter().zip(needs).map(|(&f, needs)| (f, Plan::checked(needs))).collect();
    }
    let host_is_shared = needs.iter().skip(1).any(|needs| needs.host);
    let functions = source.functions.iter().zip(needs).enumerate();
    let plan = |(index, (&function, needs)): (usize, (&FunctionFact, Needs))| {
        (function, Plan::new(&function, needs, index == 0, host_is_shared, settings))
    };
    functions.map(plan).collect()
}
