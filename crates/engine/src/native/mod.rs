//! Native code: compiled by [`paceline_compiler::native`], placed in executable memory, entered like any engine's.
//!
//! The main program is compiled as an entry for a single packet, which a burst of one uses too, and as a loop over a burst; a chain
//! has a loop only, and one that counts verdicts when counts are asked for. A tail call loads the target's image from the array,
//! undoes the prologue and jumps behind that of the target. Programs with tail calls, or whose maps can free elements, run pinned:
//! a replaced target, and each element that a look-up returned, stays valid until the run ends. What does not depend on the other
//! programs of a chain is computed once (`ChainPart`). A program without code runs on the threaded interpreter, and a chain with
//! such a program calls its programs one by one.

mod code;
#[cfg(feature = "testing")]
mod compile_for;
mod links;

use std::ops::Range;
use std::sync::Arc;

use crate::exec::{Arena, CodeBlock, CodeMap, Function, Relocation, SourceLine};
use paceline_compiler::internal::Internal;
use paceline_compiler::native::{Compiled, Features, Part};
use paceline_maps::Map;
use paceline_runtime::callback::{CallbackCode, CompiledFunctions};
use paceline_runtime::helpers::HelperFn;
use paceline_runtime::host::Host;
use paceline_runtime::interpreter::image::{
    BurstEntry, Entries, Entry, Image, Native, packet_by_packet, sets_callbacks,
};
use paceline_runtime::interpreter::staged::Ahead;
use paceline_spec::ProgramSpec;
use paceline_spec::graph::Graph;
use paceline_verifier::Verified;

use crate::engine::Engine;
use crate::form::{Form, check};
use crate::load_error::EngineError;
use crate::look_ahead::{LARGE, LookAhead};
use crate::program::Program;
use crate::slice::Slice;

pub use code::NativeCode;
#[cfg(feature = "testing")]
pub use compile_for::compile_for;
pub(crate) use paceline_compiler::native::{CompileError, Settings};

/// The best settings for this machine.
pub(crate) fn settings() -> Settings {
    Settings { features: Features::detect(), ..Settings::default() }
}

/// Takes from settings what this machine lacks, whose settings are given.
pub(crate) fn restrict(settings: &mut Settings, machine: &Settings) {
    settings.architecture = machine.architecture;
    settings.features = settings.features.and(machine.features);
}

/// Compiles a verified program.
pub(crate) fn load(
    verified: &Verified,
    maps: Vec<Arc<Map>>,
    settings: &Settings,
) -> Result<Program, EngineError> {
    let spec = Arc::new(verified.program().clone());
    let image = install(spec, maps, Form::Proven(verified), |_, links| {
        paceline_compiler::native::compile(verified, links, settings)
    })?;
    Ok(Program::with_image(image, Engine::Jit)?)
}

/// Compiles an unverified program.
///
/// # Safety
/// The program must be safe to run without checks.
#[cfg(feature = "testing")]
pub(crate) unsafe fn load_unverified(
    spec: Arc<ProgramSpec>,
    maps: Vec<Arc<Map>>,
    form: Form<'_>,
) -> Result<Program, EngineError> {
    let program_spec = spec.clone();
    let settings = settings();
    let image = install(spec, maps, form, |code, links| {
        paceline_compiler::native::compile_unverified(&program_spec, code, links, &settings)
    })?;
    Ok(Program::with_image(image, Engine::Jit)?)
}

fn install(
    spec: Arc<ProgramSpec>,
    maps: Vec<Arc<Map>>,
    form: Form<'_>,
    compile: impl FnOnce(&paceline_isa::Code, &paceline_compiler::native::Links) -> Result<Compiled, CompileError>,
) -> Result<Image, EngineError> {
    let code = check(&spec, &maps, form)?;
    let maps: Arc<[Arc<Map>]> = maps.into();
    let arena = arena()?;
    let links = links::links(&spec, &maps, arena)?;
    let compiled = compile(&code, &links)?;
    let block = place(arena, &compiled, &[&spec])?;
    let block = Arc::new(block);
    let address = |offset: u32| block.address() + offset as usize;
    let (entry, tail_entry) = (address(compiled.entry), address(compiled.tail_entry));
    // SAFETY: the code there is a program's, and its loop, which are called like this.
    let entries = unsafe {
        Entries {
            packet: std::mem::transmute::<usize, Entry>(entry),
            tail: std::mem::transmute::<usize, Entry>(tail_entry),
            burst: compiled.burst_entry.map_or(packet_by_packet as BurstEntry, |offset| {
                std::mem::transmute::<usize, BurstEntry>(address(offset))
            }),
        }
    };
    let sets_callbacks = sets_callbacks(&code);
    let image = Image::new(spec, code, maps, entries);
    let callbacks = sets_callbacks.then(|| {
        CallbackCode::new(NativeFunctions(block.clone()), image.per_cpu.clone(), image.maps.to_vec())
    });
    Ok(Image { callbacks, native: Some(Native { block, entry }), ..image })
}

