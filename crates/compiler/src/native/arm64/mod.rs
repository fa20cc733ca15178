//! An arm64 encoder: the instructions that compiled programs need, one method each.
//!
//! Operands are in the order of Arm's assembly language, destination first. For semantics see the mnemonic in the Arm Architecture
//! Reference Manual. Labels, finished code and errors are those of [`x64`](crate::native::x64).
//!
//! ```
//! use paceline_compiler::native::arm64::{Arith, Assembler, Cond, Gpr, Width};
//!
//! let mut asm = Assembler::new();
//! let again = asm.new_label();
//! asm.mov_imm(Gpr::X1, 10);
//! asm.bind(again);
//! asm.arith_imm(Arith::Subs, Width::D32, Gpr::X1, Gpr::X1, 1);
//! asm.b_cond(Cond::Ne, again);
//! asm.ret();
//! let code = asm.finish()?;
//! assert_eq!(code.offset(again), Some(4));
//! assert_eq!(code.bytes.len(), 16);
//! # Ok::<(), paceline_compiler::native::arm64::AssembleError>(())
//! ```

mod alu;
mod assembler;
mod atomic;
mod control;
mod imm;
mod memory;
mod reg;
mod relax;

pub use crate::native::x64::{AssembleError, Code, Label, Mark, Width};
pub use alu::{Arith, Divide, Logic, Shift};
pub use assembler::Assembler;
pub use imm::{arith_imm, logic_imm};
pub use memory::{Mem, Size};
pub use reg::{Cond, Gpr};
