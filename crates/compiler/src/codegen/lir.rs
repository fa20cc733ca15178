//! Instructions with virtual registers.
//!
//! Blocks are in the order of the code, each after the blocks that dominate it. A virtual register is defined once, by an instruction or as a parameter of a block, and the
//! definition dominates its uses. The last instruction of a block is its end, which defines nothing.

use std::ops::Range;

use crate::codegen::reuse::empty;

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vreg(pub u32);

/// A register of the machine, 0 to 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg(pub u8);

/// A set of registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegSet(pub u32);

impl RegSet {
    /// Number of registers that a set can have.
    pub const MOST: usize = 32;

    /// The first registers, fewer than all.
    #[must_use]
    pub(crate) const fn first_ones(count: u8) -> Self {
        Self((1 << count) - 1)
    }

    /// Whether it has a register.
    #[must_use]
    pub const fn has(self, reg: Reg) -> bool {
        self.0 >> reg.0 & 1 != 0
    }

    /// With a register.
    #[must_use]
    pub const fn with(self, reg: Reg) -> Self {
        Self(self.0 | 1 << reg.0)
    }

    /// Without a register.
    #[must_use]
    pub const fn without(self, reg: Reg) -> Self {
        Self(self.0 & !(1 << reg.0))
    }

    /// The registers of either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Its first register.
    #[must_use]
    #[inline]
    pub const fn first(self) -> Option<Reg> {
        if self.0 == 0 { None } else { Some(Reg(self.0.trailing_zeros() as u8)) }
    }

    /// Its registers, the first ones first.
    pub fn iter(self) -> impl Iterator<Item = Reg> {
        let mut left = self;
        std::iter::from_fn(move || {
            let first = left.first()?;
            left.0 &= left.0 - 1;
            Some(first)
        })
    }
}

/// Whether an operand is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Read, before any definition is written.
    Use,
    /// Written.
    Def,
}

/// The registers that an operand may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Any that can be allocated.
    Any,
    /// This one.
    Fixed(Reg),
    /// For a definition: one that no use is in, because it is written before they are all read.
    Early,
    /// For a definition, the last operand: that of a use, by its position among the instruction's operands. No other use may be in it.
    Reuse(u8),
}

/// The operand whose register a definition takes, by its position among the instruction's.
#[inline]
pub(crate) fn taken(operands: &[Operand]) -> Option<usize> {
    match operands.last()?.place {
        Place::Reuse(taken) => Some(usize::from(taken)),
        _ => None,
    }
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The virtual register.
    pub vreg: Vreg,
    /// Whether it is read or written.
    pub role: Role,
    /// Where it may be.
    pub place: Place,
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Inst<O> {
    /// What it does.
    pub op: O,
    /// Positions of its operands in the function's: uses, then definitions.
    pub operands: Range<u32>,
    /// Registers that it overwrites besides its definitions, after it has read its uses.
    pub clobbers: RegSet,
    /// Slot of the program's instruction that it is part of.
    pub origin: Option<u32>,
}

/// A block that follows, with what its parameters become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its number.
    pub block: u32,
    /// Positions of its arguments in the function's lists: one for each parameter.
    pub args: Range<u32>,
}

/// A block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Positions of its parameters in the function's lists. The first block has none: its first instruction defines what the function
    /// is given.
    pub params: Range<u32>,
    /// Positions of its instructions in the function's; at least one.
    pub insts: Range<u32>,
    /// Positions in the function's of the blocks that may follow, in an order that the last instruction knows.
    pub targets: Range<u32>,
    /// Number of loops that it is in.
    pub depth: u32,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function<O> {
    /// Its blocks in the order of the code; the first is the entry.
    pub blocks: Vec<Block>,
    /// The instructions of all blocks.
    pub insts: Vec<Inst<O>>,
    /// The operands of all instructions.
    pub operands: Vec<Operand>,
    /// The blocks that may follow all blocks.
    pub targets: Vec<Target>,
    /// The parameters and arguments of all blocks.
    pub lists: Vec<Vreg>,
    /// Number of virtual registers.
    pub vregs: u32,
}

impl<O> Default for Function<O> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            insts: Vec::new(),
            operands: Vec::new(),
            targets: Vec::new(),
            lists: Vec::new(),
            vregs: 0,
        }
    }
}

impl<O> Function<O> {
    /// Begins another function in the memory of this one, with virtual registers, and room for blocks and instructions.
    pub(crate) fn begin_function(&mut self, vregs: u32, blocks: usize, insts: usize) {
        self.vregs = vregs;
        empty(&mut self.blocks, blocks + 2);
        empty(&mut self.insts, insts + blocks);
        empty(&mut self.operands, 2 * insts);
        empty(&mut self.targets, 2 * blocks + 2);
        empty(&mut self.lists, 2 * blocks);
    }

