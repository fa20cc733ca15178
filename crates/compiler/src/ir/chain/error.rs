//! Why programs cannot be one function.

use thiserror::Error;

/// A program that cannot be one of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum PartError {
    /// It has no function, or its main function has no block.
    #[error("it has no instructions")]
    Empty,
    /// It has other parameters than the context.
    #[error("it takes more than the context")]
    Parameters,
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
}
