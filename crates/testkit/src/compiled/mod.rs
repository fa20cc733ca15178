//! Random C, compiled: code as compilers emit it, for all engines and the kernel.
//!
//! A unit is a file of several programs that share maps, so that the compiler starts once for all of them. The seed
//! determines text, compiler, instruction set and optimization level. Most of the generated code is valid: pointers are used
//! after their checks, and never after an invalidation.

mod compiler;
mod expressions;
mod functions;
mod maps;
mod program;
mod run;
mod signature;
mod statements;
mod tree;

pub use compiler::{Compiler, compilers};
pub use run::{Setup, Unit, chain_of, compile_text, try_named};
pub use tree::{Node, render, shrink};

pub use program::{CProgram, PRELUDE, PROGRAMS, unit_text};
