//! Code from programs in SSA form: each [`Target`] is a [`Machine`](crate::codegen::Machine) of the code generator.
//!
//! | step | by |
//! |---|---|
//! | operations of the form to instructions with virtual registers | `choose` |
//! | the programs of a chain as one function, its links | `chain` |
//! | registers | `paceline-compiler` |
//! | instructions to bytes, prologues | `emit` for x86-64, `arm64` |
//!
//! Every function of the program takes what helpers take: `r1` to `r5` in the argument registers and the host in the sixth one. It saves
//! the callee-saved registers that its code writes. So a helper calls a function of the program as it is.
//!
//! The host is a value like any other. From below, a frame has the slots of the allocator, the counter of `may_goto`, and the
//! function's stack; functions without calls use the red zone of x86-64. The prologue of a frame of more than a page loads from
//! each page of it, so that a store far below the stack does not miss its guard page; a frame of more than 64 KiB is a lack. `r11`
//! of x86-64 is no register of values: moves and instructions use it. The engine `jit-o0` of text cases and campaigns has no
//! passes.

mod arm64;
mod chain;
mod choose;
mod emit;
mod generator;
mod lack;
mod machine;
mod op;
mod regs;
mod target;

use crate::codegen::lir::Vreg;
use crate::codegen::{Plan, Room, generate, generate_loop};
use crate::ir::expand::{look_ups, loops};
use crate::ir::{
    Callee, Function, Graph, Module, Op, Passes, Region, Source, Terminator, build_source,
    optimize_with_graphs,
};
use paceline_isa::Size;
use paceline_spec::context::{Layout, Place};
use paceline_spec::graph::Node;
use paceline_spec::helper::Helper;
use paceline_spec::{Meaning, ProgramKind};

use crate::native::error::{CompileError, FormError};
use crate::native::links::Links;
use crate::native::program::{Compiled, CompiledFunction, Stats};
use crate::native::settings::{Architecture, OptLevel, Prefetch, Settings};
use crate::native::x64::{Assembler, Label, Mark};
pub use chain::Part;
pub(crate) use chain::compile_chain;
use generator::{Burst, Current, Generator, Needs};
pub use lack::Lack;
use op::Entered;
use target::Target;

/// Prefetch distance of [`Prefetch::Auto`] in packets.
const PREFETCH_AHEAD: u8 = 16;
/// Operations of a program for which prefetching pays.
const PREFETCH_FROM: usize = 16;

/// Compiles a program.
pub(crate) fn compile(
    source: &Source<'_>,
    links: &Links,
    settings: &Settings,
) -> Result<Compiled, CompileError> {
    match settings.architecture {
        Architecture::X86_64 => compile_for::<Assembler>(source, links, settings),
        Architecture::Arm64 => compile_for::<crate::native::arm64::Assembler>(source, links, settings),
    }
}

fn compile_for<A: Target>(
    source: &Source<'_>,
    links: &Links,
    settings: &Settings,
) -> Result<Compiled, CompileError> {
    let (module, graphs) = form(source, links, &passes(settings.opt_level))?;
    let program = ProgramUse::of(&module, source);
    // A tail call is a jump in a run of its own, and a call in a loop.
    let looped = match program.tail_calls {
        true => Some(chain::in_loop(&module, &program, settings.opt_level)?),
        false => None,
    };
    let parts = vec![program.entered(0, source.program().kind, links)];
    let generator = generator::<A>(&module, links, settings, parts)?;
    let (checked, prefetch) = (settings.verify_allocation, settings.prefetch);
    let code = Code { generator, room: Room::default(), pieces: Vec::new(), checked, prefetch };
    code.all(&program, &graphs, looped.as_ref(), cpus(source, links), source)
}

/// A program with the graphs of its functions.
type Form = (Module, Vec<Graph>);

