//! The state of code generation for a program.

use crate::codegen::lir::{Reg, Vreg};
use crate::ir::arena::Side;
use crate::ir::{FuncId, Inst, Module, Type, Value};
use paceline_isa::Condition;
use paceline_spec::{Meaning, ProgramKind};

use super::lack::Lack;
use super::op::Entered;
use super::target::Target;
use crate::native::entry;
use crate::native::links::{Links, MapLink};
use crate::native::settings::Features;
use crate::native::x64::{Assembler, Gpr, Label, Mem};

/// The smallest page of a stack's guard, in bytes.
const PAGE: u32 = 4096;
/// The largest frame in bytes. Calls are at most eight deep.
const MAX_FRAME: u32 = 16 * PAGE;

/// Where a function keeps things in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// Saved registers, in their order.
    pub(super) saved: Vec<Reg>,
    /// Bytes to subtract from the stack pointer after the pushes.
    pub(super) room: i32,
    /// Distance from the stack pointer to the end of the function's stack.
    pub(super) end: i32,
    /// Distance from the stack pointer to the first slot.
    pub(super) slots: i32,
    /// Distance from the stack pointer to the counter of rounds.
    pub(super) rounds: i32,
}

/// What a function is found to need while its instructions are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// It makes calls, for which the stack is aligned.
    pub(super) calls: bool,
    /// It counts rounds.
    pub(super) rounds: bool,
}

/// A loop over the frames of a burst.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    /// The current frame.
    pub(super) frame: Vreg,
    /// The end of the last one.
    pub(super) end: Vreg,
    /// The frame behind the current one, in a block that returns.
    pub(super) next: Vreg,
    /// Prefetch distance in packets; 0 for no prefetch.
    pub(super) distance: u8,
    /// What is initialized for each packet.
    pub(super) entered: Entered,
    /// Whether a run may defer work to its end.
    pub(super) defers: bool,
    /// What the result of the function means.
    pub(super) meaning: Meaning,
    /// Whether a frame may have a redirect target that its verdict has no use for.
    pub(super) redirects: bool,
}

/// A program whose code is in the function, by its position in the chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// Number of its first slot among those of all programs.
    pub(super) first: u32,
    pub(super) kind: ProgramKind,
    /// What is initialized when it begins.
    pub(super) entered: Entered,
    /// The runtime's table of its maps, and its length.
    pub(super) readable: (u64, i32),
}

/// The branch of a block with the operation that is part of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folded {
    /// The operation.
    pub(super) inst: Inst,
    pub(super) condition: Condition,
    pub(super) ty: Type,
    /// The other operand of the branch.
    pub(super) other: Value,
}

/// The function whose code is generated.
#[derive(Clone, Debug)]
pub(super) struct Current {
    /// Bytes of stack that the program uses in it.
    pub(super) stack: u32,
    /// Words of it to zero on entry.
    pub(super) zeroed: u64,
    /// Bytes below the end of its stack that helpers may read at any address.
    pub(super) readable: i32,
    pub(super) host: Vreg,
    /// The loop that it is the body of.
    pub(super) burst: Option<Burst>,
    /// The branch of the block whose instructions are selected.
    pub(super) folded: Option<Folded>,
    /// Instructions that are parts of later ones of their blocks.
    pub(super) parts: Side<Inst, bool>,
    pub(super) needs: Needs,
    pub(super) layout: Layout,
    /// Labels of blocks, and of moves between them.
    pub(super) labels: Vec<Option<Label>>,
}

impl Current {
    pub(super) fn new(function: &crate::ir::Function) -> Self {
        // All that is printed may be read.
        let whole = crate::ir::STACK_BYTES;
        let (stack, readable) =
            if function.prints { (whole.unsigned_abs(), whole) } else { (function.stack, 0) };
        Self {
            stack,
            zeroed: function.zeroed,
            readable,
            host: Vreg(0),
            burst: None,
            folded: None,
            parts: Side::default(),
            needs: Needs::default(),
            layout: Layout::default(),
            labels: Vec::new(),
        }
    }
}

/// The machine that code is generated for is its assembler.
pub(super) struct Generator<'a, A = Assembler> {
    pub(super) asm: A,
    pub(super) module: &'a Module,
    pub(super) links: &'a Links,
    pub(super) features: Features,
    /// Whether every function has the full prologue.
    pub(super) full_prologue: bool,
    /// The programs in the order of their slots.
    pub(super) programs: Vec<Program>,
    /// Entries of the functions, by number.
    pub(super) entries: Vec<Label>,
    pub(super) current: Current,
    /// The first operation that has no code.
    pub(super) lack: Option<Lack>,
    /// The first state that the code generator excludes.
    pub(super) internal: Option<&'static str>,
    /// Slot of the instruction that the last code is part of.
    pub(super) marked: Option<u32>,
}

impl<A: Target> Generator<'_, A> {
    /// Notes a state that the code generator excludes; the code is not used.
    pub(super) fn internal(&mut self, what: &'static str) {
        self.internal.get_or_insert(what);
    }

    /// Notes an operation that has no code. What is emitted for it is not used.
    pub(super) fn lacks(&mut self, lack: Lack) {
        self.lack.get_or_insert(lack);
    }

    /// Distances below the stack pointer at which the prologue of a frame of so many bytes loads, so that a stack that ends is met at its
    /// guard page.
    pub(super) fn probes(&mut self, frame: u32) -> impl Iterator<Item = i32> + use<A> {
        if frame > MAX_FRAME {
            self.lacks(Lack::Frame { bytes: frame });
        }
        (1..=frame.min(MAX_FRAME) / PAGE).map(|page| (page * PAGE).cast_signed())
    }

    /// The program that a slot is of.
    pub(super) fn program(&self, slot: u32) -> Option<&Program> {
        let number = self.programs.partition_point(|program| program.first <= slot);
        self.programs.get(number.wrapping_sub(1))
    }

    /// The table of the maps of the program that a slot is of.
    pub(super) fn readable(&self, slot: u32) -> (u64, i32) {
        self.program(slot).map_or(self.links.readable, |program| program.readable)
    }

    pub(super) fn entry(&self, function: FuncId) -> Option<Label> {
        use crate::ir::arena::Key;
        self.entries.get(function.index()).copied()
    }

    /// A map that the program is linked with.
    pub(super) fn map(&mut self, index: u32) -> Option<&MapLink> {
        let found = self.links.maps.get(index as usize);
        if found.is_none() {
            self.lacks(Lack::Map { index });
        }
        found
    }

    /// The label of a block or of moves.
    pub(super) fn label(&mut self, label: crate::codegen::Label) -> Label {
        let number = label.0 as usize;
        if self.current.labels.len() <= number {
            // Most are those of blocks, which come in their order.
            self.current.labels.resize((number + 1).next_power_of_two().max(32), None);
        }
        let asm = &mut self.asm;
        *self.current.labels[number].get_or_insert_with(|| asm.label())
    }
}

impl Generator<'_> {
    /// A place in the function's stack, by its distance from the end.
    pub(super) fn stack(&self, offset: i32) -> Mem {
        Mem::at(Gpr::Rsp, self.current.layout.end.wrapping_add(offset))
    }

    /// A slot of the frame.
    pub(super) fn slot(&self, slot: u32) -> Mem {
        Mem::at(Gpr::Rsp, self.current.layout.slots + 8 * slot.cast_signed())
    }

    /// Calls a function of the runtime. The caller-saved registers do not survive it.
    pub(super) fn call_runtime(&mut self, address: u64) {
        entry::call_runtime(&mut self.asm, self.links, address);
    }
}
