//! A chain that is being made a function.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::error::ChainError;
use super::part::{Placed, Rules};
use super::returns::Main;
use crate::ir::entity::{Block, Value};
use crate::ir::function::Function;
use crate::ir::types::{Kind, Type};

/// All programs together may be copied so many times.
const COPIES: usize = 3;

/// A chain that is being made a function.
pub(super) struct Fusion<'a> {
    pub(super) programs: &'a [Placed<'a>],
    pub(super) rules: &'a Rules,
    pub(super) function: Function,
    pub(super) context: Value,
    /// By program: the copy for all exits that have none of their own.
    pub(super) common: Vec<Option<Block>>,
    /// Copies that are entered and not made yet.
    pub(super) waiting: Vec<Entered>,
    /// The ends with each verdict.
    pub(super) ends: HashMap<u32, Block, RandomState>,
    /// Operations that may still be copied for exits of their own.
    pub(super) budget: usize,
}

/// A copy of a program that is entered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entered {
    pub(super) part: usize,
    pub(super) block: Block,
    /// The programs that may still run, if they are counted.
    pub(super) left: Option<Value>,
    /// Whether it is for some exits only, at which more is known.
    pub(super) specialized: bool,
}

impl<'a> Fusion<'a> {
    pub(super) fn new(programs: &'a [Placed<'a>], rules: &'a Rules) -> Self {
        let mut function = Function { name: "chain".to_owned(), ..Function::default() };
        function.arguments.push(paceline_isa::Reg::R1);
        let entry = function.add_block();
        let context = function.add_param(entry, Type::I64, Kind::Context);
        let mains = || programs.iter().map(|program| &program.part.main);
        for main in mains() {
            function.stack = function.stack.max(main.stack());
            function.shared |= main.function.shared;
            function.prints |= main.function.prints;
        }
        // Room for all copies: unwritten memory costs less than moving instructions to a larger arena.
        function.reserve(COPIES * mains().map(|main| main.function.inst_count()).sum::<usize>());
        function.reserve_blocks(COPIES * mains().map(|main| main.reached.len()).sum::<usize>());
        let budget = (COPIES - 1) * mains().map(|main| main.size).sum::<usize>();
        let common = vec![None; programs.len()];
        Self {
            programs,
            rules,
            function,
            context,
            common,
            waiting: Vec::new(),
            ends: HashMap::default(),
            budget,
        }
    }

    /// The main function of a program.
    pub(super) fn main(&self, part: usize) -> &'a Main {
        &self.programs[part].part.main
    }

    /// A block in which a new copy of a program begins.
    pub(super) fn enter(&mut self, part: usize, specialized: bool) -> Result<Block, ChainError> {
        if part >= self.programs.len() {
            return Err(ChainError::NoProgram(part));
        }
        let block = self.function.add_block();
        let left = self.rules.limit.map(|_| self.function.add_param(block, Type::I64, Kind::Unknown));
        self.waiting.push(Entered { part, block, left, specialized });
        Ok(block)
    }

    /// The copy of a program for exits that have none of their own.
    pub(super) fn enter_common(&mut self, part: usize) -> Result<Block, ChainError> {
        if let Some(block) = self.common.get(part).copied().flatten() {
            return Ok(block);
        }
        let block = self.enter(part, false)?;
        self.common[part] = Some(block);
        Ok(block)
    }
}
