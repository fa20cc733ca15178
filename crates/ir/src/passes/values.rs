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
use crate::analyses::Analyses;
use crate::arena::Key as _;
use crate::cfg::Dominators;
use crate::effects::{Classes, Effects};
use crate::entity::{Block, Inst, Value};
use crate::function::{Function, InstData};
use crate::op::Op;
use crate::types::Access;
use crate::versions::{Version, Versions};

/// Versions of the classes of memory.
type Memory = [Version; Classes::COUNT];

/// An operation with the versions of the memory that it reads; 0 for classes that it does not read.
#[derive(PartialEq, Eq)]
struct Key {
    op: Op,
    memory: Memory,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.op {
            // The most frequent ones, in as few words as they need.
            Op::Const { ty, value } => {
                state.write_u64(ty as u64);
                return state.write_u64(value);
            }
            Op::Binary { op, ty, args: [a, b] } => {
                state.write_u64(2 | ty as u64 | (op as u64) << 2);
                return state.write_u64(a.index() as u64 | (b.index() as u64) << 32);
            }
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
    let mut values = Values {
        tree: &tree,
        before: Versions::of(&cfg, &last),
        versions: Memory::default(),
        known: HashMap::with_capacity_and_hasher(function.inst_count(), RandomState::default()),
        position: 0,
    };
    walk(function, analyses, &mut values);
}

/// What is known of the blocks that the walk has come by.
struct Values<'a> {
    tree: &'a Dominators,
    before: Versions<{ Classes::COUNT }>,
    /// The versions before the next instruction.
    versions: Memory,
    /// The values of operations, each with the position of its block.
    known: HashMap<Key, (Value, u32), RandomState>,
    /// That of the current block.
    position: u32,
}

impl Numbering for Values<'_> {
    fn enter(&mut self, position: u32) {
        (self.position, self.versions) = (position, self.before.before(position));
    }

    fn note(&mut self, inst: Inst, data: &InstData) -> Option<Value> {
        let mut memory = Memory::default();
        if !data.op.is_computed() {
            let effects = data.op.effects();
            write(&effects, &mut self.versions, version_of(inst));
            if effects.stays || data.op.reads_shared() {
                return None;
            }
            memory = read(&effects, &self.versions);
        }
        let result = data.result?;
        let key = Key { op: normal(data.op), memory };
        match self.known.entry(key) {
            Entry::Occupied(mut known) => {
                let (value, position) = *known.get();
                if self.tree.dominates(position, self.position) {
                    return Some(value);
                }
                // Blocks that the other one dominates were walked, but for those that come later for the sake of others.
                known.insert((result, self.position));
            }
            Entry::Vacant(place) => {
                place.insert((result, self.position));
            }
        }
        None
    }
}

/// The versions of the classes that an operation reads.
fn read(effects: &Effects, versions: &Memory) -> Memory {
    let mut read = Memory::default();
    if !effects.reads.is_empty() {
        effects.reads.positions().for_each(|class| read[class] = versions[class]);
    }
    read
}

/// The operation without what makes equal ones different: the order of operands, and facts about the access.
fn normal(mut op: Op) -> Op {
    match &mut op {
        Op::Binary { op, args, .. } if op.is_commutative() => args.sort_unstable(),
        Op::Load { access, .. } => {
            *access = Access::to(access.region);
        }
        _ => {}
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