/// The stages before a program of native code, by its slice.
pub(crate) fn ahead(slice: Slice, maps: &[Arc<Map>], look_ahead: LookAhead) -> Result<Ahead, EngineError> {
    let Slice { verified, maps: used } = slice;
    let (spec, settings) = (Arc::new(verified.program().clone()), settings());
    let image = install(spec, maps.to_vec(), Form::Proven(&verified), |_, links| {
        paceline_compiler::native::compile(&verified, &links::ahead(links, maps), &settings)
    })?;
    Ok(Ahead::new(image, used, look_ahead == LookAhead::Always, LARGE))
}

/// Functions of native code, which take what helpers take.
pub(crate) struct NativeFunctions(pub(crate) Arc<CodeBlock>);

impl CompiledFunctions for NativeFunctions {
    fn range(&self) -> Range<u64> {
        let start = self.0.address() as u64;
        start..start + self.0.len() as u64
    }

    unsafe fn call(&self, address: u64, arguments: [u64; 5], _: &[Arc<Map>], host: &mut Host) {
        let [r1, r2, r3, r4, r5] = arguments;
        // SAFETY: the function and its arguments are guaranteed by the caller.
        unsafe { std::mem::transmute::<usize, HelperFn>(address as usize)(r1, r2, r3, r4, r5, host) };
    }
}

/// A program for chains. Its maps must keep their addresses as long as code exists that it is a part of.
pub(crate) fn part(
    verified: &Verified,
    maps: &Arc<[Arc<Map>]>,
    settings: &Settings,
) -> Result<Part, EngineError> {
    let links = links::links(verified.program(), maps, arena()?)?;
    Ok(Part::new(verified, links, settings)?)
}

/// Makes native code of the programs of a chain, in one function; gives where bursts enter it. With `counts` it counts verdicts.
pub(crate) fn chain(
    parts: &[(&Part, &ProgramSpec)],
    graph: &Graph,
    counts: bool,
    settings: &Settings,
) -> Result<(CodeBlock, u32), EngineError> {
    let (parts, specs): (Vec<_>, Vec<_>) = parts.iter().copied().unzip();
    let compiled = paceline_compiler::native::compile_chain(&parts, graph, counts, settings)?;
    let block = place(arena()?, &compiled, &specs)?;
    let entry = compiled.burst_entry.ok_or(CompileError::from(Internal("a chain without a loop")))?;
    Ok((block, entry))
}

/// The memory of native code.
fn arena() -> Result<&'static Arena, EngineError> {
    Arena::global().map_err(|error| EngineError::Memory(error.to_string()))
}

/// Puts code into executable memory, with the programs that it is made of by node.
fn place(arena: &Arena, compiled: &Compiled, specs: &[&ProgramSpec]) -> Result<CodeBlock, EngineError> {
    let relocations: Vec<Relocation> = compiled
        .relocations
        .iter()
        .map(|relocation| Relocation {
            offset: relocation.offset as usize,
            target: relocation.target as usize,
        })
        .collect();
    let code = crate::exec::Code::new(&compiled.bytes)
        .relocations(&relocations)
        .functions(functions(compiled, specs));
    arena.install(&code).map_err(|error| EngineError::Memory(error.to_string()))
}

/// Names of the code for debuggers and profilers.
fn functions(compiled: &Compiled, specs: &[&ProgramSpec]) -> Vec<Function> {
    let lines_of = |spec: &ProgramSpec| -> Arc<[SourceLine]> {
        let line = |line: &paceline_spec::LineInfo| SourceLine {
            slot: line.slot as u32,
            file: line.file.clone(),
            line: line.line,
        };
        spec.lines.iter().map(line).collect()
    };
    let lines: Vec<Arc<[SourceLine]>> = specs.iter().map(|spec| lines_of(spec)).collect();
    let function = |function: &paceline_compiler::native::CompiledFunction| {
        // They are by rising offset.
        let first_at = |offset: u32| compiled.marks.partition_point(|mark| mark.offset < offset);
        let (start, end) = (function.offset, function.offset + function.len);
        let marks = &compiled.marks[first_at(start)..first_at(end)];
        let spec = specs.get(function.node.index())?;
        let name = match spec.functions.iter().find(|info| info.start == function.slot) {
            Some(info) => info.name.clone(),
            None => format!("{}+{}", spec.name, function.slot),
        };
        Some(Function {
            name: if function.burst { format!("{name}.burst") } else { name },
            start: function.offset,
            len: function.len,
            map: CodeMap::new(marks.iter().map(|mark| (mark.offset, mark.tag)).collect()),
            lines: lines.get(function.node.index())?.clone(),
        })
    };
    compiled.functions.iter().filter_map(function).collect()
}