/// The form of a program after the passes that are asked for.
fn form(source: &Source<'_>, links: &Links, passes: &Passes) -> Result<Form, CompileError> {
    let mut module = build_source(source).map_err(|error| Lack::Form { slot: error.slot as u32 })?;
    let expanded = look_ups(&mut module, &|map| links.maps.get(map as usize)?.table());
    expanded.and_then(|()| loops(&mut module)).ok_or(CompileError::Internal("an operation has no result"))?;
    match optimize_with_graphs(&mut module, passes) {
        Ok(graphs) => Ok((module, graphs)),
        Err(cause) => Err(FormError::new(cause, &module).into()),
    }
}

fn passes(level: OptLevel) -> Passes {
    match level {
        OptLevel::None => Passes::none(),
        OptLevel::Full => Passes::default(),
    }
}

/// Number of CPUs for which all of a program's per-CPU arrays have values; `None` without such arrays.
fn cpus(source: &Source<'_>, links: &Links) -> Option<u32> {
    // To find the maps that a program names takes a look at each instruction.
    links.maps.iter().find(|map| map.cpus.is_some())?;
    let maps = source.named_maps().filter_map(|index| links.maps.get(index));
    maps.filter_map(|map| map.cpus).min()
}

/// The generator for a module of these programs.
fn generator<'a, A: Target>(
    module: &'a Module,
    links: &'a Links,
    settings: &Settings,
    programs: Vec<generator::Program>,
) -> Result<Generator<'a, A>, CompileError> {
    let mut asm = A::empty();
    let entries = module.functions.keys().map(|_| asm.label()).collect();
    let Some((_, main)) = module.functions.iter().next() else {
        return Err(CompileError::Internal("a program has no function"));
    };
    let current = Current::new(main);
    Ok(Generator {
        asm,
        module,
        links,
        features: settings.features,
        full_prologue: settings.full_prologue(),
        programs,
        entries,
        current,
        lack: None,
        internal: None,
        marked: None,
    })
}

/// What a program uses of the state of a run.
#[derive(Clone, Copy, Debug, Default)]
struct ProgramUse {
    /// It makes tail calls.
    tail_calls: bool,
    /// It makes calls.
    calls: bool,
    /// The packet's own area, if it has to be initialized.
    area: Option<&'static Layout>,
    /// It may defer work to the end of a run.
    defers: bool,
    /// It may set a redirect target.
    redirects: bool,
    /// It counts rounds.
    rounds: bool,
}

impl ProgramUse {
    fn of(module: &Module, source: &Source<'_>) -> Self {
        let kind = source.program().kind;
        let (has_area, mut is_in_area) = (!kind.context().area.is_empty(), false);
        let mut found = Self::default();
        for (_, function) in module.functions.iter() {
            for block in function.layout.iter().map(|block| function.block(*block)) {
                found.rounds |= matches!(block.terminator, Terminator::MayGoto(_));
                for op in block.insts.iter().map(|inst| &function.inst(*inst).op) {
                    match *op {
                        Op::Call { callee, .. } => found.called(callee),
                        Op::ContextLoad { offset, size, .. } if has_area => {
                            is_in_area |= accesses_area(kind, offset, size, false);
                        }
                        Op::ContextStore { offset, size, .. } if has_area => {
                            is_in_area |= accesses_area(kind, offset, size, true);
                        }
                        _ => {}
                    }
                }
            }
        }
        // What a program does that is tail called is not known.
        found.defers |= found.tail_calls && kind.context().waits_for_end;
        found.redirects |= found.tail_calls;
        found.area = area(kind.context(), is_in_area || found.tail_calls);
        found
    }

    /// Notes a call.
    fn called(&mut self, callee: Callee) {
        self.calls |= !choose::is_loaded(callee);
        self.tail_calls |= matches!(callee, Callee::TailCall);
        if let Callee::Helper(id) = callee {
            self.defers |= Helper::from_imm(id).is_some_and(Helper::waits_for_end);
            self.redirects |= matches!(id, Helper::REDIRECT | Helper::REDIRECT_MAP);
        }
    }

