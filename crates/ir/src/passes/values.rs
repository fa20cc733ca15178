//! Global value numbering: an operation whose result a dominating one has already computed is replaced by that.
//!
//! A load is the same as another one if its address is, and if no class of memory that it reads was written on any way between them.
//! Each write of a class makes a new version of it, as does a block where different versions meet. Loads of memory that others may
//! write at any time all stay: a program that loads a counter, what it guards and the counter again has to see both of its values.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::analyses::Analyses;
use crate::arena::Key as _;
use crate::effects::{Classes, Effects};
use crate::entity::{Block, Inst, Value};
use crate::function::Function;
use crate::op::Op;
use crate::types::Access;
use crate::versions::{Version, Versions};

/// Versions of the classes of memory.
type Memory = [Version; Classes::COUNT];

/// An operation with the versions of the memory that it reads; 0 for classes that it does not read.
type Key = (Op, Memory);

pub(super) fn run(function: &mut Function, analyses: &mut Analyses) {
    let (cfg, tree) = (analyses.cfg(function), analyses.dominators(function));
    let last: Vec<_> = cfg.order().iter().map(|block| last_writes(function, *block)).collect();
    let memory = Versions::of(&cfg, &last);
    let mut known = HashMap::with_capacity_and_hasher(function.inst_count(), RandomState::default());
    // Blocks by their positions, each with the number of entries that are known before it.
    let mut work = vec![(0_u32, 0_usize)];
    let mut added: Vec<Key> = Vec::new();
    while let Some((position, depth)) = work.pop() {
        let Some(&block) = cfg.order().get(position as usize) else { break };
        for key in added.drain(depth..) {
            known.remove(&key);
        }
        number(function, memory.before(position), block, &mut known, &mut added);
        let depth = added.len();
        work.extend(tree.children(position).iter().map(|child| (*child, depth)));
    }
    function.apply_aliases();
}

/// Replaces the values of a block that are known before.
fn number(
    function: &mut Function,
    mut versions: Memory,
    block: Block,
    known: &mut HashMap<Key, Value, RandomState>,
    added: &mut Vec<Key>,
) {
    let mut insts = std::mem::take(&mut function.block_mut(block).insts);
    insts.retain(|&inst| {
        let data = *function.inst(inst);
        let op = data.op.map_operands(|value| function.resolve(value));
        let effects = op.effects();
        write(&effects, &mut versions, version_of(inst));
        keep_new(function, known, added, data.result, &op, &effects, &versions)
    });
    function.block_mut(block).insts = insts;
}

/// Whether an operation stays: it computes what is not known yet.
fn keep_new(
    function: &mut Function,
    known: &mut HashMap<Key, Value, RandomState>,
    added: &mut Vec<Key>,
    result: Option<Value>,
    op: &Op,
    effects: &Effects,
    versions: &Memory,
) -> bool {
    let Some(result) = result.filter(|_| !effects.stays && !op.reads_shared()) else { return true };
    let key = (normal(*op), read(effects, versions));
    match known.get(&key) {
        Some(&value) => {
            function.replace(result, value);
            false
        }
        None => {
            known.insert(key, result);
            added.push(key);
            true
        }
    }
}

/// The versions of the classes that an operation reads.
fn read(effects: &Effects, versions: &Memory) -> Memory {
    let mut read = Memory::default();
    effects.reads.positions().for_each(|class| read[class] = versions[class]);
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
        let writes = function.inst(inst).op.effects().writes;
        writes.positions().for_each(|class| last[class] = Some(version_of(inst)));
    }
    last
}
