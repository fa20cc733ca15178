//! Values that nobody uses, block parameters among them, and stores to the stack that nobody reads.

use crate::ir::analyses::Analyses;
use crate::ir::arena::Side;
use crate::ir::cfg::Cfg;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::{Def, Function};
use crate::ir::op::Op;
use crate::ir::params;
use crate::ir::stack_bytes::StackBytes;

pub(super) fn run(function: &mut Function, analyses: &mut Analyses) {
    let cfg = analyses.cfg(function);
    params::prune(function, &cfg);
    remove_stores(function, &cfg);
    remove_values(function, &cfg);
}

/// Values that are used, directly or by others, by what must stay.
fn remove_values(function: &mut Function, cfg: &Cfg) {
    let mut live: Side<Value, bool> = Side::sized(function.value_count());
    let mut work = Vec::with_capacity(64);
    let mut see = |work: &mut Vec<Value>, value: Value| {
        if !std::mem::replace(&mut live[value], true) {
            work.push(value);
        }
    };
    for &block in cfg.order() {
        let data = function.block(block);
        for &inst in &data.insts {
            let op = &function.inst(inst).op;
            if op.stays() {
                op.operands(|value, _| see(&mut work, value));
            }
        }
        data.terminator.operands(|value, _| see(&mut work, value));
    }
    // The function's own parameters stay: callers give them.
    let params = function.entry().into_iter().flat_map(|entry| &function.block(entry).params);
    params.for_each(|param| see(&mut work, *param));
    while let Some(value) = work.pop() {
        match function.value(value).def {
            Def::Result(inst) => function.inst(inst).op.operands(|value, _| see(&mut work, value)),
            Def::Param(block) => {
                let position = function.block(block).params.iter().position(|param| *param == value);
                let args = cfg.edges(block).iter().filter_map(|edge| {
                    function.block(edge.from).terminator.targets().get(edge.at)?.args.get(position?)
                });
                args.for_each(|arg| see(&mut work, *arg));
            }
            Def::Alias(_) | Def::Nothing => {}
        }
    }
    for &block in cfg.order() {
        if function.block(block).params.iter().any(|param| !live[*param]) {
            let keep: Vec<bool> = function.block(block).params.iter().map(|param| live[*param]).collect();
            params::retain(function, cfg, block, &keep);
        }
        let mut insts = std::mem::take(&mut function.block_mut(block).insts);
        insts.retain(|inst| {
            let data = function.inst(*inst);
            data.op.stays() || data.result.is_some_and(|result| live[result])
        });
        function.block_mut(block).insts = insts;
    }
}

/// Removes stores to bytes of the stack that are written again, or left, before anything may read them.
fn remove_stores(function: &mut Function, cfg: &Cfg) {
    // Memory at printed addresses may be any of the stack.
    if function.prints || !has_stores(function, cfg) {
        return;
    }
    // What callees read counts as read everywhere.
    let shared = StackBytes::of_words(function.shared);
    let mut before: Side<Block, StackBytes> = Side::with_default(shared);
    before.reserve(function.block_count());
    let mut changed = cfg.has_loops();
    while std::mem::take(&mut changed) {
        for &block in cfg.order().iter().rev() {
            let mut live = at_end(function, &before, block).union(shared);
            let insts = function.block(block).insts.iter().rev();
            insts.for_each(|inst| step(function, *inst, &mut live, shared));
            if before[block] != live {
                (before[block], changed) = (live, true);
            }
        }
    }
    let mut dead = Vec::new();
    for &block in cfg.order().iter().rev() {
        let mut live = at_end(function, &before, block).union(shared);
        for (at, &inst) in function.block(block).insts.iter().enumerate().rev() {
            match stored(&function.inst(inst).op) {
                Some(bytes) if !bytes.intersects(live) => dead.push(at),
                Some(bytes) => live = live.minus(bytes).union(shared),
                None => read(function, inst, &mut live),
            }
        }
        before[block] = live;
        if !dead.is_empty() {
            let mut positions = 0..;
            function.block_mut(block).insts.retain(|_| {
                let at = positions.next();
                dead.pop_if(|dead| Some(*dead) == at).is_none()
            });
        }
    }
}

fn has_stores(function: &Function, cfg: &Cfg) -> bool {
    let insts = cfg.order().iter().flat_map(|block| &function.block(*block).insts);
    insts.into_iter().any(|inst| stored(&function.inst(*inst).op).is_some())
}

/// Bytes that may be read after a block.
fn at_end(function: &Function, before: &Side<Block, StackBytes>, block: Block) -> StackBytes {
    let targets = function.block(block).terminator.targets();
    targets.iter().fold(StackBytes::default(), |live, target| live.union(before[target.block]))
}

/// The bytes that a store writes, if it writes nothing else.
#[inline]
fn stored(op: &Op) -> Option<StackBytes> {
    let Op::Store { size, access, .. } = op else { return None };
    if access.region != crate::ir::types::Region::Stack {
        return None;
    }
    let span = access.span.filter(|span| span.min == span.max)?;
    Some(StackBytes::range(span.min, span.min + size.bytes() as i32))
}

/// The bytes that may be read before an instruction, from those that may be read after it; those that are shared are among them.
fn step(function: &Function, inst: Inst, live: &mut StackBytes, shared: StackBytes) {
    let op = &function.inst(inst).op;
    if let Some(bytes) = stored(op) {
        *live = live.minus(bytes).union(shared);
    } else {
        read(function, inst, live);
    }
}

/// Adds the bytes that an instruction may read, unless it is a store to the stack.
#[inline]
fn read(function: &Function, inst: Inst, live: &mut StackBytes) {
    let op = &function.inst(inst).op;
    if op.is_computed() {
        return;
    }
    let read = match op {
        Op::Store { .. } | Op::StoreRelease { .. } => None,
        // Of a call the fact says what it reads; what other functions read of this stack is shared.
        Op::Call { .. } => {
            function.calls[inst].stack_read.map(|read| StackBytes::range(read.start.into(), read.end.into()))
        }
        _ => op
            .access()
            .and_then(|(_, _, size, access)| access.stack_bytes(size))
            .map(|(start, end)| StackBytes::range(start, end)),
    };
    if let Some(read) = read {
        *live = live.union(read);
    }
}
