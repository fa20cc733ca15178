//! The code of programs: their functions, the loop over a burst, and the entries.

use crate::codegen::{GenerateError, Plan, Room, generate, generate_loop};
use crate::internal::Internal;
use crate::ir::{Function, Graph, Module, Source};
use paceline_spec::Meaning;
use paceline_spec::context::AreaUse;
use paceline_spec::graph::Node;

use super::nodes::Nodes;
use super::uses::ProgramUse;
use crate::native::code::Label;
use crate::native::compiled::{Compiled, Stats};
use crate::native::error::{CompileError, FormError};
use crate::native::links::Links;
use crate::native::machine::emit::Emit;
use crate::native::machine::generator::{Burst, Current, Generator, Needs, Program};
use crate::native::machine::op::{Entered, Op};
use crate::native::settings::{Prefetch, Settings};

/// The generator for a module of these programs.
pub(super) fn generator<'a, A: Emit>(
    module: &'a Module,
    links: &'a Links,
    settings: &Settings,
    programs: Vec<Program>,
) -> Result<Generator<'a, A>, CompileError> {
    let mut asm = A::empty();
    let entries = module.functions.keys().map(|_| asm.label()).collect();
    let Some((_, main)) = module.functions.iter().next() else {
        return Err(Internal("a program has no function").into());
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
        unsupported: None,
        marked: None,
    })
}

/// The code of a program's functions.
pub(super) struct Code<'a, A> {
    pub(super) generator: Generator<'a, A>,
    pub(super) room: Room<Op>,
    pub(super) pieces: Vec<Piece>,
    pub(super) checked: bool,
    pub(super) prefetch: Prefetch,
}

/// The body of a loop over a burst.
pub(super) struct Body<'f> {
    pub(super) plan: Plan<'f>,
    pub(super) needs: Needs,
    /// Whether the room keeps what was selected for it: it has code of its own.
    pub(super) is_kept: bool,
}

impl<'f> Body<'f> {
    /// The main function of a program whose passes have left this graph.
    pub(super) fn of((module, graph): &'f (Module, Graph)) -> Result<Self, CompileError> {
        let Some((_, function)) = module.functions.iter().next() else {
            return Err(Internal("a loop has no function").into());
        };
        Ok(Self { plan: Plan::with_graph(function, graph), needs: Needs::default(), is_kept: false })
    }
}

/// Numbers of instructions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) all: usize,
    pub(super) reached: usize,
}

impl Count {
    /// The instructions of a program.
    pub(super) fn of(source: &Source<'_>) -> Self {
        Self { all: source.instruction_count(), reached: source.reached_count() }
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |a, b| Self { all: a.all + b.all, reached: a.reached + b.reached })
    }
}

/// A loop over a burst.
pub(super) struct Looping {
    /// What is initialized for each packet.
    pub(super) entered: Entered,
    /// Whether a run may defer work to its end, which is not part of the function.
    pub(super) defers: bool,
    /// What the result of the function means.
    pub(super) meaning: Meaning,
    /// Whether a frame may have a redirect target that its verdict has no use for.
    pub(super) redirects: bool,
}

/// The code of a function.
pub(super) struct Piece {
    pub(super) slot: usize,
    /// Whether it is the body of a loop over a burst.
    pub(super) burst: bool,
    pub(super) start: Label,
    pub(super) end: Label,
}

impl<'a, A: Emit> Code<'a, A> {
    /// All code of a program: `looped` is its form in a loop, if that is another one.
    pub(super) fn all<'m>(
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
        // After a packet alone all of the area is looked at: by the end of the run, and by the embedder.
        let context = source.program().kind.context();
        let whole = if context.waits_for_end { AreaUse::all(context) } else { area };
        asm.enter_run(links, calls, tail_calls, whole);
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
            Some(_) => Entered { frame: calls, tail_calls: false, area: AreaUse::default() },
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
    pub(super) fn chain(
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
    pub(super) fn made<T>(&self, made: Result<T, CompileError>) -> Result<T, CompileError> {
        match self.generator.unsupported {
            Some(what) => Err(what.into()),
            None => made,
        }
    }

    /// Ends the code of a function.
    pub(super) fn piece(&mut self, function: &Function, burst: bool, start: Label) {
        let end = self.generator.asm.label();
        self.generator.asm.bind(end);
        self.pieces.push(Piece { slot: function.slot as usize, burst, start, end });
    }

    /// The loop over a burst with the main program as its body: `extern "C" fn(first, end, x3, x4, x5, host) -> frame reached`.
    pub(super) fn burst(
        &mut self,
        body: &Body<'_>,
        cpus: Option<u32>,
        looping: &Looping,
    ) -> Result<Label, CompileError> {
        let Some((_, main)) = self.generator.module.functions.iter().next() else {
            return Err(Internal("a loop has no function").into());
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
        generator.current.burst = Some(Burst {
            frame: None,
            end: None,
            next: None,
            distance: self.prefetch.distance(main),
            entered: looping.entered,
            defers: looping.defers,
            meaning: looping.meaning,
            redirects: looping.redirects,
        });
        let module = generator.module;
        let generated = generate_loop(&body.plan, generator, &mut self.room, body.is_kept, self.checked);
        generated.map_err(|cause| failed(cause, module))?;
        if let Some(lacks_cpu) = lacks_cpu {
            generator.asm.end_burst_without_cpu(links, lacks_cpu);
        }
        self.piece(main, true, entry);
        Ok(entry)
    }

    pub(super) fn start(&mut self) -> Label {
        let asm = &mut self.generator.asm;
        asm.align();
        let start = asm.label();
        asm.bind(start);
        start
    }

    pub(super) fn function(
        &mut self,
        index: usize,
        function: &Function,
        plan: &Plan<'_>,
    ) -> Result<(), CompileError> {
        let generator = &mut self.generator;
        generator.current = Current::new(function);
        generator.marked = None;
        let label = generator.entries.get(index).copied();
        generator.asm.bind(label.ok_or(Internal("a function has no entry"))?);
        let generated = generate(plan, generator, &mut self.room, self.checked);
        let module = generator.module;
        generated.map(drop).map_err(|cause| failed(cause, module))
    }

    /// Links the code: entries for packets and tail calls, and for bursts.
    pub(super) fn finish(
        self,
        [entry, tail_entry]: [Label; 2],
        burst: Option<Label>,
        count: Count,
    ) -> Result<Compiled, CompileError> {
        let code = self.generator.asm.finish()?;
        let offset = |label| code.offset(label).ok_or(Internal("a label is not bound"));
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

/// The error of a function without code.
fn failed(cause: GenerateError, module: &Module) -> CompileError {
    match cause {
        GenerateError::Internal(what) => what.into(),
        cause => FormError::new(cause, module).into(),
    }
}
