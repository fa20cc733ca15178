//! Functions: blocks, instructions and values, and the changes that passes make to them.

use std::sync::OnceLock;

use paceline_isa::Condition;
use smallvec::SmallVec;

use crate::internal::Internal;
use crate::ir::arena::{Arena, Few, Key};
use crate::ir::entity::{Block, FuncId, Inst, Value};
use crate::ir::op::Op;
use crate::ir::types::{Argument, CallFacts, Kind, STACK_BYTES, Type};

/// The functions of a program; the first is the main program.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The functions.
    pub functions: Arena<FuncId, Function>,
}

impl Module {
    /// The main program; `None` if there is no function.
    #[must_use]
    pub fn main(&self) -> Option<FuncId> {
        self.functions.keys().next()
    }

    /// The function that starts at a slot.
    #[must_use]
    pub fn at_slot(&self, slot: u32) -> Option<FuncId> {
        self.functions.iter().find(|(_, function)| function.slot == slot).map(|(id, _)| id)
    }

    /// Whether it has such an operation.
    #[must_use]
    pub fn any(&self, is: impl Fn(&Op) -> bool) -> bool {
        self.functions.iter().any(|(_, function)| {
            let insts = function.layout.iter().flat_map(|block| &function.block(*block).insts);
            insts.into_iter().any(|inst| is(&function.inst(*inst).op))
        })
    }
}

/// A function.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its first slot in the program.
    pub slot: u32,
    /// The registers that the parameters of the first block come in, in their order.
    pub arguments: Vec<Argument>,
    /// Bytes of stack that the program uses in it, 0 to 512.
    pub stack: u32,
    /// The 8-byte words of its stack that may be read before they are written: bit `i` stands for the word at `r10 - 8 * (i + 1)`.
    /// All others have no value on entry that matters.
    pub zeroed: u64,
    /// The words of its stack that functions read that it calls, or that helpers call for it; same numbering.
    pub shared: u64,
    /// Whether it prints memory at addresses, which may be on its stack: no store to the stack is dead.
    pub prints: bool,
    /// Whether a helper calls it.
    pub is_callback: bool,
    /// The blocks in order; the first is the entry.
    pub layout: Vec<Block>,
    /// Facts of calls.
    pub calls: Few<Inst, CallFacts>,
    pub(crate) blocks: Arena<Block, BlockData>,
    pub(crate) insts: Arena<Inst, InstData>,
    pub(crate) values: Arena<Value, ValueData>,
    /// Whether values were replaced since aliases were last applied.
    pub(crate) has_replaced: bool,
    /// Whether what values point to was not found yet, but for parameters and fields of the context.
    pub(crate) lacks_kinds: bool,
    /// Values that others were replaced by since a pass last looked at them.
    pub(crate) replacements: Vec<Value>,
    /// The first state that is ruled out and was met in it.
    pub(crate) fault: OnceLock<Internal>,
}

/// Parameters of a block or arguments for them: in place up to four, which few blocks exceed.
pub type ValueList = SmallVec<[Value; 4]>;

/// A basic block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockData {
    /// Its parameters.
    pub params: ValueList,
    /// Its instructions.
    pub insts: Vec<Inst>,
    /// Its end.
    pub terminator: Terminator,
    /// Slot of the jump or exit.
    pub slot: Option<u32>,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstData {
    /// The operation.
    pub op: Op,
    /// Its result, if it has one.
    pub result: Option<Value>,
    /// Slot of the program's instruction that it is part of.
    pub slot: Option<u32>,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueData {
    /// Its type.
    pub ty: Type,
    /// Where it comes from.
    pub def: Def,
    /// What it points to.
    pub kind: Kind,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Def {
    /// An instruction.
    Result(Inst),
    /// A parameter of a block.
    Param(Block),
    /// It was replaced by another value.
    Alias(Value),
    /// Nothing defines it any more.
    Nothing,
}

/// A block with arguments for its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The block.
    pub block: Block,
    /// One argument for each parameter.
    pub args: ValueList,
}

impl Target {
    /// A block without parameters.
    #[must_use]
    pub const fn to(block: Block) -> Self {
        Self { block, args: ValueList::new_const() }
    }
}

/// The end of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Terminator {
    /// Not set yet; no valid function has it.
    #[default]
    Unset,
    /// Continues in a block.
    Jump(Target),
    /// Continues in the first block if the condition holds, and in the second otherwise.
    Branch {
        /// Condition.
        condition: Condition,
        /// Type of the operands.
        ty: Type,
        /// Operands.
        args: [Value; 2],
        /// The two blocks.
        targets: [Target; 2],
    },
    /// Continues in the first block if the function's budget of rounds is exhausted, and in the second otherwise, with one less.
    MayGoto([Target; 2]),
    /// Returns an `i64`.
    Return(Value),
    /// Ends the run over a burst at this packet, which gets no result: a program that was tail called has faulted.
    Stop,
}

