//! Parameters of blocks: removed together with their arguments.

use crate::ir::arena::Side;
use crate::ir::cfg::{Cfg, Edge};
use crate::ir::entity::{Block, Value};
use crate::ir::function::{Function, ValueList};

/// Removes blocks that are not reached from the layout.
pub(crate) fn prune(function: &mut Function, cfg: &Cfg) {
    function.layout.retain(|block| cfg.position(*block).is_some());
}

/// Removes parameters of blocks whose arguments are all the same value or the parameter itself. Returns whether there were any.
pub(crate) fn remove_redundant(function: &mut Function, cfg: &Cfg) -> bool {
    prune(function, cfg);
    let mut removed: Side<Block, bool> = Side::default();
    let (mut changed, mut any) = (true, false);
    while std::mem::take(&mut changed) {
        // Arguments come from earlier blocks, but for those on ways back.
        for &block in cfg.order() {
            for position in 0..function.block(block).params.len() {
                let param = function.block(block).params[position];
                if function.resolve(param) != param {
                    continue;
                }
                if let Some(value) = only_argument(function, cfg, block, position, param) {
                    function.replace(param, value);
                    (removed[block], changed, any) = (true, cfg.has_loops(), true);
                }
            }
        }
    }
    if any {
        for &block in cfg.order() {
            if removed[block] {
                let params = &function.block(block).params;
                let keep: Vec<bool> = params.iter().map(|&param| function.resolve(param) == param).collect();
                retain(function, cfg, block, &keep);
            }
        }
        function.apply_aliases();
    }
    any
}

/// The only value that a parameter can have besides itself.
fn only_argument(
    function: &Function,
    cfg: &Cfg,
    block: Block,
    position: usize,
    param: Value,
) -> Option<Value> {
    let mut only = None;
    for &Edge { from, at } in cfg.edges(block) {
        let arg = function.block(from).terminator.targets().get(at)?.args.get(position)?;
        let arg = function.resolve(*arg);
        if arg != param && only.replace(arg).is_some_and(|other| other != arg) {
            return None;
        }
    }
    only
}

/// Removes the parameters of a block that are not to be kept, and their arguments. No block outside of the graph may be in the layout.
pub(crate) fn retain(function: &mut Function, cfg: &Cfg, block: Block, keep: &[bool]) {
    for (at, &param) in function.block(block).params.clone().iter().enumerate() {
        if keep.get(at) == Some(&false) {
            function.undefine(param);
        }
    }
    let kept = |values: &mut ValueList| {
        let mut keep = keep.iter();
        values.retain(|_| keep.next() != Some(&false));
    };
    kept(&mut function.block_mut(block).params);
    for &Edge { from, at } in cfg.edges(block) {
        kept(&mut function.block_mut(from).terminator.targets_mut()[at].args);
    }
}
