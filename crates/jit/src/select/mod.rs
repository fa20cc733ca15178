//! Code from programs in SSA form: x86-64 as a [`Machine`](paceline_codegen::Machine) of the code generator.
//!
//! | step | by |
//! |---|---|
//! | operations of the form to instructions with virtual registers | `choose` |
//! | registers | `paceline-codegen` |
//! | instructions to bytes, prologues | `emit` |
//!
//! Every function of the program takes what helpers take: `r1` to `r5` in the argument registers and the host in the sixth one. It saves
//! the callee-saved registers that its code writes. So a helper calls a function of the program as it is.

mod choose;
mod emit;
mod expand;
mod generator;
mod lack;
mod machine;
mod op;
mod regs;

use paceline_codegen::lir::Vreg;
use paceline_codegen::{generate, generate_loop};
use paceline_graph::Node;
use paceline_ir::{Callee, Function, Module, Op, Passes, Region, build, optimize};
use paceline_spec::context::{Layout, Place};
use paceline_spec::helper::Helper;
use paceline_verifier::Verified;

use crate::entry;
use crate::error::{CompileError, FormError};
use crate::links::Links;
use crate::program::{ALIGNMENT, Compiled, CompiledFunction, Stats};
use crate::settings::{CodeSource, Prefetch, Settings};
use crate::source::Source;
use crate::x64::{Assembler, Fill, Gpr, Label, Width};
use generator::{Burst, Current, Generator};
pub use lack::Lack;
use op::Entered;

/// Prefetch distance of [`Prefetch::Auto`] in packets.
const PREFETCH_AHEAD: u8 = 16;
/// Operations of a program for which prefetching pays.
const PREFETCH_FROM: usize = 16;

/// Compiles a verified program by its form. The inner error is an operation that has no code from the form.
pub(crate) fn compile(
    verified: &Verified,
    links: &Links,
    settings: &Settings,
) -> Result<Result<Compiled, Lack>, CompileError> {
    let mut module = match build(verified) {
        Ok(module) => module,
        Err(error) => return Ok(Err(Lack::Form { slot: error.slot as u32 })),
    };
    expand::look_ups(&mut module, links);
    let passes = match settings.source {
        CodeSource::Instructions | CodeSource::RawForm => Passes::none(),
        CodeSource::Form => Passes::default(),
    };
    if let Err(cause) = optimize(&mut module, &passes) {
        return Err(FormError::new(cause, &module).into());
    }
    let kind = verified.program().kind;
    let mut asm = Assembler::new();
    let entries = module.functions.keys().map(|_| asm.new_label()).collect();
    let Some((_, main)) = module.functions.iter().next() else {
        return Err(CompileError::Internal("a program has no function"));
    };
    let current = Current::new(main, true);
    let generator = Generator {
        asm,
        module: &module,
        links,
        features: settings.features,
        kind,
        entries,
        current,
        lack: None,
        internal: None,
        marked: None,
    };
    let source = Source::verified(verified);
    let maps = source.maps().filter_map(|index| links.maps.get(index));
    let cpus = maps.filter_map(|map| map.cpus).min();
    let (checked, prefetch) = (settings.verify_allocation, settings.prefetch);
    Code { generator, pieces: Vec::new(), checked, prefetch }.all(cpus, &source, settings.source)
}

/// The code of a program's functions.
struct Code<'a> {
    generator: Generator<'a>,
    pieces: Vec<Piece>,
    checked: bool,
    prefetch: Prefetch,
}

/// The code of a function.
struct Piece {
    slot: usize,
    /// Whether it is the body of a loop over a burst.
    burst: bool,
    start: Label,
    end: Label,
}

