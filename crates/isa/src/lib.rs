//! BPF instructions: one table of encodings, from which the encoder, the decoder, the disassembler and the text assembler are
//! derived.
//!
//! The rules are those of [RFC 9669](https://www.rfc-editor.org/rfc/rfc9669); extensions (load-acquire, `may_goto`, `callx`) follow
//! the kernel's `kernel/bpf/verifier.c` and LLVM's `lib/Target/BPF/BPFInstrInfo.td`.
//!
//! | from | to | by |
//! |---|---|---|
//! | bytes | [`RawInsn`], a slot | [`RawInsn::from_le_bytes`], [`RawInsn::from_be_bytes`] |
//! | slots | [`Code`], a program of [`Insn`]s | [`decode`], [`decode_at`] |
//! | [`Insn`] | slots | [`encode`], [`Code::encode`] |
//! | [`Insn`] | text | `Display`, [`disassemble`] |
//! | text | [`Insn`]s | `FromStr`, [`assemble`] |
//!
//! ```
//! use paceline_isa::{assemble, decode, disassemble};
//!
//! let code = assemble(
//!     "
//!         r2 = *(u32 *)(r1 + 4)   ; data_end
//!         r1 = *(u32 *)(r1 + 0)   ; data
//!         r0 = 2                  ; XDP_PASS
//!         if r1 < r2 goto out
//!         r0 = 1                  ; XDP_DROP
//!     out:
//!         exit
//!     ",
//!     &(),
//! )?;
//! let slots = code.encode()?;
//! assert_eq!(decode(&slots)?, code);
//! assert_eq!(disassemble(&slots)[3].to_string(), "       3: if r1 < r2 goto +1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod code;
mod decode;
mod effects;
mod encode;
pub mod eval;
mod form;
mod insn;
pub mod table;
pub mod text;

pub use code::Code;
pub use decode::{DecodeError, FieldName, decode, decode_at};
pub use effects::RegSet;
pub use encode::{EncodeError, Slots, encode, encode_all};
pub use insn::{
    AluOp, AtomicOp, Callee, Condition, Imm64, Insn, Operand, RawInsn, Reg, Size, SwapOrder, Width,
};
pub use text::{AssembleError, Names, assemble, disassemble};
