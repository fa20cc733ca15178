//! The state of code generation for a program.

use crate::codegen::lir::{Reg, Vreg};
use crate::ir::arena::Side;
use crate::ir::{FuncId, Inst, Module, Type, Value};
use paceline_isa::Condition;
use paceline_spec::{Meaning, ProgramKind};

use super::op::Entered;
use super::target::Target;
use crate::codegen::Ways;
use crate::internal::Internal;
use crate::native::code::Label;
use crate::native::links::{Links, MapLink};
use crate::native::settings::Features;
use crate::native::unsupported::Unsupported;

/// The smallest page of a stack's guard, in bytes.
const PAGE: u32 = 4096;
/// The largest frame in bytes. Calls are at most eight deep.
const MAX_FRAME: u32 = 16 * PAGE;

/// Where a function keeps things in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Saved registers, in their order.
    pub(crate) saved: Vec<Reg>,
    /// Bytes to subtract from the stack pointer after the pushes.
    pub(crate) room: i32,
    /// Distance from the stack pointer to the end of the function's stack.
    pub(crate) end: i32,
    /// Distance from the stack pointer to the first slot.
    pub(crate) slots: i32,
    /// Distance from the stack pointer to the counter of rounds.
    pub(crate) rounds: i32,
}

/// What a function is found to need while its instructions are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// It makes calls, for which the stack is aligned.
    pub(crate) calls: bool,
    /// It counts rounds.
    pub(crate) rounds: bool,
}

/// A loop over the frames of a burst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    /// The current frame, and the end of the last one.
    pub(crate) frame: Option<Vreg>,
    pub(crate) end: Option<Vreg>,
    /// The frame behind the current one, in a block that returns.
    pub(crate) next: Option<Vreg>,
    /// Prefetch distance in packets; 0 for no prefetch.
    pub(crate) distance: u8,
    /// What is initialized for each packet.
    pub(crate) entered: Entered,
    /// Whether a run may defer work to its end.
    pub(crate) defers: bool,
    /// What the result of the function means.
    pub(crate) meaning: Meaning,
    /// Whether a frame may have a redirect target that its verdict has no use for.
    pub(crate) redirects: bool,
}

/// A program whose code is in the function, by its position in the chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// Number of its first slot among those of all programs.
    pub(crate) first: u32,
    pub(crate) kind: ProgramKind,
    /// What is initialized when it begins.
    pub(crate) entered: Entered,
    /// The runtime's table of its maps, and its length.
    pub(crate) readable: (u64, i32),
}

/// The branch of a block with the operation that is part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folded {
    /// The operation.
    pub(crate) inst: Inst,
    pub(crate) condition: Condition,
    pub(crate) ty: Type,
    /// The other operand of the branch.
    pub(crate) other: Value,
}

/// The function whose code is generated.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    /// Bytes of stack that the program uses in it.
    pub(crate) stack: u32,
    /// Words of it to zero on entry.
    pub(crate) zeroed: u64,
    /// Bytes below the end of its stack that helpers may read at any address.
    pub(crate) readable: i32,
    pub(crate) host: Option<Vreg>,
    /// The loop that it is the body of.
    pub(crate) burst: Option<Burst>,
    /// The branch of the block whose instructions are selected.
    pub(crate) folded: Option<Folded>,
    /// Instructions that are parts of later ones of their blocks.
    pub(crate) parts: Side<Inst, bool>,
    pub(crate) needs: Needs,
    pub(crate) layout: Layout,
    /// Labels of blocks, and of moves between them.
    pub(crate) labels: Vec<Option<Label>>,
}