impl Code<'_> {
    fn all(
        mut self,
        cpus: Option<u32>,
        source: &Source<'_>,
        from: CodeSource,
    ) -> Result<Result<Compiled, Lack>, CompileError> {
        let (module, links) = (self.generator.module, self.generator.links);
        let asm = &mut self.generator.asm;
        let (entry, tail_entry) = (asm.new_label(), asm.new_label());
        asm.bind(entry);
        let tail_calls = any(module, |op| matches!(op, Op::Call { callee: Callee::TailCall, .. }));
        let calls = any(module, |op| matches!(op, Op::Call { callee, .. } if !choose::is_loaded(*callee)));
        let area = area(module, source, tail_calls);
        entry::enter_run(asm, links, calls, tail_calls, area);
        asm.bind(tail_entry);
        let lacks_cpu = cpus.map(|cpus| {
            let lacks_cpu = asm.new_label();
            entry::check_cpu(asm, links, cpus, lacks_cpu);
            lacks_cpu
        });
        for (index, (_, function)) in module.functions.iter().enumerate() {
            let start = match index {
                0 => entry,
                _ => self.start(),
            };
            let generated = self.function(index, function);
            // What has no code is the cause of other errors.
            if let Some(lack) = self.generator.lack {
                return Ok(Err(lack));
            }
            generated?;
            if let (0, Some(lacks_cpu)) = (index, lacks_cpu) {
                entry::end_without_cpu(&mut self.generator.asm, links, lacks_cpu);
            }
            self.piece(function, false, start);
        }
        // A run that is replaced by another one does not come back to a loop.
        let main = module.functions.iter().next().filter(|_| !tail_calls);
        let burst = match main {
            Some((_, main)) => {
                let burst = self.burst(main, cpus, Entered { frame: calls, tail_calls, area });
                if let Some(lack) = self.generator.lack {
                    return Ok(Err(lack));
                }
                Some(burst?)
            }
            None => None,
        };
        self.finish([entry, tail_entry], burst, source, from).map(Ok)
    }

    /// Ends the code of a function.
    fn piece(&mut self, function: &Function, burst: bool, start: Label) {
        let end = self.generator.asm.new_label();
        self.generator.asm.bind(end);
        self.pieces.push(Piece { slot: function.slot as usize, burst, start, end });
    }

    /// The loop over a burst with the main program as its body: `extern "C" fn(first, end, x3, x4, x5, host) -> frame reached`.
    fn burst(&mut self, main: &Function, cpus: Option<u32>, entered: Entered) -> Result<Label, CompileError> {
        let entry = self.start();
        let generator = &mut self.generator;
        let links = generator.links;
        let lacks_cpu = cpus.map(|cpus| {
            let lacks_cpu = generator.asm.new_label();
            entry::check_cpu(&mut generator.asm, links, cpus, lacks_cpu);
            lacks_cpu
        });
        generator.current = Current::new(main, true);
        generator.marked = None;
        let none = Vreg(0);
        generator.current.burst = Some(Burst {
            frame: none,
            end: none,
            next: none,
            distance: self.prefetch.distance(main),
            entered,
            defers: any(generator.module, defers_work),
        });
        let (module, generated) = (generator.module, generate_loop(main, generator, self.checked));
        generated.map_err(|cause| FormError::new(cause, module))?;
        if let Some(lacks_cpu) = lacks_cpu {
            // The first packet is the one that cannot be run. The push also aligns the stack to 16 bytes.
            let asm = &mut generator.asm;
            asm.bind(lacks_cpu);
            asm.push(Gpr::Rdi);
            asm.mov_rr(Width::Q64, Gpr::Rdi, Gpr::R9);
            entry::call_runtime(asm, links, links.no_cpu);
            asm.pop(Gpr::Rax);
            asm.ret();
        }
        self.piece(main, true, entry);
        Ok(entry)
    }

    fn start(&mut self) -> Label {
        let asm = &mut self.generator.asm;
        asm.align(ALIGNMENT, Fill::Int3);
        let start = asm.new_label();
        asm.bind(start);
        start
    }

    fn function(&mut self, index: usize, function: &Function) -> Result<(), CompileError> {
        let generator = &mut self.generator;
        generator.current = Current::new(function, index == 0);
        generator.marked = None;
        let label = generator.entries.get(index).copied();
        generator.asm.bind(label.ok_or(CompileError::Internal("a function has no entry"))?);
        let generated = generate(function, generator, self.checked);
        let module = generator.module;
        generated.map(drop).map_err(|cause| FormError::new(cause, module).into())
    }

    fn finish(
        self,
        [entry, tail_entry]: [Label; 2],
        burst: Option<Label>,
        source: &Source<'_>,
        from: CodeSource,
    ) -> Result<Compiled, CompileError> {
        if let Some(what) = self.generator.internal {
            return Err(CompileError::Internal(what));
        }
        let reached = |function| source.reached(function).count();
        let instructions: usize = source.functions.iter().map(reached).sum();
        let dropped = source.code.iter().count() - instructions;
        let code = self.generator.asm.finish()?;
        let offset = |label| code.offset(label).ok_or(CompileError::Internal("a label is not bound"));
        let mut functions = Vec::with_capacity(self.pieces.len());
        for Piece { slot, burst, start, end } in self.pieces {
            let start = offset(start)?;
            let len = offset(end)?.saturating_sub(start);
            functions.push(CompiledFunction { node: Node::ENTRY, slot, burst, offset: start, len });
        }
        Ok(Compiled {
            entry: offset(entry)?,
            tail_entry: offset(tail_entry)?,
            burst_entry: burst.map(offset).transpose()?,
            counted_entry: None,
            functions,
            stats: Stats { instructions, dropped, bytes: code.bytes.len() },
            bytes: code.bytes,
            relocations: code.relocations,
            marks: code.marks,
            source: from,
            lack: None,
        })
    }
}

