//! An arm64 encoder: the instructions that compiled programs need, one method each.
//!
//! Operands are in the order of Arm's assembly language, destination first. For semantics see the mnemonic in the Arm Architecture
//! Reference Manual.
//!
//! ```
//! use paceline_compiler::native::machine::aarch64::{Arith, Assembler, Cond, Gpr, Width};
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
//! # Ok::<(), paceline_compiler::native::machine::aarch64::AssembleError>(())
//! ```

mod alu;
mod assembler;
mod atomic;
mod control;
mod imm;
mod memory;
mod moves;
mod reg;
mod relax;

pub use crate::native::code::{AssembleError, Code, Label, Mark};
pub use crate::native::machine::operand::Width;
pub use alu::{Arith, Divide, Logic, Shift};
pub use assembler::Assembler;
pub use imm::{arith_imm, logic_imm};
pub use memory::{Mem, Size};
pub use reg::{Cond, Gpr};
