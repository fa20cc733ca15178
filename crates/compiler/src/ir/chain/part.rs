//! The programs of a chain, and what their results lead to.

use super::error::PartError;
use super::returns::Main;
use crate::ir::function::{Function, Module};

/// Distance in bytes between structures of context in the function of a chain; none is larger.
pub const CONTEXT_BYTES: i32 = 1 << 16;

/// What is added to the numbers of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct First {
    /// Slots of instructions.
    pub slot: u32,
    /// Indices of maps.
    pub map: u32,
    /// Indices of kernel functions.
    pub kfunc: i32,
    /// Offsets in the context: a multiple of [`CONTEXT_BYTES`], another one for each structure of context in the chain.
    pub context: i32,
    /// Numbers of functions without the main one: the number that the second function of the program gets.
    pub function: usize,
}

/// The work before and after a program's run in a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Whether the state of a run must be that of a new one when it begins.
    pub begins: bool,
    /// Whether the packet's own area must be, too.
    pub area: bool,
    /// Whether it may have deferred work when it ends.
    pub finishes: bool,
}

/// A program for chains: what is the same in all of them.
#[derive(Clone, Debug)]
pub struct Part {
    pub(super) main: Main,
    /// Its other functions.
    pub(super) others: Vec<Function>,
    pub(super) around: Around,
}

impl Part {
    /// A program after its passes.
    ///
    /// # Errors
    /// [`PartError`].
    pub fn of(module: Module, around: Around) -> Result<Self, PartError> {
        let mut functions = module.functions.into_values();
        let main = functions.next().ok_or(PartError::Empty)?;
        let others: Vec<Function> = functions.collect();
        Ok(Self { main: Main::of(main, &others)?, others, around })
    }

    /// Number of its functions.
    #[must_use]
    pub fn function_count(&self) -> usize {
        1 + self.others.len()
    }
}

/// A program at its place in a chain.
#[derive(Clone, Debug)]
pub struct Placed<'a> {
    /// The program.
    pub part: &'a Part,
    /// Offsets of the program's numbers, which keep those of all programs apart.
    pub first: First,
    /// The exits of the program's results.
    pub exits: Exits,
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

/// What comes after a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The program of this position.
    Program(usize),
    /// The end, with this verdict.
    End(u32),
}

/// An exit of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// What comes next.
    pub next: Next,
    /// Index of the counter of packets that take it.
    pub counter: u32,
}

/// What the low half of a program's result leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exits {
    /// Results with an exit of their own.
    pub cases: Vec<(u32, Exit)>,
    /// All other results up to this one end the chain with themselves as the verdict, and are not counted.
    pub own: Option<u32>,
    /// The exit of all other results.
    pub other: Exit,
}

impl Exits {
    /// The exit of a result; `None` for one that is its own verdict.
    pub(super) fn of(&self, result: u64) -> Option<Exit> {
        let low = result as u32;
        match self.cases.iter().find(|(case, _)| *case == low) {
            Some((_, exit)) => Some(*exit),
            None if self.own.is_some_and(|last| low <= last) => None,
            None => Some(self.other),
        }
    }

    /// What comes next for all results, if that is the same.
    pub(super) fn only_next(&self) -> Option<Next> {
        let same = self.own.is_none() && self.cases.iter().all(|(_, exit)| exit.next == self.other.next);
        same.then_some(self.other.next)
    }
}