    /// The program in code whose slots begin with its own at a number.
    fn entered(&self, first: u32, kind: ProgramKind, links: &Links) -> generator::Program {
        let entered = Entered { frame: false, tail_calls: self.tail_calls, area: self.area };
        generator::Program { first, kind, entered, readable: links.readable }
    }
}

/// The code of a program's functions.
struct Code<'a, A> {
    generator: Generator<'a, A>,
    room: Room<op::Op>,
    pieces: Vec<Piece>,
    checked: bool,
    prefetch: Prefetch,
}

/// The body of a loop over a burst.
struct Body<'f> {
    plan: Plan<'f>,
    needs: Needs,
    /// Whether the room keeps what was selected for it: it has code of its own.
    is_kept: bool,
}

impl<'f> Body<'f> {
    /// The main function of a program whose passes have left this graph.
    fn of((module, graph): &'f (Module, Graph)) -> Result<Self, CompileError> {
        let Some((_, function)) = module.functions.iter().next() else {
            return Err(CompileError::Internal("a loop has no function"));
        };
        Ok(Self { plan: Plan::with_graph(function, graph), needs: Needs::default(), is_kept: false })
    }
}

/// Numbers of instructions.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    all: usize,
    reached: usize,
}

impl Count {
    /// The instructions of a program.
    fn of(source: &Source<'_>) -> Self {
        Self { all: source.instruction_count(), reached: source.reached_count() }
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |a, b| Self { all: a.all + b.all, reached: a.reached + b.reached })
    }
}

/// A loop over a burst.
struct Looping {
    /// What is initialized for each packet.
    entered: Entered,
    /// Whether a run may defer work to its end, which is not part of the function.
    defers: bool,
    /// What the result of the function means.
    meaning: Meaning,
    /// Whether a frame may have a redirect target that its verdict has no use for.
    redirects: bool,
}

/// The code of a function.
struct Piece {
    slot: usize,
    /// Whether it is the body of a loop over a burst.
    burst: bool,
    start: Label,
    end: Label,
}