impl Prefetch {
    /// The distance for a function, in packets; 0 for no prefetch.
    fn distance(self, function: &Function) -> u8 {
        let touches = |inst: &paceline_ir::Inst| {
            let op = &function.inst(*inst).op;
            matches!(op, Op::PacketLoad { .. })
                || op.access().is_some_and(|(.., access)| access.region == Region::Packet)
        };
        match self {
            Self::Ahead(packets) => packets,
            Self::Auto => {
                let mut insts = function.layout.iter().flat_map(|block| &function.block(*block).insts);
                let pays = function.inst_count() >= PREFETCH_FROM && insts.any(touches);
                if pays { PREFETCH_AHEAD } else { 0 }
            }
        }
    }
}

/// Whether an operation may leave work to the end of the run.
fn defers_work(op: &Op) -> bool {
    match op {
        Op::Call { callee: Callee::Helper(id), .. } => {
            Helper::from_imm(*id).is_some_and(Helper::waits_for_end)
        }
        _ => false,
    }
}

/// Whether the program has such an operation.
fn any(module: &Module, is: impl Fn(&Op) -> bool) -> bool {
    module.functions.iter().any(|(_, function)| {
        let insts = function.layout.iter().flat_map(|block| &function.block(*block).insts);
        insts.into_iter().any(|inst| is(&function.inst(*inst).op))
    })
}

/// The context's layout, if the packet's own area has to be initialized before the program: its fields are accessed, or have numbers to
/// begin with that others may read.
fn area(module: &Module, source: &Source<'_>, tail_calls: bool) -> Option<&'static Layout> {
    let layout = source.kind.context();
    let is_in_area = |op: &Op| {
        let (offset, size, write) = match *op {
            Op::ContextLoad { offset, size, .. } => (offset, size, false),
            Op::ContextStore { offset, size, .. } => (offset, size, true),
            _ => return false,
        };
        let start = u64::try_from(offset).ok();
        let field = start.and_then(|start| source.kind.context_field(start, size.bytes() as u64, write));
        field.is_some_and(|field| matches!(field.place, Place::Host { .. }))
    };
    let is_used = || tail_calls || layout.entries().next().is_some() || any(module, is_in_area);
    (!layout.area.is_empty() && is_used()).then_some(layout)
}