impl Terminator {
    /// The blocks that may follow.
    #[must_use]
    #[inline]
    pub fn targets(&self) -> &[Target] {
        match self {
            Self::Jump(target) => std::slice::from_ref(target),
            Self::Branch { targets, .. } | Self::MayGoto(targets) => targets,
            Self::Return(_) | Self::Stop | Self::Unset => &[],
        }
    }

    /// The blocks that may follow, to be changed.
    pub fn targets_mut(&mut self) -> &mut [Target] {
        match self {
            Self::Jump(target) => std::slice::from_mut(target),
            Self::Branch { targets, .. } | Self::MayGoto(targets) => targets,
            Self::Return(_) | Self::Stop | Self::Unset => &mut [],
        }
    }

    /// Calls `visit` with each value that the terminator itself reads, and its type; arguments of targets are not among them.
    #[inline]
    pub fn operands(&self, mut visit: impl FnMut(Value, Type)) {
        match self {
            Self::Branch { ty, args, .. } => args.iter().for_each(|arg| visit(*arg, *ty)),
            Self::Return(value) => visit(*value, Type::I64),
            Self::Jump(_) | Self::MayGoto(_) | Self::Stop | Self::Unset => {}
        }
    }

    /// Replaces each value, those of targets too.
    pub fn map_values(&mut self, mut change: impl FnMut(Value) -> Value) {
        match self {
            Self::Branch { args, .. } => args.iter_mut().for_each(|arg| *arg = change(*arg)),
            Self::Return(value) => *value = change(*value),
            Self::Jump(_) | Self::MayGoto(_) | Self::Stop | Self::Unset => {}
        }
        for target in self.targets_mut() {
            target.args.iter_mut().for_each(|arg| *arg = change(*arg));
        }
    }
}

/// Looking at a function.
impl Function {
    /// The entry; `None` in a function without blocks.
    #[must_use]
    #[inline]
    pub fn entry(&self) -> Option<Block> {
        self.layout.first().copied()
    }

    /// A block.
    #[must_use]
    #[inline]
    pub fn block(&self, block: Block) -> &BlockData {
        &self.blocks[block]
    }

    /// An instruction.
    #[must_use]
    #[inline]
    pub fn inst(&self, inst: Inst) -> &InstData {
        &self.insts[inst]
    }

    /// A value.
    #[must_use]
    #[inline]
    pub fn value(&self, value: Value) -> &ValueData {
        &self.values[value]
    }

    /// The value, if the function has it.
    #[must_use]
    #[inline]
    pub fn get_value(&self, value: Value) -> Option<&ValueData> {
        self.values.get(value)
    }

    /// The block, if the function has it.
    #[must_use]
    pub fn get_block(&self, block: Block) -> Option<&BlockData> {
        self.blocks.get(block)
    }

    /// Number of blocks that there ever were: the bound of their numbers.
    #[must_use]
    #[inline]
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Number of values that there ever were: the bound of their numbers.
    #[must_use]
    #[inline]
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Number of instructions in its blocks, terminators aside.
    #[must_use]
    pub fn inst_count(&self) -> usize {
        self.layout.iter().map(|block| self.blocks[*block].insts.len()).sum()
    }

    /// The operation that a value is the result of.
    #[must_use]
    #[inline]
    pub fn op_of(&self, value: Value) -> Option<&Op> {
        match self.values[value].def {
            Def::Result(inst) => Some(&self.insts[inst].op),
            _ => None,
        }
    }

    /// The number, if a value is one.
    #[must_use]
    #[inline]
    pub fn as_const(&self, value: Value) -> Option<u64> {
        match self.op_of(value) {
            Some(Op::Const { value, .. }) => Some(*value),
            _ => None,
        }
    }

