//! Global value numbering: an operation whose result a dominating one has already computed is replaced by that.
//!
//! A load is the same as another one if its address is, and if no class of memory that it reads was written on any way between them.
//! Each write of a class makes a new version of it, as does a block where different versions meet.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::arena::Side;
use crate::cfg::{Cfg, Dominators};
use crate::effects::{Classes, Effects};
use crate::entity::{Block, Value};
use crate::function::Function;
use crate::op::Op;
use crate::types::{Access, Region};

/// Versions of the classes of memory.
type Versions = [u32; Classes::COUNT];

/// An operation with the versions of the memory that it reads; 0 for classes that it does not read.
type Key = (Op, Versions);

pub(super) fn run(function: &mut Function) {
    let cfg = Cfg::of(function);
    let tree = Dominators::of(&cfg);
    let memory = Memory::of(function, &cfg);
    let mut known: HashMap<Key, Value, RandomState> = HashMap::default();
    // Blocks by their positions, each with the number of entries that are known before it.
    let mut work = vec![(0_u32, 0_usize)];
    let mut added: Vec<Key> = Vec::new();
    while let Some((position, depth)) = work.pop() {
        let Some(&block) = cfg.order().get(position as usize) else { break };
        for key in added.drain(depth..) {
            known.remove(&key);
        }
        number(function, &memory, block, &mut known, &mut added);
        let depth = added.len();
        work.extend(tree.children(position).iter().map(|child| (*child, depth)));
    }
    function.apply_aliases();
}

/// Replaces the values of a block that are known before.
fn number(
    function: &mut Function,
    memory: &Memory,
    block: Block,
    known: &mut HashMap<Key, Value, RandomState>,
    added: &mut Vec<Key>,
) {
    let mut versions = memory.before[block].unwrap_or_default();
    let insts = std::mem::take(&mut function.block_mut(block).insts);
    let kept = (memory.first[block] + 1..).zip(insts).filter_map(|(version, inst)| {
        let data = *function.inst(inst);
        let op = data.op.map_operands(|value| function.resolve(value));
        let effects = op.effects();
        write(&effects, &mut versions, version);
        keep_new(function, known, added, data.result, &op, &effects, &versions).then_some(inst)
    });
    let kept = kept.collect();
    function.block_mut(block).insts = kept;
}

/// Whether an operation stays: it computes what is not known yet.
fn keep_new(
    function: &mut Function,
    known: &mut HashMap<Key, Value, RandomState>,
    added: &mut Vec<Key>,
    result: Option<Value>,
    op: &Op,
    effects: &Effects,
    versions: &Versions,
) -> bool {
    let Some(result) = result.filter(|_| !effects.stays) else { return true };
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
fn read(effects: &Effects, versions: &Versions) -> Versions {
    let mut read = Versions::default();
    effects.reads.positions().for_each(|class| read[class] = versions[class]);
    read
}

/// The operation without what makes equal ones different: the order of operands, and facts about the access.
fn normal(mut op: Op) -> Op {
    match &mut op {
        Op::Binary { op, args, .. } if op.is_commutative() => args.sort_unstable(),
        Op::Load { access, .. } => {
            let region = match access.region {
                Region::MapValue(_) => Region::SomeMapValue,
                region => region,
            };
            *access = Access::to(region);
        }
        _ => {}
    }
    op
}

/// Makes new versions of the classes that an operation writes.
fn write(effects: &Effects, versions: &mut Versions, version: u32) {
    effects.writes.positions().for_each(|class| versions[class] = version);
}

/// Versions of memory at the start of each block. Version 0 is that at the function's entry.
struct Memory {
    before: Side<Block, Option<Versions>>,
    /// The version of classes whose versions meet in a block; those of its instructions follow.
    first: Side<Block, u32>,
}

impl Memory {
    fn of(function: &Function, cfg: &Cfg) -> Self {
        let mut memory = Self { before: Side::default(), first: Side::default() };
        let mut next = 1;
        for &block in cfg.order() {
            memory.first[block] = next;
            next += 1 + function.block(block).insts.len() as u32;
        }
        let mut after: Side<Block, Option<Versions>> = Side::default();
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for &block in cfg.order() {
                let before = memory.meet(cfg, &after, block);
                if memory.before[block] != Some(before) {
                    (memory.before[block], changed) = (Some(before), true);
                    after[block] = Some(memory.through(function, block, before));
                }
            }
        }
        memory
    }

    /// The versions at the start of a block. A version that met another one once stays so, which makes the search end.
    fn meet(&self, cfg: &Cfg, after: &Side<Block, Option<Versions>>, block: Block) -> Versions {
        let met = self.first[block];
        let mut known = cfg.edges(block).iter().filter_map(|edge| after[edge.from]);
        let Some(first) = known.next() else { return Versions::default() };
        let joined = known.fold(first, |all, other| {
            std::array::from_fn(|class| if all[class] == other[class] { all[class] } else { met })
        });
        let old = self.before[block].unwrap_or_default();
        std::array::from_fn(|class| if old[class] == met { met } else { joined[class] })
    }

    /// The versions at the end of a block.
    fn through(&self, function: &Function, block: Block, mut versions: Versions) -> Versions {
        for (version, &inst) in (self.first[block] + 1..).zip(&function.block(block).insts) {
            write(&function.inst(inst).op.effects(), &mut versions, version);
        }
        versions
    }
}
