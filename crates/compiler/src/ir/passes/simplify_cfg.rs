//! The graph: blocks that are not reached or empty go, chains of blocks become one, parameters that are always the same go.

use crate::ir::analyses::Analyses;
use crate::ir::arena::Side;
use crate::ir::cfg::{Cfg, Edge};
use crate::ir::entity::{Block, Value};
use crate::ir::function::{Def, Function, Target, Terminator};
use crate::ir::params::{prune, remove_redundant};

pub(super) fn run(function: &mut Function, analyses: &mut Analyses) {
    loop {
        let cfg = analyses.cfg(function);
        let removed = remove_redundant(function, &cfg);
        let threaded = thread(function, &cfg);
        if threaded {
            analyses.graph_changed();
        }
        let merged = merge(function, &analyses.cfg(function));
        if merged.blocks {
            analyses.graph_changed();
        }
        if removed || threaded || merged.params {
            analyses.values_changed();
        }
        // A parameter that became what it was given may make others redundant. Jumps from behind are left to the next run of the pass.
        if !merged.params {
            break;
        }
    }
    prune(function, &analyses.cfg(function));
}

/// Jumps to an empty block that only jumps on go where it goes, and a branch whose targets are the same is a jump. Later blocks come
/// first: the end of a block that is jumped to, unless from behind, is as good as it gets already.
fn thread(function: &mut Function, cfg: &Cfg) -> bool {
    let used = match cfg.order().iter().any(|block| may_be_used_elsewhere(function, cfg, *block)) {
        true => used_elsewhere(function, cfg),
        false => Side::default(),
    };
    let mut changed = false;
    for &block in cfg.order().iter().rev() {
        let is_empty = |target: &Target| function.block(target.block).insts.is_empty();
        let targets = function.block(block).terminator.targets();
        let leads_on = targets.iter().any(is_empty);
        for at in (0..targets.len()).filter(|_| leads_on) {
            let target = &function.block(block).terminator.targets()[at];
            if function.block(target.block).insts.is_empty()
                && let Some(further) = beyond(function, target, &used).filter(|further| further != target)
            {
                changed = true;
                function.block_mut(block).terminator.targets_mut()[at] = further;
            }
        }
        if let Terminator::Branch { targets: [taken, other], .. } = &function.block(block).terminator
            && taken == other
        {
            changed = true;
            let jump = Terminator::Jump(taken.clone());
            function.block_mut(block).terminator = jump;
        }
    }
    changed
}

/// Whether the parameters of an empty block may be used by other blocks, if it only jumps on once jumps were led elsewhere. Blocks that it
/// dominates are reached by its jump: an edge that leads there from before is one around the block.
fn may_be_used_elsewhere(function: &Function, cfg: &Cfg, block: Block) -> bool {
    let data = function.block(block);
    if !data.insts.is_empty() || data.params.is_empty() {
        return false;
    }
    match &data.terminator {
        Terminator::Jump(Target { block: next, .. }) => {
            let is_around = |edge: &Edge| edge.from != block && cfg.position(edge.from) < cfg.position(*next);
            !cfg.edges(*next).iter().any(is_around)
        }
        // Its targets may become the same.
        Terminator::Branch { targets: [taken, other], .. } => {
            let is_empty = |target: &Target| function.block(target.block).insts.is_empty();
            taken.block == other.block || is_empty(taken) || is_empty(other)
        }
        _ => false,
    }
}

/// Blocks whose parameters are used by other blocks, not only by their own end.
fn used_elsewhere(function: &Function, cfg: &Cfg) -> Side<Block, bool> {
    let mut used = Side::sized(function.block_count());
    let mut note = |at: Block, value: Value| {
        if let Def::Param(block) = function.value(value).def
            && block != at
        {
            used[block] = true;
        }
    };
    for &block in cfg.order() {
        let data = function.block(block);
        for &inst in &data.insts {
            function.inst(inst).op.operands(|value, _| note(block, value));
        }
        data.terminator.operands(|value, _| note(block, value));
        data.terminator.targets().iter().flat_map(|target| &target.args).for_each(|&arg| note(block, arg));
    }
    used
}

/// Where a target's block, which is empty, goes, if that is all it does.
fn beyond(function: &Function, target: &Target, used: &Side<Block, bool>) -> Option<Target> {
    let data = function.block(target.block);
    let Terminator::Jump(further) = &data.terminator else { return None };
    if used[target.block] || further.block == target.block {
        return None;
    }
    let given = |value: &Value| {
        let position = data.params.iter().position(|param| param == value);
        position.map_or(*value, |position| target.args[position])
    };
    Some(Target { block: further.block, args: further.args.iter().map(given).collect() })
}

/// Whether blocks became one, and whether parameters were replaced.
#[derive(Clone, Copy, Default)]
struct Merged {
    blocks: bool,
    params: bool,
}

/// Appends a block to the only one before it, which only goes there.
fn merge(function: &mut Function, cfg: &Cfg) -> Merged {
    let mut gone: Side<Block, bool> = Side::default();
    let mut merged = Merged::default();
    for &block in cfg.order() {
        if gone[block] {
            continue;
        }
        while let Terminator::Jump(target) = &function.block(block).terminator
            && cfg.single_edge(target.block).is_some()
            && target.block != block
        {
            let Target { block: next, args } = target.clone();
            let data = std::mem::take(function.block_mut(next));
            merged.params |= !data.params.is_empty();
            for (param, arg) in data.params.into_iter().zip(args) {
                function.replace(param, arg);
            }
            let insts = &mut function.block_mut(block).insts;
            insts.extend(data.insts);
            function.terminate(block, data.terminator, data.slot);
            (gone[next], merged.blocks) = (true, true);
        }
    }
    if merged.blocks {
        function.layout.retain(|block| !gone[*block]);
        function.apply_aliases();
    }
    merged
}
