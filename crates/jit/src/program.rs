//! Compilation of programs and chains.

use paceline_graph::{Graph, Node};
use paceline_isa::Code;
use paceline_spec::ProgramKind;
use paceline_verifier::Verified;

use crate::bounds_elim;
use crate::chain_program::ChainProgram;
use crate::emitter::{Emitter, Leave};
use crate::entry;
use crate::error::CompileError;
use crate::links::Links;
use crate::plan::Needs;
use crate::select::{self, Lack};
use crate::settings::{Architecture, CodeSource, Settings};
use crate::source::Source;
use crate::x64::{Fill, Label, Mark, Relocation};

/// An error of a program of a chain.
struct InChain((Node, CompileError));

impl From<CompileError> for InChain {
    /// What a whole chain lacks is said of its first program.
    fn from(error: CompileError) -> Self {
        Self((Node::ENTRY, error))
    }
}

/// Alignment of functions as a power of 2: 16 bytes, the CPU's fetch granularity.
pub(crate) const ALIGNMENT: u8 = 4;

/// Position-independent code, once its relocations are applied: it must be within reach of their targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The instructions. Their address must be a multiple of 16.
    pub bytes: Vec<u8>,
    /// Relative references to the runtime, which depend on the code's address.
    pub relocations: Vec<Relocation>,
    /// Offset in bytes of the entry for packets, in a chain of the entry for bursts. Checked code has this entry only, as `extern
    /// "C" fn(r1, r2, &mut Run) -> r0`.
    pub entry: u32,
    /// Offset of the entry for tail calls; the same as `entry` in a chain.
    pub tail_entry: u32,
    /// Offset of the entry for bursts of one or more frames: `extern "C" fn(first frame, end, x3, x4, x5, &mut Host) -> frame
    /// reached`. The verdict is stored to each frame. `None` in checked and unverified code.
    pub burst_entry: Option<u32>,
    /// The same for a chain that counts the results of its programs.
    pub counted_entry: Option<u32>,
    /// Functions by increasing offset, the main function first.
    pub functions: Vec<CompiledFunction>,
    /// Offsets of the code of slots ([`Mark::tag`]), increasing.
    pub marks: Vec<Mark>,
    /// Code size.
    pub stats: Stats,
    /// What the code was generated from.
    pub source: CodeSource,
    /// Why it was not generated from the form, if that was asked for.
    pub lack: Option<Lack>,
}

/// Location of a function's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompiledFunction {
    /// The program, by its node in the graph.
    pub node: Node,
    /// The function's first slot.
    pub slot: usize,
    /// Whether it is a main program inlined into a loop over a burst.
    pub burst: bool,
    /// Offset from the start of the code in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub len: u32,
}

/// Code size statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Reachable instructions.
    pub instructions: usize,
    /// Unreachable instructions, for which no code is emitted.
    pub dropped: usize,
    /// Code size in bytes.
    pub bytes: usize,
}

/// Compiles a verified program.
///
/// # Errors
/// [`CompileError`] for the first instruction that cannot be compiled.
pub fn compile(verified: &Verified, links: &Links, settings: &Settings) -> Result<Compiled, CompileError> {
    if settings.architecture == Architecture::Arm64 {
        return from_form_only(settings, |settings| select::compile(verified, links, settings));
    }
    if settings.checked {
        // Checked code exists to test the verifier, so it must not rely on its facts.
        let compiled = compile_unverified(verified.program().kind, verified.code(), links, settings)?;
        return Ok(Compiled { lack: Lack::Checks.where_asked(settings.source), ..compiled });
    }
    let lack = match settings.source {
        CodeSource::Instructions => None,
        CodeSource::RawForm | CodeSource::Form => match select::compile(verified, links, settings)? {
            Ok(compiled) => return Ok(compiled),
            Err(lack) => Some(lack),
        },
    };
    let compiled = compile_program(&ChainProgram::new(Source::verified(verified), links), settings, true)?;
    Ok(Compiled { lack, ..compiled })
}

