//! Constant folding, algebra, and what ranges decide: one walk in an order in which definitions come before uses.
//!
//! The second walk over a function looks at what was made since the first one, at uses of values that others were replaced by and
//! of parameters with other ranges, and at what is made of these. `divide` multiplies by the reciprocal of a known divisor, in 64
//! bits where the dividend has no more than 32, else by the high half of a product; a signed division that stays has no test for 0
//! and -1. `rotate` makes `rotl` of two shifts; `swap` compares numbers in network order with constants in reverse order.

mod algebra;
mod branch;
mod convert;
mod divide;
mod reciprocal;
mod rotate;
mod swap;

use paceline_verifier::domain::Number;

use crate::ir::analyses::{Analyses, Folded};
use crate::ir::arena::{Key as _, Side};
use crate::ir::cfg::Cfg;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{Function, InstData, Terminator};
use crate::ir::op::{BinaryOp, Op};
use crate::ir::ranges::{Ranges, of_op};
use crate::ir::types::Type;

pub(super) fn run(function: &mut Function, analyses: &mut Analyses) {
    walk_since(function, analyses, &mut (), analyses.folded().map(|folded| folded.insts));
}

/// The results that the walk has come by, and who decides which of them stand for equal ones.
pub(super) trait Numbering {
    /// The walk comes to the block at a position of the order.
    fn enter(&mut self, position: u32);

    /// Notes an instruction. Returns a value that is the same as its result, if one is known.
    fn note(&mut self, inst: Inst, data: &InstData) -> Option<Value>;
}

/// No result stands for another one.
impl Numbering for () {
    fn enter(&mut self, _: u32) {}

    fn note(&mut self, _: Inst, _: &InstData) -> Option<Value> {
        None
    }
}

/// Simplifies all instructions, and then removes those whose results are known.
pub(super) fn walk(function: &mut Function, analyses: &mut Analyses, numbering: &mut impl Numbering) {
    walk_since(function, analyses, numbering, None);
}

/// As [`walk`]. If an earlier walk ended with `since` instructions, only these are visited again: instructions made since, those with an operand that
/// replaced another value or is a parameter with another range, and the users of their results.
fn walk_since(
    function: &mut Function,
    analyses: &mut Analyses,
    numbering: &mut impl Numbering,
    since: Option<usize>,
) {
    let cfg = analyses.cfg(function);
    let insts = function.insts.len();
    let mut changed: Side<Value, bool> = Side::default();
    let replacements = std::mem::take(&mut function.replacements);
    if since.is_some() {
        changed.cover(function.value_count());
        replacements.into_iter().for_each(|value| changed[value] = true);
    }
    // default: without ranges nothing is known, and less is folded.
    let ranges = analyses.take_ranges().unwrap_or_else(|| Ranges::unknown(function));
    let mut fold = Fold {
        function,
        ranges,
        numbering,
        is_repeated: analyses.folded().is_some(),
        since,
        changed,
        out: Vec::with_capacity(32),
        slot: None,
        decided: false,
    };
    for (position, &block) in (0..).zip(cfg.order()) {
        fold.numbering.enter(position);
        fold.block(&cfg, block);
    }
    let Fold { ranges, decided, .. } = fold;
    function.replacements.clear();
    analyses.keep_ranges(ranges);
    analyses.set_folded(Folded { insts, is_current: !decided });
    if decided {
        analyses.graph_changed();
    }
    // Uses come behind definitions, but for those on ways back.
    if cfg.order().len() == function.layout.len() {
        apply_aliases_on_back_edges(function, &cfg);
    } else {
        function.apply_aliases();
    }
}

/// Rewrites the uses of replaced values at the ends of blocks that lead back, where all others are rewritten.
fn apply_aliases_on_back_edges(function: &mut Function, cfg: &Cfg) {
    for (position, &block) in (0..).zip(cfg.order()) {
        let targets = function.block(block).terminator.targets();
        if targets.iter().any(|target| cfg.position(target.block) <= Some(position)) {
            function.resolve_end(block);
        }
    }
    function.has_replaced = false;
}

