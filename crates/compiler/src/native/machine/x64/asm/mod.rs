//! An x86-64 encoder: the instructions that compiled programs need, one method each, in the shortest encoding.
//!
//! Operands are in Intel's order, destination first, and suffixes of names give their kinds: `r` register, `m` memory, `i`
//! immediate. For semantics see the mnemonic in the Intel SDM, volume 2.
//!
//! ```
//! use paceline_compiler::native::machine::x64::{Alu, Assembler, Cond, Gpr, Width};
//!
//! let mut asm = Assembler::new();
//! let again = asm.new_label();
//! asm.mov_ri(Gpr::Rcx, 10);
//! asm.bind(again);
//! asm.alu_ri(Alu::Sub, Width::D32, Gpr::Rcx, 1);
//! asm.jcc(Cond::Ne, again);
//! asm.ret();
//! let code = asm.finish()?;
//! assert_eq!(code.offset(again), Some(5));
//! assert_eq!(code.bytes, [0xb9, 10, 0, 0, 0, 0x83, 0xe9, 1, 0x75, 0xfb, 0xc3]);
//! # Ok::<(), paceline_compiler::native::machine::x64::AssembleError>(())
//! ```

mod alu;
mod assembler;
mod atomic;
mod bytes;
mod control;
mod encode;
mod mem;
mod moves;
mod reg;
mod relax;
mod shift;

pub use crate::native::code::{AssembleError, Code, Label, Mark, Relocation, RelocationKind};
pub use crate::native::machine::operand::{Scale, Width};
pub use alu::Alu;
pub use assembler::{Assembler, Fill};
pub use mem::Mem;
pub use reg::{Cond, Gpr, OpSize};
pub use shift::{Shift, ShiftX};
