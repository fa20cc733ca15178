//! Instructions (RFC 9669): decoded, encoded, as text and from text.
//!
//! ```
//! use paceline::isa::{assemble, disassemble};
//!
//! let code = assemble("r0 = 2\n exit", &())?;
//! let slots = code.encode()?;
//! assert_eq!(disassemble(&slots).len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use paceline_isa::text::{Line, Problem, Wanted};
pub use paceline_isa::{
    AluOp, AssembleError, AtomicOp, Callee, Code, Condition, DecodeError, EncodeError, FieldName, Imm64,
    Insn, Names, Operand, RawInsn, Reg, RegSet, Size, SwapOrder, Width, assemble, decode, decode_at,
    disassemble, encode, encode_all,
};