impl Current {
    pub(crate) fn new(function: &crate::ir::Function) -> Self {
        // All that is printed may be read.
        let whole = crate::ir::STACK_BYTES;
        let (stack, readable) =
            if function.prints { (whole.unsigned_abs(), whole) } else { (function.stack, 0) };
        Self {
            stack,
            zeroed: function.zeroed,
            readable,
            host: None,
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
pub(crate) struct Generator<'a, A> {
    pub(crate) asm: A,
    pub(crate) module: &'a Module,
    pub(crate) links: &'a Links,
    pub(crate) features: Features,
    /// Whether every function has the full prologue.
    pub(crate) full_prologue: bool,
    /// The programs in the order of their slots.
    pub(crate) programs: Vec<Program>,
    /// Entries of the functions, by number.
    pub(crate) entries: Vec<Label>,
    pub(crate) current: Current,
    /// The first operation that has no code.
    pub(crate) unsupported: Option<Unsupported>,
    /// Slot of the instruction that the last code is part of.
    pub(crate) marked: Option<u32>,
}

impl<'a, A: Target> Generator<'a, A> {
    /// Notes what has no code. It is the error of the compilation, in place of the one that is returned, which ends it.
    pub(crate) fn unsupported(&mut self, what: Unsupported) -> Internal {
        self.unsupported.get_or_insert(what);
        Internal("what has no native code is compiled")
    }

    /// Distances below the stack pointer at which the prologue of a frame of so many bytes loads, so that a stack that ends is met at its
    /// guard page.
    pub(crate) fn probes(&mut self, frame: u32) -> Result<impl Iterator<Item = i32> + use<A>, Internal> {
        if frame > MAX_FRAME {
            return Err(self.unsupported(Unsupported::Frame { bytes: frame }));
        }
        Ok((1..=frame / PAGE).map(|page| (page * PAGE).cast_signed()))
    }

    /// The program that a slot is of.
    pub(crate) fn program(&self, slot: u32) -> Result<&Program, Internal> {
        let number = self.programs.partition_point(|program| program.first <= slot);
        self.programs.get(number.wrapping_sub(1)).ok_or(Internal("a slot is of no program"))
    }

    /// The table of the maps of the program that a slot is of.
    pub(crate) fn readable(&self, slot: u32) -> Result<(u64, i32), Internal> {
        Ok(self.program(slot)?.readable)
    }

    pub(crate) fn entry(&self, function: FuncId) -> Result<Label, Internal> {
        use crate::ir::arena::Key;
        self.entries.get(function.index()).copied().ok_or(Internal("a function has no entry"))
    }

    /// A map that the program is linked with.
    pub(crate) fn map(&mut self, index: u32) -> Result<&'a MapLink, Internal> {
        self.links.maps.get(index as usize).ok_or_else(|| self.unsupported(Unsupported::Map { index }))
    }

    /// The label of a block or of moves.
    pub(crate) fn label(&mut self, label: crate::codegen::Label) -> Label {
        let number = label.0 as usize;
        if self.current.labels.len() <= number {
            // Most are those of blocks, which come in their order.
            self.current.labels.resize((number + 1).next_power_of_two().max(32), None);
        }
        let asm = &mut self.asm;
        *self.current.labels[number].get_or_insert_with(|| asm.label())
    }

    /// Jumps to the only block that follows, unless it comes next.
    pub(crate) fn go_on(&mut self, ways: Ways<'_>) -> Result<(), Internal> {
        let &[target] = ways.targets else { return Err(Internal("a jump has not one target")) };
        self.jump_unless_next(target, ways);
        Ok(())
    }

    fn jump_unless_next(&mut self, target: crate::codegen::Label, ways: Ways<'_>) {
        if Some(target) != ways.next {
            let label = self.label(target);
            self.asm.jump(label);
        }
    }

    /// Jumps to the first block that may follow if a condition holds, and to the second one otherwise.
    pub(crate) fn branch(&mut self, cond: A::Cond, ways: Ways<'_>) -> Result<(), Internal> {
        let &[taken, other] = ways.targets else { return Err(Internal("a branch has not two targets")) };
        let (cond, first, second) =
            if Some(taken) == ways.next { (A::invert(cond), other, taken) } else { (cond, taken, other) };
        let label = self.label(first);
        self.asm.jump_if(cond, label);
        self.jump_unless_next(second, ways);
        Ok(())
    }

    /// Distances of the words of the stack that are zero on entry from its end, nearest first.
    pub(crate) fn zeroed(&self) -> impl ExactSizeIterator<Item = i32> + use<A> {
        let words = self.current.stack.div_ceil(8).min(64);
        let used = if words == 0 { 0 } else { u64::MAX >> (64 - words) };
        Zeroed(self.current.zeroed & used)
    }
}

/// Words of the stack by the bits of a set.
struct Zeroed(u64);

impl Iterator for Zeroed {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        let word = (self.0 != 0).then_some(self.0.trailing_zeros().cast_signed())?;
        self.0 &= self.0 - 1;
        Some(-8 * (word + 1))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.0.count_ones() as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Zeroed {}