impl<'a, A: Target> Code<'a, A> {
    /// All code of a program: `looped` is its form in a loop, if that is another one.
    fn all<'m>(
        mut self,
        program: &ProgramUse,
        graphs: &[Graph],
        looped: Option<&'m (Module, Graph)>,
        cpus: Option<u32>,
        source: &Source<'_>,
    ) -> Result<Compiled, CompileError>
    where
        'm: 'a,
    {
        let (module, links) = (self.generator.module, self.generator.links);
        let asm = &mut self.generator.asm;
        let (entry, tail_entry) = (asm.label(), asm.label());
        asm.bind(entry);
        let &ProgramUse { calls, tail_calls, area, defers, .. } = program;
        asm.enter_run(links, calls, tail_calls, area);
        asm.bind(tail_entry);
        let lacks_cpu = cpus.map(|cpus| {
            let lacks_cpu = asm.label();
            asm.check_cpu(links, cpus, lacks_cpu);
            lacks_cpu
        });
        let mut main = None;
        for (index, ((_, function), graph)) in module.functions.iter().zip(graphs).enumerate() {
            let start = match index {
                0 => entry,
                _ => self.start(),
            };
            let plan = Plan::with_graph(function, graph);
            let generated = self.function(index, function, &plan);
            self.made(generated)?;
            if index == 0 {
                self.room.keep();
                main = Some(Body { plan, needs: self.generator.current.needs, is_kept: true });
            }
            if let (0, Some(lacks_cpu)) = (index, lacks_cpu) {
                self.generator.asm.end_without_cpu(links, lacks_cpu);
            }
            self.piece(function, false, start);
        }
        let entered = match looped {
            // The state is that of a new run where the program begins.
            Some(_) => Entered { frame: calls, tail_calls: false, area: None },
            None => Entered { frame: calls, tail_calls: false, area },
        };
        let looping = Looping {
            entered,
            defers: defers && looped.is_none(),
            meaning: source.program().kind.rules().meaning,
            redirects: false,
        };
        // A burst is one of packets.
        let body = match looped {
            _ if source.is_over_memory() => None,
            Some(looped) => {
                self.generator.module = &looped.0;
                Some(Body::of(looped)?)
            }
            None => main,
        };
        let burst = match body {
            None => None,
            Some(body) => {
                let burst = self.burst(&body, cpus, &looping);
                Some(self.made(burst)?)
            }
        };
        self.finish([entry, tail_entry], burst, Count::of(source))
    }

    /// All code of a chain.
    fn chain(
        mut self,
        body: &Body<'_>,
        looping: &Looping,
        cpus: Option<u32>,
        count: Count,
    ) -> Result<Compiled, CompileError> {
        let burst = self.burst(body, cpus, looping);
        let burst = self.made(burst)?;
        let module = self.generator.module;
        for (index, (_, function)) in module.functions.iter().enumerate().skip(1) {
            let start = self.start();
            let generated = self.function(index, function, &Plan::of(function));
            self.made(generated)?;
            self.piece(function, false, start);
        }
        self.finish([burst; 2], Some(burst), count)
    }

    /// The result of code generation, or the missing feature: other errors follow from that.
    fn made<T>(&self, made: Result<T, CompileError>) -> Result<T, CompileError> {
        match self.generator.lack {
            Some(lack) => Err(lack.into()),
            None => made,
        }
    }

    /// Ends the code of a function.
    fn piece(&mut self, function: &Function, burst: bool, start: Label) {
        let end = self.generator.asm.label();
        self.generator.asm.bind(end);
        self.pieces.push(Piece { slot: function.slot as usize, burst, start, end });
    }

    /// The loop over a burst with the main program as its body: `extern "C" fn(first, end, x3, x4, x5, host) -> frame reached`.
    fn burst(
        &mut self,
        body: &Body<'_>,
        cpus: Option<u32>,
        looping: &Looping,
    ) -> Result<Label, CompileError> {
        let Some((_, main)) = self.generator.module.functions.iter().next() else {
            return Err(CompileError::Internal("a loop has no function"));
        };
        let entry = self.start();
        let generator = &mut self.generator;
        let links = generator.links;
        let lacks_cpu = cpus.map(|cpus| {
            let lacks_cpu = generator.asm.label();
            generator.asm.check_cpu(links, cpus, lacks_cpu);
            lacks_cpu
        });
        generator.current = Current::new(main);
        generator.marked = None;
        // What is not selected again needs the same as before.
        generator.current.needs = body.needs;
        let none = Vreg(0);
        generator.current.burst = Some(Burst {
            frame: none,
            end: none,
            next: none,
            distance: self.prefetch.distance(main),
            entered: looping.entered,
            defers: looping.defers,
            meaning: looping.meaning,
            redirects: looping.redirects,
        });
        let module = generator.module;
        let generated = generate_loop(&body.plan, generator, &mut self.room, body.is_kept, self.checked);
        generated.map_err(|cause| FormError::new(cause, module))?;
        if let Some(lacks_cpu) = lacks_cpu {
            generator.asm.end_burst_without_cpu(links, lacks_cpu);
        }
        self.piece(main, true, entry);
        Ok(entry)
    }

    fn start(&mut self) -> Label {
        let asm = &mut self.generator.asm;
        asm.align();
        let start = asm.label();
        asm.bind(start);
        start
    }

    fn function(&mut self, index: usize, function: &Function, plan: &Plan<'_>) -> Result<(), CompileError> {
        let generator = &mut self.generator;
        generator.current = Current::new(function);
        generator.marked = None;
        let label = generator.entries.get(index).copied();
        generator.asm.bind(label.ok_or(CompileError::Internal("a function has no entry"))?);
        let generated = generate(plan, generator, &mut self.room, self.checked);
        let module = generator.module;
        generated.map(drop).map_err(|cause| FormError::new(cause, module).into())
    }

    /// Links the code: entries for packets and tail calls, and for bursts.
    fn finish(
        self,
        [entry, tail_entry]: [Label; 2],
        burst: Option<Label>,
        count: Count,
    ) -> Result<Compiled, CompileError> {
        if let Some(what) = self.generator.internal {
            return Err(CompileError::Internal(what));
        }
        let code = self.generator.asm.finish()?;
        let offset = |label| code.offset(label).ok_or(CompileError::Internal("a label is not bound"));
        let programs = &self.generator.programs;
        let mut nodes =
            Nodes { programs, functions: Vec::with_capacity(self.pieces.len()), marks: Vec::new() };
        for Piece { slot, burst, start, end } in self.pieces {
            let [start, end] = [offset(start)?, offset(end)?];
            match programs.len() {
                // What a program's code is of has its numbers.
                1 => nodes.add(Node::ENTRY, slot, burst, [start, end]),
                _ => nodes.piece(slot, burst, [start, end], &code.marks),
            }
        }
        Ok(Compiled {
            entry: offset(entry)?,
            tail_entry: offset(tail_entry)?,
            burst_entry: burst.map(offset).transpose()?,
            functions: nodes.functions,
            stats: Stats {
                instructions: count.reached,
                dropped: count.all - count.reached,
                bytes: code.bytes.len(),
            },
            marks: if programs.len() == 1 { code.marks } else { nodes.marks },
            bytes: code.bytes,
            relocations: code.relocations,
        })
    }
}