    /// Adds a virtual register.
    pub fn add_vreg(&mut self) -> Vreg {
        self.vregs += 1;
        Vreg(self.vregs - 1)
    }

    /// Begins the next block.
    pub fn begin(&mut self, params: impl IntoIterator<Item = Vreg>, depth: u32) {
        let (at, first) = (self.insts.len() as u32, self.lists.len() as u32);
        self.lists.extend(params);
        let (params, targets) = (first..self.lists.len() as u32, self.targets.len() as u32);
        self.blocks.push(Block { params, insts: at..at, targets: targets..targets, depth });
    }

    /// Adds an instruction to the block that was begun last.
    #[inline]
    pub fn push(&mut self, op: O, operands: &[Operand], clobbers: RegSet, origin: Option<u32>) {
        self.push_each(op, operands.iter().copied(), clobbers, origin);
    }

    /// The same with operands one by one.
    #[inline]
    pub fn push_each(
        &mut self,
        op: O,
        operands: impl Iterator<Item = Operand>,
        clobbers: RegSet,
        origin: Option<u32>,
    ) {
        let start = self.operands.len() as u32;
        self.operands.extend(operands);
        self.insts.push(Inst { op, operands: start..self.operands.len() as u32, clobbers, origin });
        if let Some(block) = self.blocks.last_mut() {
            block.insts.end = self.insts.len() as u32;
        }
    }

    /// Adds a block that may follow the one that was begun last. Its arguments are those at the end of the lists from a position on.
    pub fn add_target(&mut self, block: u32, args_from: u32) {
        self.targets.push(Target { block, args: args_from..self.lists.len() as u32 });
        if let Some(block) = self.blocks.last_mut() {
            block.targets.end = self.targets.len() as u32;
        }
    }

    /// Sets the blocks that may follow one, with their arguments.
    pub fn set_targets(&mut self, block: u32, targets: &[(u32, &[Vreg])]) {
        let first = self.targets.len() as u32;
        for (target, args) in targets {
            let from = self.lists.len() as u32;
            self.lists.extend_from_slice(args);
            self.targets.push(Target { block: *target, args: from..self.lists.len() as u32 });
        }
        self.blocks[block as usize].targets = first..self.targets.len() as u32;
    }

    /// Adds the instructions of a block of another function, and what may follow it so many blocks further on, to the block that was
    /// begun last. A virtual register becomes another one; the rest have the numbers that they have there.
    pub(crate) fn copy_block(&mut self, from: &Self, block: &Block, renamed: [Vreg; 2], further: u32)
    where
        O: Clone,
    {
        let [old, new] = renamed;
        let renamed = |vreg: Vreg| if vreg == old { new } else { vreg };
        let insts = &from.insts[block.insts.start as usize..block.insts.end as usize];
        let [start, end] =
            [insts.first(), insts.last()].map(|inst| inst.map_or(0..0, |inst| inst.operands.clone()));
        let (start, here) = (start.start, self.operands.len() as u32);
        let operands = &from.operands[start as usize..end.end as usize];
        self.operands
            .extend(operands.iter().map(|operand| Operand { vreg: renamed(operand.vreg), ..*operand }));
        self.insts.extend(insts.iter().map(|inst| {
            let operands = inst.operands.start - start + here..inst.operands.end - start + here;
            Inst { op: inst.op.clone(), operands, ..*inst }
        }));
        for target in from.targets_of(block) {
            let first = self.lists.len() as u32;
            self.lists.extend(from.args_of(target).iter().map(|arg| renamed(*arg)));
            self.targets.push(Target { block: target.block + further, args: first..self.lists.len() as u32 });
        }
        if let Some(block) = self.blocks.last_mut() {
            (block.insts.end, block.targets.end) = (self.insts.len() as u32, self.targets.len() as u32);
        }
    }

    /// The parameters of a block.
    #[must_use]
    #[inline]
    pub fn params_of(&self, block: &Block) -> &[Vreg] {
        &self.lists[block.params.start as usize..block.params.end as usize]
    }

    /// The blocks that may follow a block.
    #[must_use]
    #[inline]
    pub fn targets_of(&self, block: &Block) -> &[Target] {
        &self.targets[block.targets.start as usize..block.targets.end as usize]
    }

    /// The arguments for a block that follows.
    #[must_use]
    #[inline]
    pub fn args_of(&self, target: &Target) -> &[Vreg] {
        &self.lists[target.args.start as usize..target.args.end as usize]
    }

    /// The operands of an instruction.
    #[must_use]
    #[inline]
    pub fn operands_of(&self, inst: &Inst<O>) -> &[Operand] {
        &self.operands[inst.operands.start as usize..inst.operands.end as usize]
    }
}
