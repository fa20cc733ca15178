//! What is counted of a program.
//!
//! Loads, additions and stores of counters are made while the form is built or the program runs, and no instruction is inserted.
//! Tail calls and `LD_ABS` end a block: the program may not come back. The counts of taken jumps follow by subtraction.

use std::sync::Arc;

use paceline_isa::{Code, DecodeError, decode};
use paceline_spec::{Counters, ProgramSpec};

use crate::coverage::blocks::{Block, blocks};

/// Bytes of a counter.
const COUNTER: usize = 8;

/// How counters are incremented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// By a load, an addition and a store: exact while one thread runs programs of the map.
    #[default]
    Plain,
    /// By an atomic addition: exact whatever runs.
    Atomic,
}

/// A program cannot be counted, and cannot run either.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstrumentError {
    /// An invalid instruction.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A jump leads out of the program.
    #[error("a jump leads out of the program")]
    Jump,
}

/// The counters of a program.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) code: Code,
    pub(crate) blocks: Vec<Block>,
    /// Counter of the edge from a block to the next one, for blocks whose next one has other entries.
    pub(crate) edges: Vec<Option<usize>>,
    pub(crate) spec: ProgramSpec,
    counters: usize,
}

impl Plan {
    /// What to count of a program: each basic block, and edges that blocks do not tell apart.
    ///
    /// # Errors
    /// [`InstrumentError`].
    pub fn new(spec: &ProgramSpec) -> Result<Self, InstrumentError> {
        let code = decode(&spec.insns)?;
        let functions: Vec<_> = spec.functions.iter().map(|function| function.start).collect();
        let blocks = blocks(&code, &functions).ok_or(InstrumentError::Jump)?;
        let mut counters = blocks.len();
        let mut edge = |block: &Block| {
            let next = block.next.and_then(|next| blocks.get(next));
            let needs = block.branches(&code) && next.is_some_and(|next| next.entries > 1);
            needs.then(|| {
                counters += 1;
                counters - 1
            })
        };
        let edges: Vec<_> = blocks.iter().map(&mut edge).collect();
        Ok(Self { code, blocks, edges, spec: spec.clone(), counters })
    }

    /// Bytes of all counters: one number of 64 bits each.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.counters * COUNTER
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &ProgramSpec {
        &self.spec
    }

    /// The program, for engines that count: in the only value of the array map of an index, from an offset in bytes on.
    #[must_use]
    pub fn counted(&self, map: usize, offset: usize, counting: Counting) -> ProgramSpec {
        let at = |counter: usize| u32::try_from(offset + counter * COUNTER).ok();
        let slots = vec![None; self.code.len()];
        let (mut starts, mut falls) = (slots.clone(), slots);
        for (index, (block, edge)) in self.blocks.iter().zip(&self.edges).enumerate() {
            if let Some(start) = starts.get_mut(block.start) {
                *start = at(index);
            }
            if let Some(fall) = falls.get_mut(block.last) {
                *fall = edge.and_then(at);
            }
        }
        let counters = Counters { map, atomic: counting == Counting::Atomic, starts, falls };
        ProgramSpec { counters: Some(Arc::new(counters)), ..self.spec.clone() }
    }
}
