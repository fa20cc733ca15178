//! Native code: compiled by [`paceline_jit`], placed in executable memory, entered like any engine's.

mod checked;
mod code;
mod links;

use std::sync::Arc;

use paceline_exec::{Arena, CodeBlock, CodeMap, Function, Relocation, SourceLine};
use paceline_graph::{Graph, Node};
use paceline_jit::{CompileError, Compiled, Features, Settings};
use paceline_maps::Map;
use paceline_spec::ProgramSpec;
use paceline_verifier::Verified;

use crate::engine::Engine;
use crate::form::{Form, check};
use crate::image::{BurstEntry, Entry, Image, Native, Own, least_cpus, packet_by_packet};
use crate::interpreter;
use crate::later::{CallbackCode, CallbackForm};
use crate::load::LoadError;
use crate::program::{DEFAULT_BUDGET, Program};

use checked::Checked;
#[cfg(feature = "testing")]
pub(crate) use checked::run_memory;
pub use code::NativeCode;

/// What is best on this machine.
pub(crate) fn settings() -> Settings {
    Settings { features: Features::detect(), ..Settings::default() }
}

/// Makes native code of a verified program.
pub(crate) fn load(
    verified: &Verified,
    maps: Vec<Arc<Map>>,
    settings: &Settings,
) -> Result<Program, LoadError> {
    let spec = Arc::new(verified.program().clone());
    let cpus = least_cpus(verified.code(), &maps);
    install(spec, maps, settings, Form::Proven(verified), cpus, |_, links| {
        paceline_jit::compile(verified, links, settings)
    })
}

/// Makes native code of a program that nobody verified.
///
/// # Safety
/// Code that is not checked does what the program does.
#[cfg(feature = "testing")]
pub(crate) unsafe fn load_unverified(
    spec: Arc<ProgramSpec>,
    maps: Vec<Arc<Map>>,
    engine: Engine,
    form: Form<'_>,
) -> Result<Program, LoadError> {
    let kind = spec.kind;
    let settings = Settings { checked: engine == Engine::CheckedJit, ..settings() };
    install(spec, maps, &settings, form, usize::MAX, |code, links| {
        paceline_jit::compile_unverified(kind, code, links, &settings)
    })
}

fn install(
    spec: Arc<ProgramSpec>,
    maps: Vec<Arc<Map>>,
    settings: &Settings,
    form: Form<'_>,
    cpus: usize,
    compile: impl FnOnce(&paceline_isa::Code, &paceline_jit::Links) -> Result<Compiled, CompileError>,
) -> Result<Program, LoadError> {
    let code = check(&spec, &maps, form)?;
    let maps: Arc<[Arc<Map>]> = maps.into();
    let arena = Arena::global().map_err(|error| LoadError::Memory(error.to_string()))?;
    let links = links::links(&spec, &maps, arena);
    let compiled = compile(&code, &links)?;
    let block = place(arena, &compiled, &[&spec])?;
    let block = Arc::new(block);
    let address = |offset: u32| block.address() + offset as usize;
    let (entry, tail_entry) = (address(compiled.entry), address(compiled.tail_entry));
    let (image_entry, image_tail_entry): (Entry, Entry) = if settings.checked {
        (interpreter::entry::<Checked>, interpreter::tail_entry::<Checked>)
    } else {
        // SAFETY: the code there is a program's, which is called like this.
        unsafe {
            (std::mem::transmute::<usize, Entry>(entry), std::mem::transmute::<usize, Entry>(tail_entry))
        }
    };
    let burst_entry = match compiled.burst_entry.map(address) {
        _ if settings.checked => interpreter::burst_entry::<Checked>,
        // SAFETY: the code there is a program's loop, which is called like this.
        Some(entry) => unsafe { std::mem::transmute::<usize, BurstEntry>(entry) },
        None => packet_by_packet,
    };
    // Checked code lets its machine call functions.
    let home = if settings.checked {
        None
    } else {
        CallbackCode::new([(&code, &*maps)], || CallbackForm::Native(block.clone()))
    };
    let image = Image {
        entry: image_entry,
        tail_entry: image_tail_entry,
        burst_entry,
        id: Image::next_id(),
        engine: if settings.checked { Engine::CheckedJit } else { Engine::Jit },
        own: Own::of(spec.kind),
        spec,
        code,
        operations: None,
        cpus,
        maps,
        budget: DEFAULT_BUDGET,
        _home: home,
        native: Some(Native { block, entry }),
    };
    Ok(Program::with_image(image)?)
}

/// Makes native code of the programs of a chain, in one function; gives where bursts enter it, and where those do for
/// which verdicts are counted. An error names the program.
pub(crate) fn chain(
    parts: &[(&Verified, Arc<[Arc<Map>]>)],
    graph: &Graph,
) -> Result<(CodeBlock, [u32; 2]), (Node, LoadError)> {
    let arena = Arena::global().map_err(|error| (Node::ENTRY, LoadError::Memory(error.to_string())))?;
    let links: Vec<_> =
        parts.iter().map(|(verified, maps)| links::links(verified.program(), maps, arena)).collect();
    let programs: Vec<_> =
        parts.iter().zip(&links).map(|((verified, _), links)| (*verified, links)).collect();
    let compiled = paceline_jit::compile_chain(&programs, graph, &settings())
        .map_err(|(node, error)| (node, LoadError::from(error)))?;
    let specs: Vec<&ProgramSpec> = parts.iter().map(|(verified, _)| verified.program()).collect();
    let block = place(arena, &compiled, &specs).map_err(|error| (Node::ENTRY, error))?;
    let burst = compiled.burst_entry.unwrap_or(compiled.entry);
    Ok((block, [burst, compiled.counted_entry.unwrap_or(burst)]))
}

/// Puts code into executable memory, with the programs that it is made of by node.
fn place(arena: &Arena, compiled: &Compiled, specs: &[&ProgramSpec]) -> Result<CodeBlock, LoadError> {
    let relocations: Vec<Relocation> = compiled
        .relocations
        .iter()
        .map(|relocation| Relocation {
            offset: relocation.offset as usize,
            target: relocation.target as usize,
        })
        .collect();
    let code = paceline_exec::Code::new(&compiled.bytes)
        .relocations(&relocations)
        .functions(functions(compiled, specs));
    arena.install(&code).map_err(|error| LoadError::Memory(error.to_string()))
}

/// What debuggers and profilers call the code.
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
    let function = |function: &paceline_jit::CompiledFunction| {
        // They are by rising offset.
        let first_at = |offset: u32| compiled.marks.partition_point(|mark| mark.offset < offset);
        let (start, end) = (function.offset, function.offset + function.len);
        let marks = compiled.marks.get(first_at(start)..first_at(end)).unwrap_or_default();
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