/// Functions and marks by the programs that they are of.
struct Nodes<'p> {
    programs: &'p [generator::Program],
    functions: Vec<CompiledFunction>,
    marks: Vec<Mark>,
}

impl Nodes<'_> {
    /// The program of a slot among those of all programs, and its slot there.
    fn of(&self, slot: u32) -> (Node, u32) {
        let number = self.programs.partition_point(|program| program.first <= slot).saturating_sub(1);
        let first = self.programs.get(number).map_or(0, |program| program.first);
        (Node::new(number), slot - first)
    }

    fn add(&mut self, node: Node, slot: usize, burst: bool, [start, end]: [u32; 2]) {
        let len = end.saturating_sub(start);
        self.functions.push(CompiledFunction { node, slot, burst, offset: start, len });
    }

    /// Adds code that begins with that of a slot. The code of other programs in it is a function of its own: their main program, as it
    /// is in the loop.
    fn piece(&mut self, slot: usize, burst: bool, [mut start, end]: [u32; 2], marks: &[Mark]) {
        let (mut node, first) = self.of(slot as u32);
        let mut slot = first as usize;
        let within = marks.partition_point(|mark| mark.offset < start)
            ..marks.partition_point(|mark| mark.offset < end);
        for mark in marks.get(within).unwrap_or_default() {
            let (next, tag) = self.of(mark.tag);
            if next != node && mark.offset > start {
                self.add(node, slot, burst, [start, mark.offset]);
                (start, slot) = (mark.offset, 0);
            }
            node = next;
            self.marks.push(Mark { offset: mark.offset, tag });
        }
        self.add(node, slot, burst, [start, end]);
    }
}

impl Prefetch {
    /// The distance for a function, in packets; 0 for no prefetch.
    fn distance(self, function: &Function) -> u8 {
        let touches = |inst: &crate::ir::Inst| {
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

/// Whether an access to the context is one to the packet's own area.
fn accesses_area(kind: ProgramKind, offset: i32, size: Size, write: bool) -> bool {
    let start = u64::try_from(offset).ok();
    let field = start.and_then(|start| kind.context_field(start, size.bytes() as u64, write));
    field.is_some_and(|field| matches!(field.place, Place::Host { .. }))
}

/// The context's layout, if the packet's own area has to be initialized before the program: its fields are accessed, or have numbers to
/// begin with that others may read.
fn area(layout: &'static Layout, is_accessed: bool) -> Option<&'static Layout> {
    let is_used = is_accessed || layout.entries().next().is_some();
    (!layout.area.is_empty() && is_used).then_some(layout)
}