/// Compiles for a machine that has code from the form only, for which the instructions of a program stand.
fn from_form_only<E: From<CompileError>>(
    settings: &Settings,
    compile: impl FnOnce(&Settings) -> Result<Result<Compiled, Lack>, E>,
) -> Result<Compiled, E> {
    let source = match settings.source {
        CodeSource::Instructions | CodeSource::Form => CodeSource::Form,
        CodeSource::RawForm => CodeSource::RawForm,
    };
    let lacks = |lack| CompileError::Lack(lack).into();
    if settings.checked {
        return Err(lacks(Lack::Checks));
    }
    compile(&Settings { source, ..*settings })?.map_err(lacks)
}

/// Compiles an unverified program. Unless the code is [checked](Settings::checked) nothing restricts its memory accesses. Loads
/// from a context are not recognized without the verifier's facts, so unchecked code suits programs without a context only.
///
/// # Errors
/// [`CompileError`] for the first instruction that cannot be compiled.
pub fn compile_unverified(
    kind: ProgramKind,
    code: &Code,
    links: &Links,
    settings: &Settings,
) -> Result<Compiled, CompileError> {
    if settings.architecture == Architecture::Arm64 {
        return Err(CompileError::Lack(Lack::Unverified));
    }
    compile_program(&ChainProgram::new(Source::unverified(kind, code), links), settings, false)
}

fn compile_program(
    part: &ChainProgram<'_>,
    settings: &Settings,
    bursts: bool,
) -> Result<Compiled, CompileError> {
    let mut emitter = Emitter::new(std::slice::from_ref(part), settings)?;
    let (entry, tail_entry) = (emitter.asm.new_label(), emitter.asm.new_label());
    emitter.asm.bind(entry);
    let main = emitter.entry_of(0);
    if settings.checked {
        emitter.prepare_checks()?;
        main.into_iter().for_each(|main| emitter.enter_checked(main));
    } else {
        let needs = |need: fn(&Needs) -> bool| part.any(need);
        let (calls, tail_calls) = (needs(|n| n.calls), needs(|n| n.tail_calls));
        entry::enter_run(&mut emitter.asm, emitter.links, calls, tail_calls, part.area());
    }
    emitter.asm.bind(tail_entry);
    let mut pieces = Pieces::default();
    emitter.function(0, entry, &mut pieces)?;
    let burst_entry = bursts.then(|| emitter.burst(None, false, |piece| pieces.add(piece))).transpose()?;
    emitter.functions(&mut pieces)?;
    emitter.callbacks();
    if settings.checked {
        emitter.finish_checks();
    }
    finish(emitter, &pieces, Entries { entry, tail_entry, burst: burst_entry, counted: None })
}

/// Compiles a chain of verified programs, each with its links: the graph's nodes, in order. The code has entries for bursts only,
/// one of which counts the results of each program.
///
/// # Errors
/// Node of the program that cannot be compiled, and the reason.
///
/// # Panics
/// If the number of programs differs from the number of the graph's nodes.
pub fn compile_chain(
    programs: &[(&Verified, &Links)],
    graph: &Graph,
    settings: &Settings,
) -> Result<Compiled, (Node, CompileError)> {
    assert_eq!(programs.len(), graph.nodes().len(), "each node is a program");
    if settings.architecture == Architecture::Arm64 {
        return from_form_only(settings, |settings| {
            select::compile_chain(programs, graph, settings).map_err(InChain)
        })
        .map_err(|InChain(error)| error);
    }
    let lack = match settings.source {
        CodeSource::Instructions => None,
        CodeSource::RawForm | CodeSource::Form => match select::compile_chain(programs, graph, settings)? {
            Ok(compiled) => return Ok(compiled),
            Err(lack) => Some(lack),
        },
    };
    let mut sources: Vec<Source<'_>> =
        programs.iter().map(|(verified, _)| Source::verified(verified)).collect();
    bounds_elim::narrow(&mut sources, graph);
    let links = programs.iter().map(|(_, links)| *links);
    let parts: Vec<ChainProgram<'_>> =
        sources.into_iter().zip(links).map(|(source, links)| ChainProgram::new(source, links)).collect();
    let mut emitter = Emitter::new(&parts, settings).map_err(|error| (Node::ENTRY, error))?;
    let mut pieces = Pieces::default();
    let entries = emitter.chain(graph, &mut pieces).map_err(|error| (emitter.node, error))?;
    let compiled = finish(emitter, &pieces, entries).map_err(|error| (Node::ENTRY, error))?;
    Ok(Compiled { lack, ..compiled })
}

