//! Global value numbering: an operation whose result a dominating one has already computed is replaced by that. Operations are
//! simplified on the way, so that those which are equal look so.
//!
//! A load is the same as another one if its address is, and if no class of memory that it reads was written on any way between them.
//! Each write of a class makes a new version of it, as does a block where different versions meet. Loads of memory that others may
//! write at any time all stay: a program that loads a counter, what it guards and the counter again has to see both of its values.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};

use foldhash::fast::RandomState;

use super::fold::{Numbering, walk};
use crate::ir::analyses::Analyses;
use crate::ir::arena::Key as _;
use crate::ir::cfg::Dominators;
use crate::ir::effects::{Classes, Effects};
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{Function, InstData};
use crate::ir::op::Op;
use crate::ir::types::{Access, Type};
use crate::ir::versions::{Version, Versions};

/// Versions of the classes of memory.
type Memory = [Version; Classes::COUNT];

/// Compact key of a frequent operation whose result depends on its operands alone: the operation, and its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Short(u64, u64);

impl Short {
    #[inline]
    fn of(op: &Op) -> Option<Self> {
        let pair = |[a, b]: [Value; 2]| a.index() as u64 | (b.index() as u64) << 32;
        let one = |arg: Value| arg.index() as u64;
        let what = |tag: u64, ty: Type, more: u64| tag | (ty as u64) << 8 | more << 16;
        Some(match *op {
            Op::Const { ty, value } => Self(what(0, ty, 0), value),
            Op::Binary { op, ty, mut args } => {
                if op.is_commutative() {
                    args.sort_unstable();
                }
                Self(what(1, ty, op as u64), pair(args))
            }
            Op::Compare { condition, ty, args } => Self(what(2, ty, condition as u64), pair(args)),
            Op::ZeroExtend { arg } => Self(3, one(arg)),
            Op::Truncate { arg } => Self(4, one(arg)),
            Op::SignExtend { from, ty, arg } => Self(what(5, ty, from as u64), one(arg)),
            Op::Swap { size, ty, arg } => Self(what(6, ty, size as u64), one(arg)),
            Op::StackAddress { offset } => Self(7, offset.cast_unsigned().into()),
            _ => return None,
        })
    }
}

/// An operation with the versions of the memory that it reads; 0 for classes that it does not read.
#[derive(PartialEq, Eq)]
struct Long {
    op: Op,
    memory: Memory,
}

impl Hash for Long {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.op {
            // The most frequent one, in as few words as it needs.
            Op::Load { size, signed, base, offset, .. } => {
                state.write_u64(size as u64 | u64::from(signed) << 8 | (base.index() as u64) << 32);
                state.write_i32(offset);
            }
            op => op.hash(state),
        }
        // Versions of several classes differ where one of them does.
        let mixed =
            self.memory.iter().fold(0_u64, |mixed, version| mixed.wrapping_mul(31) ^ u64::from(*version));
        state.write_u64(mixed);
    }
}

pub(super) fn run(function: &mut Function, analyses: &mut Analyses) {
    let (cfg, tree) = (analyses.cfg(function), analyses.dominators(function));
    let last: Vec<_> = cfg.order().iter().map(|block| last_writes(function, *block)).collect();
    let before = match Versions::of(&cfg, &last) {
        Ok(before) => before,
        Err(error) => return function.fail(error),
    };
    let mut values = Values {
        tree: &tree,
        before,
        versions: Memory::default(),
        short: HashMap::with_capacity_and_hasher(function.inst_count(), RandomState::default()),
        long: HashMap::default(),
        position: 0,
    };
    walk(function, analyses, &mut values);
}

/// The values of operations, each with the position of its block.
type Known<K> = HashMap<K, (Value, u32), RandomState>;

/// What is known of the blocks that the walk has come by.
struct Values<'a> {
    tree: &'a Dominators,
    before: Versions<{ Classes::COUNT }>,
    /// The versions before the next instruction.
    versions: Memory,
    short: Known<Short>,
    long: Known<Long>,
    /// That of the current block.
    position: u32,
}

impl Numbering for Values<'_> {
    fn enter(&mut self, position: u32) {
        (self.position, self.versions) = (position, self.before.before(position));
    }

    fn note(&mut self, inst: Inst, data: &InstData) -> Option<Value> {
        if let Some(key) = Short::of(&data.op) {
            return same(self.tree, &mut self.short, key, (data.result?, self.position));
        }
        let mut memory = Memory::default();
        if !data.op.is_computed() {
            let effects = data.op.effects();
            write(&effects, &mut self.versions, version_of(inst));
            if effects.stays || data.op.reads_shared() {
                return None;
            }
            memory = read(&effects, &self.versions);
        }
        let key = Long { op: normal(data.op), memory };
        same(self.tree, &mut self.long, key, (data.result?, self.position))
    }
}

/// An equal value from a dominating block, if there is one; otherwise the new value is recorded.
fn same<K: Eq + Hash>(tree: &Dominators, known: &mut Known<K>, key: K, new: (Value, u32)) -> Option<Value> {
    match known.entry(key) {
        Entry::Occupied(mut known) => {
            let (value, position) = *known.get();
            if tree.dominates(position, new.1) {
                return Some(value);
            }
            // Blocks that the other one dominates were walked, but for those that come later for the sake of others.
            known.insert(new);
        }
        Entry::Vacant(place) => {
            place.insert(new);
        }
    }
    None
}

/// The versions of the classes that an operation reads.
fn read(effects: &Effects, versions: &Memory) -> Memory {
    let mut read = Memory::default();
    if !effects.reads.is_empty() {
        effects.reads.positions().for_each(|class| read[class] = versions[class]);
    }
    read
}

/// The operation without what makes equal ones different: facts about the access.
fn normal(mut op: Op) -> Op {
    if let Op::Load { access, .. } = &mut op {
        *access = Access::to(access.region);
    }
    op
}

/// The version that an instruction makes of the classes that it writes.
fn version_of(inst: Inst) -> Version {
    inst.index() as Version + 1
}

/// Makes new versions of the classes that an operation writes.
fn write(effects: &Effects, versions: &mut Memory, version: Version) {
    effects.writes.positions().for_each(|class| versions[class] = version);
}

/// The last versions that a block makes.
fn last_writes(function: &Function, block: Block) -> [Option<Version>; Classes::COUNT] {
    let mut last = [None; Classes::COUNT];
    for &inst in &function.block(block).insts {
        let op = &function.inst(inst).op;
        if !op.stays() {
            continue;
        }
        let writes = op.effects().writes;
        writes.positions().for_each(|class| last[class] = Some(version_of(inst)));
    }
    last
}
