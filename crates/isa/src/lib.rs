//! BPF instructions, once and for all: one table of encodings, and the encoder, the decoder, the
//! disassembler and the text assembler that come from it.
//!
//! The source of every rule is [RFC 9669](https://www.rfc-editor.org/rfc/rfc9669); what the RFC leaves
//! out (load-acquire, `may_goto`, `callx`) follows the kernel's `kernel/bpf/verifier.c` and LLVM's
//! `lib/Target/BPF/BPFInstrInfo.td`.
#![forbid(unsafe_code)]

mod code;
mod decode;
mod effects;
mod encode;
pub mod eval;
mod form;
mod insn;
pub mod table;
mod text;

pub use code::Code;
pub use decode::{DecodeError, FieldName, decode, decode_at};
pub use effects::RegSet;
pub use encode::{EncodeError, Slots, encode, encode_all};
pub use insn::{
    AluOp, AtomicOp, Callee, Condition, Imm64, Insn, Operand, RawInsn, Reg, Size, SwapOrder, Width,
};
pub use text::{AssembleError, Line, Names, Problem, Wanted, assemble, disassemble};
