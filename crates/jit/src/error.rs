//! Compile errors.

use paceline_codegen::GenerateError;
use paceline_ir::{Module, PassError};
use paceline_isa::{Insn, Reg};
use thiserror::Error;

use crate::select::Lack;
use crate::x64::AssembleError;

/// Reasons why a program cannot be compiled; slots count from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompileError {
    /// The instruction has no native code.
    #[error("instruction {slot} ({insn}) cannot be compiled")]
    Unsupported {
        /// Slot.
        slot: usize,
        /// The instruction.
        insn: Insn,
    },
    /// A helper that the code is not linked with.
    #[error("instruction {slot} calls helper {id}, which there is no function for")]
    Helper {
        /// Slot.
        slot: usize,
        /// Number of the helper.
        id: i32,
    },
    /// A map that the code is not linked with, or not in the way that the instruction needs.
    #[error("instruction {slot} needs map {index} as {what}, which it is not")]
    Map {
        /// Slot.
        slot: usize,
        /// Index of the map.
        index: i32,
        /// The kind of map that is required.
        what: &'static str,
    },
    /// A map that differs between paths or runs, where it must be known.
    #[error("instruction {slot} takes a map that is not known before it runs")]
    UnknownMap {
        /// Slot.
        slot: usize,
    },
    /// An access to the context outside of its fields, or at a variable offset.
    #[error("instruction {slot} accesses the context at no known field")]
    Context {
        /// Slot.
        slot: usize,
    },
    /// A jump whose target is no instruction of the same function.
    #[error("instruction {slot} jumps to {target}, which is no instruction of its function")]
    JumpTarget {
        /// Slot of the jump.
        slot: usize,
        /// The target slot.
        target: i64,
    },
    /// An operation without code from the form, on a machine that has no other.
    #[error("there is no native code for {0}")]
    Lack(Lack),
    /// [`Links::checked`](crate::Links::checked) is missing for checked code.
    #[error("there is nothing to link checked code with")]
    NotLinked,
    /// A read of a register whose value was dropped as dead: a bug of the code generator.
    #[error("the value of {register} in instruction {slot} was taken to be dead")]
    DeadValue {
        /// Slot.
        slot: usize,
        /// The register.
        register: Reg,
    },
    /// A state that the code generator rules out: a bug of Paceline, not of the program.
    #[error("internal error of the code generator: {0}")]
    Internal(&'static str),
    /// No code can be generated from the program in SSA form: a bug of Paceline, not of the program.
    #[error(transparent)]
    Form(#[from] Box<FormError>),
    /// The code is too long, or the code generator misused the assembler.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
}

/// A bug of the passes or of the code generator that a program in SSA form shows.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("internal error of the code generator: {cause}\n{module}")]
pub struct FormError {
    /// What the bug is.
    pub cause: FormCause,
    /// The program as text.
    pub module: String,
}

/// What is wrong with a program in SSA form, or with its code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormCause {
    /// A pass left a function that is not well formed.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// No code can be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
}

impl FormError {
    /// An error of a program.
    pub(crate) fn new(cause: impl Into<FormCause>, module: &Module) -> Box<Self> {
        Box::new(Self { cause: cause.into(), module: module.to_string() })
    }
}