/// What an operation becomes.
enum Change {
    /// A value that is there already.
    Value(Value),
    /// Another operation.
    Op(Op),
}

struct Fold<'a, N> {
    function: &'a mut Function,
    ranges: Ranges,
    numbering: &'a mut N,
    /// Whether there was an earlier walk.
    is_repeated: bool,
    /// The number of instructions before that; `None` if all are folded again.
    since: Option<usize>,
    /// Values of which more may be known than in the earlier walk.
    changed: Side<Value, bool>,
    /// Instructions of the block so far.
    out: Vec<Inst>,
    /// Slot of the current instruction.
    slot: Option<u32>,
    /// Whether a branch became a jump.
    decided: bool,
}

impl<N: Numbering> Fold<'_, N> {
    fn block(&mut self, cfg: &Cfg, block: Block) {
        self.params(cfg, block);
        let mut insts = std::mem::take(&mut self.function.block_mut(block).insts);
        for &inst in &insts {
            if self.is_folded(inst) {
                self.out.push(inst);
                continue;
            }
            self.slot = self.function.inst(inst).slot;
            match self.inst(inst).or_else(|| self.numbering.note(inst, self.function.inst(inst))) {
                Some(by) => self.replace(inst, by),
                None => {
                    self.out.push(inst);
                    if let InstData { op: Op::Const { value, .. }, result: Some(result), .. } =
                        *self.function.inst(inst)
                    {
                        self.ranges.set(result, Number::constant(value));
                    }
                }
            }
        }
        self.slot = self.function.block(block).slot;
        self.function.resolve_end(block);
        if let Terminator::Branch { args, .. } = &self.function.block(block).terminator
            && (self.since.is_none() || args.iter().any(|arg| self.changed[*arg]))
        {
            let terminator = std::mem::take(&mut self.function.block_mut(block).terminator);
            self.function.block_mut(block).terminator = self.terminator(terminator);
        }
        let data = self.function.block_mut(block);
        insts.clear();
        insts.append(&mut self.out);
        data.insts = insts;
    }

    /// Sets the ranges of a block's parameters.
    fn params(&mut self, cfg: &Cfg, block: Block) {
        if self.since.is_none() {
            return self.ranges.of_params(self.function, cfg, block);
        }
        let params = &self.function.block(block).params;
        let before: Vec<Option<Number>> =
            params.iter().map(|param| self.ranges.known(*param).copied()).collect();
        self.ranges.of_params(self.function, cfg, block);
        for (param, before) in params.iter().zip(before) {
            self.changed[*param] |= self.ranges.known(*param).copied() != before;
        }
    }

    /// Whether an earlier walk has folded an instruction, and no more is known of its operands since. If not, its result counts as changed.
    fn is_folded(&mut self, inst: Inst) -> bool {
        let Some(since) = self.since else { return false };
        let InstData { op, result, .. } = self.function.inst(inst);
        let mut changed = inst.index() >= since;
        op.operands(|value, _| changed |= self.changed[value]);
        if let Some(result) = result.filter(|_| changed && !matches!(op, Op::Const { .. })) {
            self.changed[result] = true;
        }
        !changed
    }

    /// Replaces the result of an instruction, which is removed.
    fn replace(&mut self, inst: Inst, by: Value) {
        if let Some(result) = self.function.inst(inst).result {
            self.function.replace(result, by);
            if self.since.is_some() {
                // The terminator has this value in place of the result.
                self.changed[by] = true;
            }
        }
    }

    /// Simplifies an instruction until nothing changes. Returns the value that stands for its result, if there is another one.
    fn inst(&mut self, inst: Inst) -> Option<Value> {
        self.function.resolve_operands(inst);
        let InstData { mut op, result, .. } = *self.function.inst(inst);
        // The range of one that stands for no other one is set then.
        if let Op::Const { .. } = op {
            return None;
        }
        let known = |fold: &Self| result.and_then(|result| fold.ranges.known(result)).copied();
        let mut constant = result.and_then(|result| self.ranges.known(result)).map(Number::as_constant);
        // One that is known already is not set again, unless more may be known of the operands.
        let mut range = None;
        if constant.is_none() || self.is_repeated {
            range = of_op(&op, |value| self.range(value));
            if let (Some(new), Some(before)) = (&range, known(self)) {
                range = new.meet(&before).or(Some(before));
            }
            constant = range.as_ref().map(Number::as_constant).or(constant);
        }
        let mut changed = false;
        loop {
            match (constant.flatten(), op.result()) {
                (Some(value), Some(ty)) if !matches!(op, Op::Const { .. }) && op.effects().is_pure() => {
                    (op, changed) = (Op::constant(ty, value), true);
                }
                _ => match self.simplify(&op) {
                    Some(Change::Value(value)) => return Some(self.function.resolve(value)),
                    Some(Change::Op(simpler)) => {
                        (op, changed) = (simpler, true);
                        // Both ranges are right, and either may be the better one.
                        let other = of_op(&op, |value| self.range(value));
                        let before = range.or_else(|| known(self));
                        range = match (before, other) {
                            (Some(a), Some(b)) => a.meet(&b).or(other),
                            (one, other) => one.or(other),
                        };
                        constant = range.as_ref().map(Number::as_constant);
                    }
                    None => break,
                },
            }
        }
        if changed {
            self.function.set_op(inst, op);
        }
        if let (Some(result), Some(range)) = (result, range) {
            self.ranges.set(result, range);
        }
        None
    }

    fn simplify(&mut self, op: &Op) -> Option<Change> {
        match *op {
            Op::Binary { op, ty, args } => self.binary(op, ty, args),
            Op::Neg { .. }
            | Op::SignExtend { .. }
            | Op::ZeroExtend { .. }
            | Op::Truncate { .. }
            | Op::Swap { .. } => self.convert(op),
            Op::Compare { condition, ty, args } => self.compare(condition, ty, args),
            Op::Const { .. } => None,
            _ => self.address(op),
        }
    }

    /// Constant parts of addresses go into the offset of the access.
    fn address(&self, op: &Op) -> Option<Change> {
        let (base, offset, ..) = op.access()?;
        let (inner, distance) = self.sum(base)?;
        let sum = offset.checked_add(i32::try_from(distance).ok()?)?;
        let mut changed = *op;
        match &mut changed {
            Op::Load { base, offset, .. }
            | Op::Store { base, offset, .. }
            | Op::LoadAcquire { base, offset, .. }
            | Op::StoreRelease { base, offset, .. }
            | Op::Atomic { base, offset, .. } => (*base, *offset) = (inner, sum),
            _ => return None,
        }
        Some(Change::Op(changed))
    }

    /// The parts of a value that is another one and a constant.
    fn sum(&self, value: Value) -> Option<(Value, i64)> {
        match *self.function.op_of(value)? {
            Op::Binary { op: BinaryOp::Add, ty: Type::I64, args: [a, b] } => {
                Some((a, self.function.as_const(b)?.cast_signed()))
            }
            _ => None,
        }
    }

    fn range(&self, value: Value) -> &Number {
        self.ranges.get(self.function, value)
    }

    fn op_of(&self, value: Value) -> Option<Op> {
        self.function.op_of(value).copied()
    }

    fn as_const(&self, value: Value) -> Option<u64> {
        self.function.as_const(value)
    }

    /// A new constant before the current instruction.
    fn constant(&mut self, ty: Type, value: u64) -> Value {
        self.emit(Op::constant(ty, value))
    }

    /// A new operation before the current instruction.
    fn emit(&mut self, op: Op) -> Value {
        let inst = self.function.create(op, self.slot);
        if let Some(known) = self.numbering.note(inst, self.function.inst(inst)) {
            return known;
        }
        self.out.push(inst);
        let range = of_op(&op, |value| self.range(value));
        let result = self.function.result(inst);
        if let Some(range) = range {
            self.ranges.set(result, range);
        }
        result
    }

    fn terminator(&mut self, mut terminator: Terminator) -> Terminator {
        while let Some(simpler) = self.branch(&terminator) {
            self.decided |= simpler.targets().len() != terminator.targets().len();
            terminator = simpler;
        }
        terminator
    }
}