    /// The words of its stack that must be zero on entry, by their offsets. What it prints may be anywhere on the stack.
    pub(crate) fn zeroed_words(&self) -> impl Iterator<Item = i32> + use<> {
        let stack = if self.prints { STACK_BYTES.unsigned_abs() } else { self.stack };
        let zeroed = self.zeroed;
        let words = (0..stack.div_ceil(8)).filter(move |word| zeroed >> word & 1 != 0);
        words.map(|word| -8 * (word.cast_signed() + 1))
    }

    /// The value that stands for one that was replaced, or itself.
    #[must_use]
    #[inline]
    pub fn resolve(&self, mut value: Value) -> Value {
        while let Def::Alias(other) = self.values[value].def {
            value = other;
        }
        value
    }
}

/// Faults: bugs of Paceline that nobody on the way can return.
impl Function {
    /// Notes a state that is ruled out. What is made of the function from then on is not used: construction, each pass and code
    /// generation end with the error.
    #[cold]
    pub(crate) fn fail(&self, what: Internal) {
        self.fault.get_or_init(|| what);
    }

    /// The first state that was noted.
    ///
    /// # Errors
    /// There is one.
    pub fn fault(&self) -> Result<(), Internal> {
        self.fault.get().map_or(Ok(()), |what| Err(*what))
    }

    /// The result of an instruction that has one. A fault otherwise, with a value without a definition as the result.
    #[inline]
    pub(crate) fn result(&mut self, inst: Inst) -> Value {
        match self.insts[inst].result {
            Some(result) => result,
            None => self.undefined_value(Internal("an operation has no result")),
        }
    }

    /// A value without a definition, in place of one that is missing, which is a fault.
    #[cold]
    pub(crate) fn undefined_value(&mut self, missing: Internal) -> Value {
        self.fail(missing);
        self.values.push(ValueData { ty: Type::I64, def: Def::Nothing, kind: Kind::Unknown })
    }
}

