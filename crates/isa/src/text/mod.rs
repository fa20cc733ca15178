//! Text syntax of instructions: parsing and printing, by the text column of the table.

mod assemble;
mod cursor;
mod disassemble;
mod error;
mod failure;
mod line;
mod matching;
mod names;
mod print;
mod spellings;
mod template;

pub use assemble::assemble;
pub use disassemble::{Line, disassemble};
pub use error::{AssembleError, Problem, Wanted};
pub use names::Names;
