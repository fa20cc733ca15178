//! Variables to values: the on-the-fly construction of Braun et al., "Simple and Efficient Construction of Static Single Assignment
//! Form", for graphs whose edges are known before.
//!
//! Blocks are filled in reverse post-order. A block with several predecessors gets a parameter for each variable that is read in it
//! or behind it; the arguments are set when all blocks are filled. Parameters whose arguments are all the same are removed at the end.

use crate::arena::Key;
use crate::cfg::{Cfg, Edge};
use crate::entity::{Block, Value};
use crate::function::Function;
use crate::params;
use crate::types::{Kind, Type};

/// Values of variables, all of them `i64`.
pub(crate) struct Variables {
    count: usize,
    /// The value at the end of each block, as far as it was asked for or written, by block and variable.
    values: Vec<Option<Value>>,
    /// Parameters without arguments: block, variable, position among the block's parameters.
    waiting: Vec<(Block, usize, usize)>,
    /// The blocks that a read passes.
    passed: Vec<Block>,
}

impl Variables {
    /// So many variables in a function.
    pub(crate) fn new(function: &Function, count: usize) -> Self {
        let values = vec![None; function.block_count() * count];
        Self { count, values, waiting: Vec::new(), passed: Vec::new() }
    }

    fn place(&mut self, block: Block, variable: usize) -> &mut Option<Value> {
        &mut self.values[block.index() * self.count + variable]
    }

    /// Assigns a value to a variable.
    pub(crate) fn write(&mut self, block: Block, variable: usize, value: Value) {
        *self.place(block, variable) = Some(value);
    }

    /// The value of a variable at this point of a block that is being filled, or at the end of one that is filled. `initial` gives the
    /// value at the entry of the function.
    pub(crate) fn read(
        &mut self,
        function: &mut Function,
        cfg: &Cfg,
        block: Block,
        variable: usize,
        initial: &mut impl FnMut(&mut Function, usize) -> Value,
    ) -> Value {
        let mut at = block;
        let value = loop {
            if let Some(value) = *self.place(at, variable) {
                break value;
            }
            self.passed.push(at);
            match *cfg.edges(at) {
                [] => break initial(function, variable),
                [Edge { from, .. }] => at = from,
                _ => {
                    let position = function.block(at).params.len();
                    self.waiting.push((at, variable, position));
                    break function.add_param(at, Type::I64, Kind::Unknown);
                }
            }
        };
        while let Some(block) = self.passed.pop() {
            self.write(block, variable, value);
        }
        value
    }

    /// Sets the arguments of all parameters, once all blocks are filled and have their ends, and removes those that are not needed.
    pub(crate) fn finish(
        mut self,
        function: &mut Function,
        cfg: &Cfg,
        initial: &mut impl FnMut(&mut Function, usize) -> Value,
    ) {
        while let Some((block, variable, position)) = self.waiting.pop() {
            for &Edge { from, at } in cfg.edges(block) {
                let value = self.read(function, cfg, from, variable, initial);
                let Some(target) = function.block_mut(from).terminator.targets_mut().get_mut(at) else {
                    continue;
                };
                if target.args.len() <= position {
                    // Those in between are set too, as each of them waits.
                    target.args.resize(position + 1, value);
                }
                target.args[position] = value;
            }
        }
        params::remove_redundant(function, cfg);
    }
}