impl<'a> Emitter<'a> {
    /// Emits all code of a chain.
    fn chain(&mut self, graph: &'a Graph, pieces: &mut Pieces) -> Result<Entries, CompileError> {
        let burst = self.burst(Some(graph), false, |piece| pieces.add(piece))?;
        let counted = self.burst(Some(graph), true, |piece| pieces.add(piece))?;
        for node in (0..self.parts.len()).map(Node::new) {
            self.enter_node(node);
            self.functions(pieces)?;
        }
        self.callbacks();
        Ok(Entries { entry: burst, tail_entry: burst, burst: Some(burst), counted: Some(counted) })
    }

    /// Emits a function with a call frame of its own; its code begins at `start`.
    fn function(&mut self, index: usize, start: Label, pieces: &mut Pieces) -> Result<(), CompileError> {
        let plan = self.parts.get(self.node.index()).and_then(|part| part.plan(index, self.settings));
        let (function, plan) = plan.ok_or(CompileError::Internal("a function has no plan"))?;
        let label = self.entry_of(function.start);
        self.asm.bind(label.ok_or(CompileError::Internal("a function has no entry"))?);
        (self.function, self.plan) = (function, plan);
        let mut lacks_cpu = None;
        if self.settings.checked {
            self.enter_checked_function();
        } else {
            self.leave = Leave::Return;
            if index == 0 {
                lacks_cpu = self.check_cpu();
            }
            self.prologue();
        }
        self.body()?;
        lacks_cpu.into_iter().for_each(|label| entry::end_without_cpu(&mut self.asm, self.links, label));
        let end = self.asm.new_label();
        self.asm.bind(end);
        pieces.add(Piece { node: self.node, slot: function.start, burst: false, start, end });
        Ok(())
    }

    /// Emits the subprograms.
    fn functions(&mut self, pieces: &mut Pieces) -> Result<(), CompileError> {
        let count = self.parts.get(self.node.index()).map_or(0, |part| part.functions.len());
        for index in 1..count {
            self.asm.align(ALIGNMENT, Fill::Int3);
            let start = self.asm.new_label();
            self.asm.bind(start);
            self.function(index, start, pieces)?;
        }
        Ok(())
    }
}

/// The code range of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) node: Node,
    pub(crate) slot: usize,
    pub(crate) burst: bool,
    pub(crate) start: Label,
    pub(crate) end: Label,
}

/// Emitted code ranges, in order.
#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn add(&mut self, piece: Piece) {
        self.0.push(piece);
    }
}

/// Entry labels of the code.
struct Entries {
    entry: Label,
    tail_entry: Label,
    burst: Option<Label>,
    counted: Option<Label>,
}

fn finish(emitter: Emitter<'_>, pieces: &Pieces, entries: Entries) -> Result<Compiled, CompileError> {
    let reached = |part: &ChainProgram<'_>| -> usize {
        part.source.functions.iter().map(|function| part.source.reached(function).count()).sum()
    };
    let instructions = emitter.parts.iter().map(reached).sum();
    let all: usize = emitter.parts.iter().map(|part| part.source.code.iter().count()).sum();
    emitter.check_internal()?;
    let code = emitter.asm.finish()?;
    let offset = |label| code.offset(label).ok_or(CompileError::Internal("a label is not bound"));
    let function = |piece: &Piece| {
        let start = offset(piece.start)?;
        let len = offset(piece.end)?.saturating_sub(start);
        Ok(CompiledFunction { node: piece.node, slot: piece.slot, burst: piece.burst, offset: start, len })
    };
    let mut functions =
        pieces.0.iter().map(function).collect::<Result<Vec<CompiledFunction>, CompileError>>()?;
    // For symbols, code after the last function counts as part of it.
    if let Some(last) = functions.last_mut() {
        last.len = (code.bytes.len() as u32).saturating_sub(last.offset);
    }
    Ok(Compiled {
        entry: offset(entries.entry)?,
        tail_entry: offset(entries.tail_entry)?,
        burst_entry: entries.burst.map(offset).transpose()?,
        counted_entry: entries.counted.map(offset).transpose()?,
        functions,
        stats: Stats { instructions, dropped: all - instructions, bytes: code.bytes.len() },
        bytes: code.bytes,
        relocations: code.relocations,
        marks: code.marks,
        source: CodeSource::Instructions,
        lack: None,
    })
}
