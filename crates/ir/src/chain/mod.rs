//! The programs of a chain as one function: where a program returns, the next one begins.
//!
//! A program that several exits of another one lead to is there once for those that are deep in it, where most is known of the packet,
//! and once for all others. So passes see that what the first program has parsed need not be parsed again.

mod copy;
mod depth;
mod exits;
mod relocate;
mod returns;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use thiserror::Error;

use crate::entity::{Block, Value};
use crate::function::{Function, Module, Target, Terminator};
use crate::op::Op;
use crate::types::{Kind, Type};
use copy::Copied;
pub use exits::{Exit, Exits, Next};
pub use relocate::First;
use returns::Main;

/// A program of a chain.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// Its functions.
    pub module: &'a Module,
    /// What is added to its numbers, so that those of all programs differ.
    pub first: First,
    /// What its results lead to.
    pub exits: Exits,
    /// Whether the state of a run must be that of a new one when it begins.
    pub begins: bool,
    /// Whether the packet's own area must be, too.
    pub area: bool,
    /// Whether it may have deferred work when it ends.
    pub finishes: bool,
}

/// What all programs of a chain have in common.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// Whether exits are counted.
    pub counts: bool,
    /// The limit of programs that run over a packet, if the chain can exceed it.
    pub limit: Option<Limit>,
}

/// A limit of programs that run over a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The number of programs.
    pub runs: u32,
    /// The verdict of a packet for which one more would run.
    pub verdict: u32,
    /// Index of the counter of such packets.
    pub counter: u32,
}

/// Programs that cannot be one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum ChainError {
    /// There is no program, or none of this position that another one leads to.
    #[error("there is no program {0}")]
    NoProgram(usize),
    /// A main program is called as a function too.
    #[error("a function of program {0} calls its main program, or takes its address")]
    MainIsCalled(usize),
    /// A value or block of a program is used and not defined: a bug of Paceline, not of the program.
    #[error("a value or block of program {0} is not defined")]
    Undefined(usize),
    /// The programs have more instructions, maps or functions than can be numbered.
    #[error("the programs are too many")]
    TooLarge,
    /// A main program has other parameters than the context.
    #[error("program {0} takes more than the context")]
    Parameters(usize),
}

/// Makes the programs of a chain one module: its main function runs them over the context, beginning with the first, and returns the
/// verdict at the end.
///
/// # Errors
/// [`ChainError`].
pub fn chain(parts: &[Part<'_>], rules: &Rules) -> Result<Module, ChainError> {
    let mut fusion = Fusion::new(parts, rules)?;
    fusion.all()?;
    let mut module = Module::default();
    module.functions.push(fusion.function);
    for (number, part) in parts.iter().enumerate() {
        for (_, function) in part.module.functions.iter().skip(1) {
            let relocated = relocate::function(function, &part.first);
            module.functions.push(relocated.ok_or(ChainError::MainIsCalled(number))?);
        }
    }
    debug_assert_eq!(crate::check::check(&module), Ok(()), "{module}");
    Ok(module)
}

/// All programs together may be copied so many times.
const COPIES: usize = 3;

/// A chain that is being made a function.
struct Fusion<'a> {
    parts: &'a [Part<'a>],
    rules: &'a Rules,
    /// The main functions, each with returns of its own for each edge.
    mains: Vec<Main>,
    function: Function,
    context: Value,
    /// By program: the copy for all exits that have none of their own.
    common: Vec<Option<Block>>,
    /// Copies that are entered and not made yet.
    waiting: Vec<Entered>,
    /// The ends with each verdict.
    ends: HashMap<u32, Block, RandomState>,
    /// Operations that may still be copied for exits of their own.
    budget: usize,
}

/// A copy of a program that is entered.
#[derive(Clone, Copy, Debug)]
struct Entered {
    part: usize,
    block: Block,
    /// The programs that may still run, if they are counted.
    left: Option<Value>,
    /// Whether it is for some exits only, at which more is known.
    specialized: bool,
}

impl<'a> Fusion<'a> {
    fn new(parts: &'a [Part<'a>], rules: &'a Rules) -> Result<Self, ChainError> {
        let mains: Vec<Main> = parts
            .iter()
            .enumerate()
            .map(|(number, part)| Main::of(number, part))
            .collect::<Result<_, _>>()?;
        let mut function = Function { name: "chain".to_owned(), ..Function::default() };
        function.arguments.push(paceline_isa::Reg::R1);
        let entry = function.add_block();
        let context = function.add_param(entry, Type::I64, Kind::Context);
        for main in &mains {
            function.stack = function.stack.max(main.stack());
            function.shared |= main.function.shared;
            function.prints |= main.function.prints;
        }
        let budget = (COPIES - 1) * mains.iter().map(Main::size).sum::<usize>();
        let common = vec![None; parts.len()];
        Ok(Self {
            parts,
            rules,
            mains,
            function,
            context,
            common,
            waiting: Vec::new(),
            ends: HashMap::default(),
            budget,
        })
    }

    /// Copies the first program, and all that are entered from it.
    fn all(&mut self) -> Result<(), ChainError> {
        let entry = self.function.entry().ok_or(ChainError::NoProgram(0))?;
        let runs = self.rules.limit.map(|limit| limit.runs);
        let left =
            runs.and_then(|runs| self.function.append(entry, Op::constant(Type::I64, runs.into()), None));
        let first = self.enter(0, true)?;
        let args = left.into_iter().collect();
        self.function.terminate(entry, Terminator::Jump(Target { block: first, args }), None);
        while let Some(entered) = self.waiting.pop() {
            let Copied { returns } = self.copy(&entered)?;
            self.leave_all(&entered, &returns)?;
        }
        Ok(())
    }

    /// A block in which a new copy of a program begins.
    fn enter(&mut self, part: usize, specialized: bool) -> Result<Block, ChainError> {
        if part >= self.parts.len() {
            return Err(ChainError::NoProgram(part));
        }
        let block = self.function.add_block();
        let left = self.rules.limit.map(|_| self.function.add_param(block, Type::I64, Kind::Unknown));
        self.waiting.push(Entered { part, block, left, specialized });
        Ok(block)
    }

    /// The copy of a program for exits that have none of their own.
    fn enter_common(&mut self, part: usize) -> Result<Block, ChainError> {
        if let Some(block) = self.common.get(part).copied().flatten() {
            return Ok(block);
        }
        let block = self.enter(part, false)?;
        self.common[part] = Some(block);
        Ok(block)
    }
}

#[cfg(test)]
mod tests;