/// Changing a function.
impl Function {
    /// Makes room for so many more instructions, each with a result.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.insts.reserve(count);
        self.values.reserve(count);
    }

    /// Makes room for so many more blocks.
    pub(crate) fn reserve_blocks(&mut self, count: usize) {
        self.blocks.reserve(count);
        self.layout.reserve(count);
    }

    /// Adds a block at the end of the layout.
    pub fn add_block(&mut self) -> Block {
        let block = self.blocks.push(BlockData::default());
        self.layout.push(block);
        block
    }

    /// Adds blocks outside of the layout until the number is one.
    pub(crate) fn reserve_block(&mut self, block: Block) {
        while self.blocks.len() <= block.index() {
            self.blocks.push(BlockData::default());
        }
    }

    /// Adds values without a definition until the number is one.
    pub(crate) fn reserve_value(&mut self, value: Value) {
        while self.values.len() <= value.index() {
            self.values.push(ValueData { ty: Type::I64, def: Def::Nothing, kind: Kind::Unknown });
        }
    }

    /// Makes a reserved value what it is.
    pub(crate) fn define_value(&mut self, value: Value, data: ValueData) {
        self.values[value] = data;
    }

    /// Adds a parameter to a block. The blocks before it must be given an argument.
    pub fn add_param(&mut self, block: Block, ty: Type, kind: Kind) -> Value {
        let value = self.values.push(ValueData { ty, def: Def::Param(block), kind });
        self.blocks[block].params.push(value);
        value
    }

    /// Creates an instruction with its result, which is in no block yet.
    pub fn create(&mut self, op: Op, slot: Option<u32>) -> Inst {
        let def = Def::Result(Inst::new(self.insts.len()));
        let result = op.result().map(|ty| self.values.push(ValueData { ty, def, kind: Kind::Unknown }));
        self.insts.push(InstData { op, result, slot })
    }

    /// Creates an instruction whose result is a reserved value.
    pub(crate) fn create_with(&mut self, op: Op, slot: Option<u32>, result: Option<Value>) -> Inst {
        self.insts.push(InstData { op, result, slot })
    }

    /// Adds an instruction at the end of a block, and returns its result.
    pub fn append(&mut self, block: Block, op: Op, slot: Option<u32>) -> Option<Value> {
        let inst = self.create(op, slot);
        self.blocks[block].insts.push(inst);
        self.insts[inst].result
    }

    /// Adds an instruction with a result at the end of a block.
    pub(crate) fn append_value(&mut self, block: Block, op: Op, slot: Option<u32>) -> Value {
        let inst = self.create(op, slot);
        self.blocks[block].insts.push(inst);
        self.result(inst)
    }

    /// A block, to be changed.
    pub fn block_mut(&mut self, block: Block) -> &mut BlockData {
        &mut self.blocks[block]
    }

    /// Sets the end of a block.
    pub fn terminate(&mut self, block: Block, terminator: Terminator, slot: Option<u32>) {
        let block = &mut self.blocks[block];
        (block.terminator, block.slot) = (terminator, slot);
    }

    /// Ends a block behind so many of its instructions. Returns the new block that has the other ones and the end; the block has no end.
    pub(crate) fn split(&mut self, block: Block, at: usize) -> Block {
        let rest = self.add_block();
        let data = &mut self.blocks[block];
        let insts = data.insts.split_off(at.min(data.insts.len()));
        let (terminator, slot) = (std::mem::take(&mut data.terminator), data.slot.take());
        let data = &mut self.blocks[rest];
        (data.insts, data.terminator, data.slot) = (insts, terminator, slot);
        rest
    }

    /// Replaces the operation of an instruction by one with a result of the same type.
    pub fn set_op(&mut self, inst: Inst, op: Op) {
        debug_assert_eq!(self.insts[inst].op.result(), op.result());
        self.insts[inst].op = op;
    }

    /// Sets what a value points to.
    pub fn set_kind(&mut self, value: Value, kind: Kind) {
        self.values[value].kind = kind;
    }

    /// Replaces a value by another one in all its uses, once [`apply_aliases`](Self::apply_aliases) is called.
    pub fn replace(&mut self, value: Value, by: Value) {
        let by = self.resolve(by);
        if by == value {
            return;
        }
        self.values[value].def = Def::Alias(by);
        self.has_replaced = true;
        self.replacements.push(by);
    }

    /// Rewrites the uses of replaced values in an instruction.
    pub(crate) fn resolve_operands(&mut self, inst: Inst) {
        if self.has_replaced {
            let values = &mut self.values;
            self.insts[inst].op.change_operands(|value| resolve_in(values, value));
        }
    }

    /// Rewrites the uses of replaced values at the end of a block.
    pub(crate) fn resolve_end(&mut self, block: Block) {
        if self.has_replaced {
            let values = &mut self.values;
            self.blocks[block].terminator.map_values(|value| resolve_in(values, value));
        }
    }

    /// Rewrites the uses of replaced values in the blocks of the layout. Instructions whose results were replaced and parameters that were replaced must be
    /// removed by the caller.
    pub fn apply_aliases(&mut self) {
        if !std::mem::take(&mut self.has_replaced) {
            return;
        }
        let (insts, values) = (&mut self.insts, &mut self.values);
        let mut resolve = |value: Value| resolve_in(values, value);
        for &block in &self.layout {
            let block = &mut self.blocks[block];
            for &inst in &block.insts {
                insts[inst].op.change_operands(&mut resolve);
            }
            block.terminator.map_values(&mut resolve);
        }
    }

    /// Notes that a value, unless it was replaced, has no definition any more.
    pub(crate) fn undefine(&mut self, value: Value) {
        if matches!(self.values[value].def, Def::Param(_)) {
            self.values[value].def = Def::Nothing;
        }
    }
}

/// The value that stands for one that was replaced, or itself.
#[inline]
fn resolve_in(values: &mut Arena<Value, ValueData>, value: Value) -> Value {
    match values[value].def {
        Def::Alias(_) => resolve_shortening(values, value),
        _ => value,
    }
}

/// The value that stands for one that was replaced. Each value on the way names it from now on, so that chains of them are walked once.
#[cold]
fn resolve_shortening(values: &mut Arena<Value, ValueData>, value: Value) -> Value {
    let mut last = value;
    while let Def::Alias(next) = values[last].def {
        last = next;
    }
    let mut at = value;
    while let Def::Alias(next) = values[at].def
        && next != last
    {
        values[at].def = Def::Alias(last);
        at = next;
    }
    last
}
