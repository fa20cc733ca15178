//! Registers and slots for virtual registers.
//!
//! Each instruction has four points: before it, where moves are made; early, where it reads its uses; late, where it writes its
//! definitions; and after it, where moves are made again. A virtual register has one register from its definition up to a point, and
//! from there on its slot of the frame, where it was stored when it was defined. A use behind that point has a register of its own, which
//! is loaded before the instruction. So where a value is depends on the point alone, not on the way that led there.
//!
//! Uses come before definitions, and a definition that takes the register of a use is the last operand. A fixed operand holds its
//! register at one of the two inner points only, and a move brings the value there. Slots are given afterwards.

mod allocations;
mod assignments;
pub mod check;
mod hints;
mod live;
mod live_ranges;
mod moves;
mod point;
mod result;
mod scan;
mod spill_slots;
mod uses;
mod weights;

use thiserror::Error;

use crate::codegen::lir::{Function, Reg, RegSet};
use allocations::Allocations;
use assignments::Assigned;
use check::CheckError;
use hints::Hints;
use live::Live;
use live_ranges::LiveRanges;
pub(crate) use moves::Walk;
pub use moves::{Loc, Move, MoveLists};
pub use result::Allocation;
use scan::Scan;

/// Why registers cannot be allocated: the selection of instructions is wrong, or this is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AllocateError {
    /// An instruction needs more registers at a time than there are.
    #[error("instruction {0} needs more registers than there are")]
    OutOfRegisters(u32),
    /// A virtual register is live before its definition: its uses are not dominated by it, or the blocks are not in an order in which
    /// each comes after those that dominate it.
    #[error("virtual register {0} is live before its definition in the order of the code")]
    Order(u32),
    /// A virtual register without a definition is read.
    #[error("virtual register {0} is read and has no definition")]
    Undefined(u32),
    /// A use would read another value.
    #[error(transparent)]
    Check(#[from] CheckError),
}

/// The allocator, whose memory is used again for each function.
pub struct Allocator {
    /// By register.
    held: Vec<Allocations>,
    hints: Hints,
    ranges: LiveRanges,
    live: Live,
    assigned: Assigned,
    /// Moves before and after the current instruction.
    moves: [Vec<Move>; 2],
    allocation: Allocation,
}

impl std::fmt::Debug for Allocator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Allocator").finish_non_exhaustive()
    }
}

impl Default for Allocator {
    fn default() -> Self {
        Self {
            held: vec![Allocations::default(); RegSet::MOST],
            hints: Hints::default(),
            ranges: LiveRanges::default(),
            live: Live::default(),
            assigned: Assigned::default(),
            moves: Default::default(),
            allocation: Allocation::default(),
        }
    }
}

impl Allocator {
    /// Allocates the registers of a function, and checks the result if that is asked for, or in debug builds.
    ///
    /// # Errors
    /// [`AllocateError`]: an error of the selection, or of the allocation.
    pub fn allocate<O>(
        &mut self,
        function: &Function<O>,
        registers: RegSet,
        scratch: Reg,
        checked: bool,
    ) -> Result<&Allocation, AllocateError> {
        let Self { held, hints, ranges, live, assigned, moves, allocation } = self;
        held.iter_mut().for_each(Allocations::clear);
        hints.find(function);
        ranges.find(function, held, hints, live);
        if let Some(vreg) = ranges.live_before_definition() {
            return Err(AllocateError::Order(vreg));
        }
        let scan = Scan::new(function, ranges, held, hints, assigned, registers);
        scan.run().map_err(AllocateError::OutOfRegisters)?;
        let resolved = result::resolve(function, ranges, assigned, scratch, moves, allocation);
        resolved.map_err(AllocateError::Undefined)?;
        if checked || cfg!(debug_assertions) {
            check::check(function, allocation, registers)?;
        }
        Ok(allocation)
    }
}

/// Allocates the registers of one function.
///
/// # Errors
/// As [`Allocator::allocate`].
pub fn allocate<O>(
    function: &Function<O>,
    registers: RegSet,
    scratch: Reg,
    checked: bool,
) -> Result<Allocation, AllocateError> {
    let mut allocator = Allocator::default();
    allocator.allocate(function, registers, scratch, checked)?;
    Ok(allocator.allocation)
}
