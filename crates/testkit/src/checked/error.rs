//! Errors.

use paceline_compiler::internal::Internal;
use paceline_compiler::native::machine::x64::AssembleError;
use paceline_engine::exec::ExecError;
use paceline_engine::{EngineError, MalformedProgram};
use paceline_isa::Insn;

/// Reasons why there is no checked code for a program; slots count from 0.
#[derive(Debug, thiserror::Error)]
pub enum CheckedError {
    /// The machine is no x86-64.
    #[error("checked code is for x86-64 only")]
    Unavailable,
    /// The instruction has no checked code.
    #[error("instruction {slot} ({insn}) cannot be compiled")]
    Instruction {
        /// Slot.
        slot: usize,
        /// The instruction.
        insn: Insn,
    },
    /// A map that the program does not have, or not in the way that the instruction needs.
    #[error("instruction {slot} needs map {index} as {what}, which it is not")]
    Map {
        /// Slot.
        slot: usize,
        /// Index of the map.
        index: i32,
        /// The kind of map that is required.
        what: &'static str,
    },
    /// A jump whose target is no instruction of the program.
    #[error("instruction {slot} jumps to {target}, which is no instruction")]
    JumpTarget {
        /// Slot of the jump.
        slot: usize,
        /// The target slot.
        target: i64,
    },
    /// A state that the form of programs rules out.
    #[error(transparent)]
    Internal(#[from] Internal),
    /// The code is too long.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// There is no executable memory for it.
    #[error(transparent)]
    Memory(#[from] ExecError),
    /// The program is malformed, or no engine has what it needs.
    #[error(transparent)]
    Program(#[from] MalformedProgram),
    /// A verified program cannot be loaded.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
