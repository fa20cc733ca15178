//! The stack that a function uses in its final form: how much of it, and which words must be zero on entry.

use crate::ir::arena::Side;
use crate::ir::cfg::Cfg;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::Function;
use crate::ir::op::{Callee, Op};
use crate::ir::stack_bytes::StackBytes;
use crate::ir::types::Region;

/// Takes from a function's stack and from the words that must be zero what it does not need any more. What the verifier has found is
/// true of it still, and may be less than what is found here without following paths.
pub(crate) fn update(function: &mut Function, cfg: &Cfg) {
    if function.prints {
        return;
    }
    if function.stack > 0 && !(has_addresses(function) && has_given_addresses(function)) {
        let insts = function.layout.iter().flat_map(|block| &function.block(*block).insts);
        let used = insts.map(|inst| lowest(&function.inst(*inst).op)).max();
        // default: a function without operations uses no stack.
        function.stack = function.stack.min(used.unwrap_or(0));
    }
    if function.zeroed != 0 {
        function.zeroed &= Uses::of(function, cfg).read_before_written(cfg).words();
    }
}

/// What a block does with the stack.
#[derive(Clone, Copy, Debug, Default)]
struct BlockUse {
    /// Bytes that are read and that the block has not written before.
    read: StackBytes,
    /// Bytes that are written on all ways through it.
    written: StackBytes,
}

struct Uses(Side<Block, BlockUse>);

impl Uses {
    fn of(function: &Function, cfg: &Cfg) -> Self {
        let mut uses = Side::sized(function.block_count());
        for &block in cfg.order() {
            let mut here = BlockUse::default();
            for &inst in &function.block(block).insts {
                let (read, written) = of_inst(function, inst);
                here.read = here.read.union(read.minus(here.written));
                here.written = here.written.union(written);
            }
            uses[block] = here;
        }
        Self(uses)
    }

    /// Bytes that are read on a way on which they were not written before.
    fn read_before_written(&self, cfg: &Cfg) -> StackBytes {
        // Bytes that are written before a block, on all ways as far as they are known.
        let mut before = vec![StackBytes::ALL; cfg.order().len()];
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (position, _) in cfg.order().iter().enumerate() {
                let after =
                    |from: &u32| before[*from as usize].union(self.0[cfg.order()[*from as usize]].written);
                let predecessors = cfg.predecessors(position as u32).iter().map(after);
                // default: nothing is written before the entry, which nothing precedes.
                let written = predecessors.reduce(StackBytes::intersection).unwrap_or_default();
                if before[position] != written {
                    (before[position], changed) = (written, cfg.has_loops());
                }
            }
        }
        let blocks = cfg.order().iter().zip(before);
        blocks.fold(StackBytes::default(), |all, (block, written)| {
            all.union(self.0[*block].read.minus(written))
        })
    }
}

/// The bytes that an instruction may read, and those that it writes in any case.
fn of_inst(function: &Function, inst: Inst) -> (StackBytes, StackBytes) {
    let none = StackBytes::default();
    let op = &function.inst(inst).op;
    if let Op::Call { callee, .. } = op {
        let facts = &function.calls[inst];
        let read =
            facts.stack_read.map_or(none, |read| StackBytes::range(read.start.into(), read.end.into()));
        // What other functions read of this stack are the shared words.
        let calls = matches!(callee, Callee::Function(_)) || facts.callback.is_some();
        let shared = if calls { StackBytes::of_words(function.shared) } else { none };
        return (read.union(shared), none);
    }
    let Some((_, _, size, access)) = op.access() else { return (none, none) };
    let touched = access.stack_bytes(size).map_or(none, |(start, end)| StackBytes::range(start, end));
    let is_store = matches!(op, Op::Store { .. } | Op::StoreRelease { .. });
    let is_exact = access.region == Region::Stack && access.span.is_some_and(|span| span.min == span.max);
    match (is_store, is_exact) {
        (true, true) => (none, touched),
        (true, false) => (none, none),
        (false, _) => (touched, none),
    }
}

/// Whether there are addresses in the stack.
fn has_addresses(function: &Function) -> bool {
    let mut insts = function.layout.iter().flat_map(|block| &function.block(*block).insts);
    insts.any(|inst| matches!(function.inst(*inst).op, Op::StackAddress { .. }))
}

/// Whether an address in the stack is used for anything but accesses. Whoever has it may use what lies above it, and below it.
fn has_given_addresses(function: &Function) -> bool {
    let is_address = |value: Value| matches!(function.op_of(value), Some(Op::StackAddress { .. }));
    function.layout.iter().any(|block| {
        let data = function.block(*block);
        let mut given = data.insts.iter().any(|inst| gives(&function.inst(*inst).op, is_address));
        data.terminator.operands(|value, _| given |= is_address(value));
        given || data.terminator.targets().iter().flat_map(|target| &target.args).any(|arg| is_address(*arg))
    })
}

/// Whether an operation uses an address for anything but an access.
fn gives(op: &Op, is_address: impl Fn(Value) -> bool) -> bool {
    let base = op.access().map(|(base, ..)| base);
    let (mut given, mut bases) = (false, 0);
    op.operands(|value, _| {
        // The base of an access is its first operand.
        bases += u32::from(Some(value) == base);
        given = given || ((Some(value) != base || bases > 1) && is_address(value));
    });
    given
}

/// How far from its end an access uses the stack, in bytes.
fn lowest(op: &Op) -> u32 {
    let touched = op.access().and_then(|(_, _, size, access)| access.stack_bytes(size));
    touched.map_or(0, |(start, _)| start.min(0).unsigned_abs())
}
