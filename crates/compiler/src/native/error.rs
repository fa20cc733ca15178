//! Compile errors.

use crate::codegen::GenerateError;
use crate::ir::{Module, PassError};
use thiserror::Error;

use crate::internal::Internal;
use crate::native::code::AssembleError;
use crate::native::unsupported::Unsupported;

/// Reasons why a program cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CompileError {
    /// Something that there is no native code for.
    #[error("there is no native code for {0}")]
    Unsupported(Unsupported),
    /// A state that the compiler rules out: a bug of Paceline, not of the program.
    #[error(transparent)]
    Internal(#[from] Internal),
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

impl From<Unsupported> for CompileError {
    fn from(what: Unsupported) -> Self {
        Self::Unsupported(what)
    }
}
