//! Variables to values, block by block: what Braun et al., "Simple and Efficient Construction of Static Single Assignment Form", do for
//! blocks whose predecessors are all known.
//!
//! Blocks are filled in reverse post-order. A block starts with what all its predecessors end with. Where they differ, or one of them comes
//! later, the variable gets a parameter of the block once it is read; the arguments are set when all blocks are filled. Parameters whose
//! arguments are all the same, of which only loops have many, are removed at the end.

use crate::ir::arena::Key;
use crate::ir::cfg::{Cfg, Edge};
use crate::ir::entity::{Block, Value};
use crate::ir::function::Function;
use crate::ir::params;
use crate::ir::types::{Kind, Type};

/// What a variable has at a point of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// What it has at the entry of the function.
    Initial,
    /// A value that was written.
    Value(Value),
    /// What it has at the start of a block where different ways meet.
    Met(Block),
}

/// Values of variables, all of them `i64`.
pub(crate) struct Variables {
    count: usize,
    /// By block and variable: what it has at the end, as far as the block is filled.
    holds: Vec<Holds>,
    /// By block and variable: the parameter for it.
    params: Vec<Option<Value>>,
    /// Parameters without arguments: block, variable, position among the block's parameters.
    waiting: Vec<(Block, usize, usize)>,
}

impl Variables {
    /// So many variables in a function.
    pub(crate) fn new(function: &Function, count: usize) -> Self {
        let places = function.block_count() * count;
        Self { count, holds: vec![Holds::Initial; places], params: vec![None; places], waiting: Vec::new() }
    }

    /// Where the variables of a block are.
    fn place(&self, block: Block) -> usize {
        block.index() * self.count
    }

    /// Starts to fill a block. Those before it are filled, but for those that come later in the order.
    pub(crate) fn enter(&mut self, cfg: &Cfg, block: Block) {
        let place = self.place(block);
        let Some((first, others)) = cfg.edges(block).split_first() else { return };
        let first = self.place(first.from);
        self.holds.copy_within(first..first + self.count, place);
        let is_back = |edge: &Edge| cfg.position(edge.from) >= cfg.position(block);
        if !others.is_empty() && cfg.edges(block).iter().any(is_back) {
            self.holds[place..place + self.count].fill(Holds::Met(block));
            return;
        }
        for other in others {
            let other = self.place(other.from);
            for at in 0..self.count {
                if self.holds[place + at] != self.holds[other + at] {
                    self.holds[place + at] = Holds::Met(block);
                }
            }
        }
    }

    /// Assigns a value to a variable.
    pub(crate) fn write(&mut self, block: Block, variable: usize, value: Value) {
        let place = self.place(block) + variable;
        self.holds[place] = Holds::Value(value);
    }

    /// The value of a variable at this point of a block that is being filled, or at the end of one that is filled. `initial` gives the
    /// value at the entry of the function.
    pub(crate) fn read(
        &mut self,
        function: &mut Function,
        block: Block,
        variable: usize,
        initial: &mut impl FnMut(&mut Function, usize) -> Value,
    ) -> Value {
        match self.holds[self.place(block) + variable] {
            Holds::Initial => initial(function, variable),
            Holds::Value(value) => value,
            Holds::Met(at) => {
                let place = self.place(at) + variable;
                *self.params[place].get_or_insert_with(|| {
                    self.waiting.push((at, variable, function.block(at).params.len()));
                    function.add_param(at, Type::I64, Kind::Unknown)
                })
            }
        }
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
                let value = self.read(function, from, variable, initial);
                let target = &mut function.block_mut(from).terminator.targets_mut()[at];
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
