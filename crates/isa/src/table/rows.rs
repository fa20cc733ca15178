//! The rows. Section numbers are those of RFC 9669.
//!
//! The group is the one that the section names, else base32 (section 2.4); `exit` is in base32 with the other unconditional jumps,
//! as in the public bpf_conformance suite.

use super::encoding::Cpu::{V1, V2, V3, V4};
use super::encoding::Form::{
    AddrSpaceCast, Alu, Atomic, CallHelper, CallKfunc, CallReg, CallSubprogram, Exit, Jump, JumpIf, JumpLong,
    Load, LoadAcquire, LoadImm64, LoadPacket, LoadSx, MayGoto, MovSx, Neg, Store, StoreRelease, Swap,
};
use super::encoding::Group::{Atomic32, Atomic64, Base32, Base64, DivMul32, DivMul64, Extension, Packet};
use super::encoding::Imm64Kind::{Code, MapFd, MapIndex, MapValueFd, MapValueIndex, Value, Variable};
use super::encoding::Source::{K, X};
use super::encoding::{Cpu, Encoding, Field, Form, Group};
use crate::insn::AluOp::{Add, And, Arsh, Div, Lsh, Mod, Mov, Mul, Or, Rsh, SDiv, SMod, Sub, Xor};
use crate::insn::AtomicOp;
use crate::insn::Condition::{Eq, Ge, Gt, Le, Lt, Ne, SGe, SGt, SLe, SLt, Set};
use crate::insn::Size::{B, Dw, H, W};
use crate::insn::SwapOrder::{Always, ToBe, ToLe};
use crate::insn::Width::{W32, W64};

/// A reserved field.
const __: Field = Field::Zero;
/// An operand.
const ANY: Field = Field::Any;
/// A field that selects the operation.
const fn is(value: i32) -> Field {
    Field::Is(value)
}

const ADD: AtomicOp = AtomicOp::Add { fetch: false };
const OR: AtomicOp = AtomicOp::Or { fetch: false };
const AND: AtomicOp = AtomicOp::And { fetch: false };
const XOR: AtomicOp = AtomicOp::Xor { fetch: false };
const FETCH_ADD: AtomicOp = AtomicOp::Add { fetch: true };
const FETCH_OR: AtomicOp = AtomicOp::Or { fetch: true };
const FETCH_AND: AtomicOp = AtomicOp::And { fetch: true };
const FETCH_XOR: AtomicOp = AtomicOp::Xor { fetch: true };

/// All encodings. Rows of one opcode are contiguous.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // opcode  dst  src  offset  imm  text  form  group  cpu
    //
    // Arithmetic on 32 bits (section 4.1): ALU
    row(0x04, ANY, __,  __,     ANY, "{wd} += {imm}",    Alu(W32, Add, K),  Base32,   V1),
    row(0x0c, ANY, ANY, __,     __,  "{wd} += {ws}",     Alu(W32, Add, X),  Base32,   V1),
    row(0x14, ANY, __,  __,     ANY, "{wd} -= {imm}",    Alu(W32, Sub, K),  Base32,   V1),
    row(0x1c, ANY, ANY, __,     __,  "{wd} -= {ws}",     Alu(W32, Sub, X),  Base32,   V1),
    row(0x24, ANY, __,  __,     ANY, "{wd} *= {imm}",    Alu(W32, Mul, K),  DivMul32, V1),
    row(0x2c, ANY, ANY, __,     __,  "{wd} *= {ws}",     Alu(W32, Mul, X),  DivMul32, V1),
    row(0x34, ANY, __,  is(0),  ANY, "{wd} /= {imm}",    Alu(W32, Div, K),  DivMul32, V1),
    row(0x34, ANY, __,  is(1),  ANY, "{wd} s/= {imm}",   Alu(W32, SDiv, K), DivMul32, V4),
    row(0x3c, ANY, ANY, is(0),  __,  "{wd} /= {ws}",     Alu(W32, Div, X),  DivMul32, V1),
    row(0x3c, ANY, ANY, is(1),  __,  "{wd} s/= {ws}",    Alu(W32, SDiv, X), DivMul32, V4),
    row(0x44, ANY, __,  __,     ANY, "{wd} |= {imm}",    Alu(W32, Or, K),   Base32,   V1),
    row(0x4c, ANY, ANY, __,     __,  "{wd} |= {ws}",     Alu(W32, Or, X),   Base32,   V1),
    row(0x54, ANY, __,  __,     ANY, "{wd} &= {imm}",    Alu(W32, And, K),  Base32,   V1),
    row(0x5c, ANY, ANY, __,     __,  "{wd} &= {ws}",     Alu(W32, And, X),  Base32,   V1),
    row(0x64, ANY, __,  __,     ANY, "{wd} <<= {imm}",   Alu(W32, Lsh, K),  Base32,   V1),
    row(0x6c, ANY, ANY, __,     __,  "{wd} <<= {ws}",    Alu(W32, Lsh, X),  Base32,   V1),
    row(0x74, ANY, __,  __,     ANY, "{wd} >>= {imm}",   Alu(W32, Rsh, K),  Base32,   V1),
    row(0x7c, ANY, ANY, __,     __,  "{wd} >>= {ws}",    Alu(W32, Rsh, X),  Base32,   V1),
    row(0x94, ANY, __,  is(0),  ANY, "{wd} %= {imm}",    Alu(W32, Mod, K),  DivMul32, V1),
    row(0x94, ANY, __,  is(1),  ANY, "{wd} s%= {imm}",   Alu(W32, SMod, K), DivMul32, V4),
    row(0x9c, ANY, ANY, is(0),  __,  "{wd} %= {ws}",     Alu(W32, Mod, X),  DivMul32, V1),
    row(0x9c, ANY, ANY, is(1),  __,  "{wd} s%= {ws}",    Alu(W32, SMod, X), DivMul32, V4),
    row(0xa4, ANY, __,  __,     ANY, "{wd} ^= {imm}",    Alu(W32, Xor, K),  Base32,   V1),
    row(0xac, ANY, ANY, __,     __,  "{wd} ^= {ws}",     Alu(W32, Xor, X),  Base32,   V1),
    row(0xb4, ANY, __,  __,     ANY, "{wd} = {imm}",     Alu(W32, Mov, K),  Base32,   V1),
    row(0xbc, ANY, ANY, is(0),  __,  "{wd} = {ws}",      Alu(W32, Mov, X),  Base32,   V1),
    row(0xbc, ANY, ANY, is(8),  __,  "{wd} = (s8){ws}",  MovSx(W32, B),     Base32,   V4),
    row(0xbc, ANY, ANY, is(16), __,  "{wd} = (s16){ws}", MovSx(W32, H),     Base32,   V4),
    row(0xc4, ANY, __,  __,     ANY, "{wd} s>>= {imm}",  Alu(W32, Arsh, K), Base32,   V1),
    row(0xcc, ANY, ANY, __,     __,  "{wd} s>>= {ws}",   Alu(W32, Arsh, X), Base32,   V1),
    row(0x84, ANY, __,  __,     __,  "{wd} = -{wd}",     Neg(W32),          Base32,   V1),

    // Arithmetic on 64 bits (section 4.1): ALU64
    row(0x07, ANY, __,  __,     ANY, "{rd} += {imm}",                              Alu(W64, Add, K),  Base64,    V1),
    row(0x0f, ANY, ANY, __,     __,  "{rd} += {rs}",                               Alu(W64, Add, X),  Base64,    V1),
    row(0x17, ANY, __,  __,     ANY, "{rd} -= {imm}",                              Alu(W64, Sub, K),  Base64,    V1),
    row(0x1f, ANY, ANY, __,     __,  "{rd} -= {rs}",                               Alu(W64, Sub, X),  Base64,    V1),
    row(0x27, ANY, __,  __,     ANY, "{rd} *= {imm}",                              Alu(W64, Mul, K),  DivMul64,  V1),
    row(0x2f, ANY, ANY, __,     __,  "{rd} *= {rs}",                               Alu(W64, Mul, X),  DivMul64,  V1),
    row(0x37, ANY, __,  is(0),  ANY, "{rd} /= {imm}",                              Alu(W64, Div, K),  DivMul64,  V1),
    row(0x37, ANY, __,  is(1),  ANY, "{rd} s/= {imm}",                             Alu(W64, SDiv, K), DivMul64,  V4),
    row(0x3f, ANY, ANY, is(0),  __,  "{rd} /= {rs}",                               Alu(W64, Div, X),  DivMul64,  V1),
    row(0x3f, ANY, ANY, is(1),  __,  "{rd} s/= {rs}",                              Alu(W64, SDiv, X), DivMul64,  V4),
    row(0x47, ANY, __,  __,     ANY, "{rd} |= {imm}",                              Alu(W64, Or, K),   Base64,    V1),
    row(0x4f, ANY, ANY, __,     __,  "{rd} |= {rs}",                               Alu(W64, Or, X),   Base64,    V1),
    row(0x57, ANY, __,  __,     ANY, "{rd} &= {imm}",                              Alu(W64, And, K),  Base64,    V1),
    row(0x5f, ANY, ANY, __,     __,  "{rd} &= {rs}",                               Alu(W64, And, X),  Base64,    V1),
    row(0x67, ANY, __,  __,     ANY, "{rd} <<= {imm}",                             Alu(W64, Lsh, K),  Base64,    V1),
    row(0x6f, ANY, ANY, __,     __,  "{rd} <<= {rs}",                              Alu(W64, Lsh, X),  Base64,    V1),
    row(0x77, ANY, __,  __,     ANY, "{rd} >>= {imm}",                             Alu(W64, Rsh, K),  Base64,    V1),
    row(0x7f, ANY, ANY, __,     __,  "{rd} >>= {rs}",                              Alu(W64, Rsh, X),  Base64,    V1),
    row(0x97, ANY, __,  is(0),  ANY, "{rd} %= {imm}",                              Alu(W64, Mod, K),  DivMul64,  V1),
    row(0x97, ANY, __,  is(1),  ANY, "{rd} s%= {imm}",                             Alu(W64, SMod, K), DivMul64,  V4),
    row(0x9f, ANY, ANY, is(0),  __,  "{rd} %= {rs}",                               Alu(W64, Mod, X),  DivMul64,  V1),
    row(0x9f, ANY, ANY, is(1),  __,  "{rd} s%= {rs}",                              Alu(W64, SMod, X), DivMul64,  V4),
    row(0xa7, ANY, __,  __,     ANY, "{rd} ^= {imm}",                              Alu(W64, Xor, K),  Base64,    V1),
    row(0xaf, ANY, ANY, __,     __,  "{rd} ^= {rs}",                               Alu(W64, Xor, X),  Base64,    V1),
    row(0xb7, ANY, __,  __,     ANY, "{rd} = {imm}",                               Alu(W64, Mov, K),  Base64,    V1),
    row(0xbf, ANY, ANY, is(0),  __,  "{rd} = {rs}",                                Alu(W64, Mov, X),  Base64,    V1),
    row(0xbf, ANY, ANY, is(8),  __,  "{rd} = (s8){rs}",                            MovSx(W64, B),     Base64,    V4),
    row(0xbf, ANY, ANY, is(16), __,  "{rd} = (s16){rs}",                           MovSx(W64, H),     Base64,    V4),
    row(0xbf, ANY, ANY, is(32), __,  "{rd} = (s32){rs}",                           MovSx(W64, W),     Base64,    V4),
    row(0xbf, ANY, ANY, is(1),  ANY, "{rd} = addr_space_cast({rs}, {to}, {from})", AddrSpaceCast,     Extension, V1),
    row(0xc7, ANY, __,  __,     ANY, "{rd} s>>= {imm}",                            Alu(W64, Arsh, K), Base64,    V1),
    row(0xcf, ANY, ANY, __,     __,  "{rd} s>>= {rs}",                             Alu(W64, Arsh, X), Base64,    V1),
    row(0x87, ANY, __,  __,     __,  "{rd} = -{rd}",                               Neg(W64),          Base64,    V1),

    // Byte swaps (section 4.2)
    row(0xd4, ANY, __, __, is(16), "{rd} = le16 {rd}",    Swap(ToLe, H),    Base32, V1),
    row(0xd4, ANY, __, __, is(32), "{rd} = le32 {rd}",    Swap(ToLe, W),    Base32, V1),
    row(0xd4, ANY, __, __, is(64), "{rd} = le64 {rd}",    Swap(ToLe, Dw),   Base64, V1),
    row(0xdc, ANY, __, __, is(16), "{rd} = be16 {rd}",    Swap(ToBe, H),    Base32, V1),
    row(0xdc, ANY, __, __, is(32), "{rd} = be32 {rd}",    Swap(ToBe, W),    Base32, V1),
    row(0xdc, ANY, __, __, is(64), "{rd} = be64 {rd}",    Swap(ToBe, Dw),   Base64, V1),
    row(0xd7, ANY, __, __, is(16), "{rd} = bswap16 {rd}", Swap(Always, H),  Base32, V4),
    row(0xd7, ANY, __, __, is(32), "{rd} = bswap32 {rd}", Swap(Always, W),  Base32, V4),
    row(0xd7, ANY, __, __, is(64), "{rd} = bswap64 {rd}", Swap(Always, Dw), Base64, V4),

    // Jumps (section 4.3)
    row(0x05, __,  __,    ANY, __,  "goto {jump}",                 Jump,           Base32,    V1),
    row(0x06, __,  __,    __,  ANY, "gotol {far}",                 JumpLong,       Base32,    V4),
    row(0xe5, __,  __,    ANY, __,  "may_goto {jump}",             MayGoto,        Extension, V1),
    row(0x85, __,  is(0), __,  ANY, "call {helper}",               CallHelper,     Base32,    V1),
    row(0x85, __,  is(1), __,  ANY, "call {sub}",                  CallSubprogram, Base32,    V1),
    row(0x85, __,  is(2), ANY, ANY, "call kfunc[{imm}, {module}]", CallKfunc,      Base32,    V1),
    row(0x8d, ANY, __,    __,  __,  "callx {rd}",                  CallReg,        Extension, V1),
    row(0x95, __,  __,    __,  __,  "exit",                        Exit,           Base32,    V1),

    // Conditional jumps on 64 bits (section 4.3): JMP
    row(0x15, ANY, __,  ANY, ANY, "if {rd} == {imm} goto {jump}",  JumpIf(W64, Eq, K),  Base64, V1),
    row(0x1d, ANY, ANY, ANY, __,  "if {rd} == {rs} goto {jump}",   JumpIf(W64, Eq, X),  Base64, V1),
    row(0x25, ANY, __,  ANY, ANY, "if {rd} > {imm} goto {jump}",   JumpIf(W64, Gt, K),  Base64, V1),
    row(0x2d, ANY, ANY, ANY, __,  "if {rd} > {rs} goto {jump}",    JumpIf(W64, Gt, X),  Base64, V1),
    row(0x35, ANY, __,  ANY, ANY, "if {rd} >= {imm} goto {jump}",  JumpIf(W64, Ge, K),  Base64, V1),
    row(0x3d, ANY, ANY, ANY, __,  "if {rd} >= {rs} goto {jump}",   JumpIf(W64, Ge, X),  Base64, V1),
    row(0x45, ANY, __,  ANY, ANY, "if {rd} & {imm} goto {jump}",   JumpIf(W64, Set, K), Base64, V1),
    row(0x4d, ANY, ANY, ANY, __,  "if {rd} & {rs} goto {jump}",    JumpIf(W64, Set, X), Base64, V1),
    row(0x55, ANY, __,  ANY, ANY, "if {rd} != {imm} goto {jump}",  JumpIf(W64, Ne, K),  Base64, V1),
    row(0x5d, ANY, ANY, ANY, __,  "if {rd} != {rs} goto {jump}",   JumpIf(W64, Ne, X),  Base64, V1),
    row(0x65, ANY, __,  ANY, ANY, "if {rd} s> {imm} goto {jump}",  JumpIf(W64, SGt, K), Base64, V1),
    row(0x6d, ANY, ANY, ANY, __,  "if {rd} s> {rs} goto {jump}",   JumpIf(W64, SGt, X), Base64, V1),
    row(0x75, ANY, __,  ANY, ANY, "if {rd} s>= {imm} goto {jump}", JumpIf(W64, SGe, K), Base64, V1),
    row(0x7d, ANY, ANY, ANY, __,  "if {rd} s>= {rs} goto {jump}",  JumpIf(W64, SGe, X), Base64, V1),
    row(0xa5, ANY, __,  ANY, ANY, "if {rd} < {imm} goto {jump}",   JumpIf(W64, Lt, K),  Base64, V2),
    row(0xad, ANY, ANY, ANY, __,  "if {rd} < {rs} goto {jump}",    JumpIf(W64, Lt, X),  Base64, V2),
    row(0xb5, ANY, __,  ANY, ANY, "if {rd} <= {imm} goto {jump}",  JumpIf(W64, Le, K),  Base64, V2),
    row(0xbd, ANY, ANY, ANY, __,  "if {rd} <= {rs} goto {jump}",   JumpIf(W64, Le, X),  Base64, V2),
    row(0xc5, ANY, __,  ANY, ANY, "if {rd} s< {imm} goto {jump}",  JumpIf(W64, SLt, K), Base64, V2),
    row(0xcd, ANY, ANY, ANY, __,  "if {rd} s< {rs} goto {jump}",   JumpIf(W64, SLt, X), Base64, V2),
    row(0xd5, ANY, __,  ANY, ANY, "if {rd} s<= {imm} goto {jump}", JumpIf(W64, SLe, K), Base64, V2),
    row(0xdd, ANY, ANY, ANY, __,  "if {rd} s<= {rs} goto {jump}",  JumpIf(W64, SLe, X), Base64, V2),

    // Conditional jumps on 32 bits (section 4.3): JMP32
    row(0x16, ANY, __,  ANY, ANY, "if {wd} == {imm} goto {jump}",  JumpIf(W32, Eq, K),  Base32, V3),
    row(0x1e, ANY, ANY, ANY, __,  "if {wd} == {ws} goto {jump}",   JumpIf(W32, Eq, X),  Base32, V3),
    row(0x26, ANY, __,  ANY, ANY, "if {wd} > {imm} goto {jump}",   JumpIf(W32, Gt, K),  Base32, V3),
    row(0x2e, ANY, ANY, ANY, __,  "if {wd} > {ws} goto {jump}",    JumpIf(W32, Gt, X),  Base32, V3),
    row(0x36, ANY, __,  ANY, ANY, "if {wd} >= {imm} goto {jump}",  JumpIf(W32, Ge, K),  Base32, V3),
    row(0x3e, ANY, ANY, ANY, __,  "if {wd} >= {ws} goto {jump}",   JumpIf(W32, Ge, X),  Base32, V3),
    row(0x46, ANY, __,  ANY, ANY, "if {wd} & {imm} goto {jump}",   JumpIf(W32, Set, K), Base32, V3),
    row(0x4e, ANY, ANY, ANY, __,  "if {wd} & {ws} goto {jump}",    JumpIf(W32, Set, X), Base32, V3),
    row(0x56, ANY, __,  ANY, ANY, "if {wd} != {imm} goto {jump}",  JumpIf(W32, Ne, K),  Base32, V3),
    row(0x5e, ANY, ANY, ANY, __,  "if {wd} != {ws} goto {jump}",   JumpIf(W32, Ne, X),  Base32, V3),
    row(0x66, ANY, __,  ANY, ANY, "if {wd} s> {imm} goto {jump}",  JumpIf(W32, SGt, K), Base32, V3),
    row(0x6e, ANY, ANY, ANY, __,  "if {wd} s> {ws} goto {jump}",   JumpIf(W32, SGt, X), Base32, V3),
    row(0x76, ANY, __,  ANY, ANY, "if {wd} s>= {imm} goto {jump}", JumpIf(W32, SGe, K), Base32, V3),
    row(0x7e, ANY, ANY, ANY, __,  "if {wd} s>= {ws} goto {jump}",  JumpIf(W32, SGe, X), Base32, V3),
    row(0xa6, ANY, __,  ANY, ANY, "if {wd} < {imm} goto {jump}",   JumpIf(W32, Lt, K),  Base32, V3),
    row(0xae, ANY, ANY, ANY, __,  "if {wd} < {ws} goto {jump}",    JumpIf(W32, Lt, X),  Base32, V3),
    row(0xb6, ANY, __,  ANY, ANY, "if {wd} <= {imm} goto {jump}",  JumpIf(W32, Le, K),  Base32, V3),
    row(0xbe, ANY, ANY, ANY, __,  "if {wd} <= {ws} goto {jump}",   JumpIf(W32, Le, X),  Base32, V3),
    row(0xc6, ANY, __,  ANY, ANY, "if {wd} s< {imm} goto {jump}",  JumpIf(W32, SLt, K), Base32, V3),
    row(0xce, ANY, ANY, ANY, __,  "if {wd} s< {ws} goto {jump}",   JumpIf(W32, SLt, X), Base32, V3),
    row(0xd6, ANY, __,  ANY, ANY, "if {wd} s<= {imm} goto {jump}", JumpIf(W32, SLe, K), Base32, V3),
    row(0xde, ANY, ANY, ANY, __,  "if {wd} s<= {ws} goto {jump}",  JumpIf(W32, SLe, X), Base32, V3),

    // Loads and stores (sections 5.1 and 5.2)
    row(0x71, ANY, ANY, ANY, __,  "{rwd} = *(u8 *)({rs} {off})",  Load(B),      Base32, V1),
    row(0x69, ANY, ANY, ANY, __,  "{rwd} = *(u16 *)({rs} {off})", Load(H),      Base32, V1),
    row(0x61, ANY, ANY, ANY, __,  "{rwd} = *(u32 *)({rs} {off})", Load(W),      Base32, V1),
    row(0x79, ANY, ANY, ANY, __,  "{rd} = *(u64 *)({rs} {off})",  Load(Dw),     Base64, V1),
    row(0x91, ANY, ANY, ANY, __,  "{rd} = *(s8 *)({rs} {off})",   LoadSx(B),    Base32, V4),
    row(0x89, ANY, ANY, ANY, __,  "{rd} = *(s16 *)({rs} {off})",  LoadSx(H),    Base32, V4),
    row(0x81, ANY, ANY, ANY, __,  "{rd} = *(s32 *)({rs} {off})",  LoadSx(W),    Base32, V4),
    row(0x72, ANY, __,  ANY, ANY, "*(u8 *)({rd} {off}) = {imm}",  Store(B, K),  Base32, V1),
    row(0x6a, ANY, __,  ANY, ANY, "*(u16 *)({rd} {off}) = {imm}", Store(H, K),  Base32, V1),
    row(0x62, ANY, __,  ANY, ANY, "*(u32 *)({rd} {off}) = {imm}", Store(W, K),  Base32, V1),
    row(0x7a, ANY, __,  ANY, ANY, "*(u64 *)({rd} {off}) = {imm}", Store(Dw, K), Base64, V1),
    row(0x73, ANY, ANY, ANY, __,  "*(u8 *)({rd} {off}) = {rws}",  Store(B, X),  Base32, V1),
    row(0x6b, ANY, ANY, ANY, __,  "*(u16 *)({rd} {off}) = {rws}", Store(H, X),  Base32, V1),
    row(0x63, ANY, ANY, ANY, __,  "*(u32 *)({rd} {off}) = {rws}", Store(W, X),  Base32, V1),
    row(0x7b, ANY, ANY, ANY, __,  "*(u64 *)({rd} {off}) = {rs}",  Store(Dw, X), Base64, V1),

    // Atomic operations on 32 bits (section 5.3), and the kernel's acquire and release
    row(0xc3, ANY, ANY, ANY, is(0x00),  "lock *(u32 *)({rd} {off}) += {wrs}",                   Atomic(W32, ADD),               Atomic32,  V1),
    row(0xc3, ANY, ANY, ANY, is(0x40),  "lock *(u32 *)({rd} {off}) |= {wrs}",                   Atomic(W32, OR),                Atomic32,  V3),
    row(0xc3, ANY, ANY, ANY, is(0x50),  "lock *(u32 *)({rd} {off}) &= {wrs}",                   Atomic(W32, AND),               Atomic32,  V3),
    row(0xc3, ANY, ANY, ANY, is(0xa0),  "lock *(u32 *)({rd} {off}) ^= {wrs}",                   Atomic(W32, XOR),               Atomic32,  V3),
    row(0xc3, ANY, ANY, ANY, is(0x01),  "{wrs} = atomic_fetch_add((u32 *)({rd} {off}), {wrs})", Atomic(W32, FETCH_ADD),         Atomic32,  V3),
    row(0xc3, ANY, ANY, ANY, is(0x41),  "{wrs} = atomic_fetch_or((u32 *)({rd} {off}), {wrs})",  Atomic(W32, FETCH_OR),          Atomic32,  V3),
    row(0xc3, ANY, ANY, ANY, is(0x51),  "{wrs} = atomic_fetch_and((u32 *)({rd} {off}), {wrs})", Atomic(W32, FETCH_AND),         Atomic32,  V3),
    row(0xc3, ANY, ANY, ANY, is(0xa1),  "{wrs} = atomic_fetch_xor((u32 *)({rd} {off}), {wrs})", Atomic(W32, FETCH_XOR),         Atomic32,  V3),
    row(0xc3, ANY, ANY, ANY, is(0xe1),  "{wrs} = xchg32_32({rd} {off}, {wrs})",                 Atomic(W32, AtomicOp::Xchg),    Atomic32,  V3),
    row(0xc3, ANY, ANY, ANY, is(0xf1),  "w0 = cmpxchg32_32({rd} {off}, w0, {wrs})",             Atomic(W32, AtomicOp::CmpXchg), Atomic32,  V3),
    row(0xc3, ANY, ANY, ANY, is(0x100), "{wrd} = load_acquire((u32 *)({rs} {off}))",            LoadAcquire(W),                 Extension, V4),
    row(0xc3, ANY, ANY, ANY, is(0x110), "store_release((u32 *)({rd} {off}), {wrs})",            StoreRelease(W),                Extension, V4),
    row(0xd3, ANY, ANY, ANY, is(0x100), "{wrd} = load_acquire((u8 *)({rs} {off}))",             LoadAcquire(B),                 Extension, V4),
    row(0xd3, ANY, ANY, ANY, is(0x110), "store_release((u8 *)({rd} {off}), {wrs})",             StoreRelease(B),                Extension, V4),
    row(0xcb, ANY, ANY, ANY, is(0x100), "{wrd} = load_acquire((u16 *)({rs} {off}))",            LoadAcquire(H),                 Extension, V4),
    row(0xcb, ANY, ANY, ANY, is(0x110), "store_release((u16 *)({rd} {off}), {wrs})",            StoreRelease(H),                Extension, V4),

    // Atomic operations on 64 bits (section 5.3), and the kernel's acquire and release
    row(0xdb, ANY, ANY, ANY, is(0x00),  "lock *(u64 *)({rd} {off}) += {rs}",                  Atomic(W64, ADD),               Atomic64,  V1),
    row(0xdb, ANY, ANY, ANY, is(0x40),  "lock *(u64 *)({rd} {off}) |= {rs}",                  Atomic(W64, OR),                Atomic64,  V3),
    row(0xdb, ANY, ANY, ANY, is(0x50),  "lock *(u64 *)({rd} {off}) &= {rs}",                  Atomic(W64, AND),               Atomic64,  V3),
    row(0xdb, ANY, ANY, ANY, is(0xa0),  "lock *(u64 *)({rd} {off}) ^= {rs}",                  Atomic(W64, XOR),               Atomic64,  V3),
    row(0xdb, ANY, ANY, ANY, is(0x01),  "{rs} = atomic_fetch_add((u64 *)({rd} {off}), {rs})", Atomic(W64, FETCH_ADD),         Atomic64,  V3),
    row(0xdb, ANY, ANY, ANY, is(0x41),  "{rs} = atomic_fetch_or((u64 *)({rd} {off}), {rs})",  Atomic(W64, FETCH_OR),          Atomic64,  V3),
    row(0xdb, ANY, ANY, ANY, is(0x51),  "{rs} = atomic_fetch_and((u64 *)({rd} {off}), {rs})", Atomic(W64, FETCH_AND),         Atomic64,  V3),
    row(0xdb, ANY, ANY, ANY, is(0xa1),  "{rs} = atomic_fetch_xor((u64 *)({rd} {off}), {rs})", Atomic(W64, FETCH_XOR),         Atomic64,  V3),
    row(0xdb, ANY, ANY, ANY, is(0xe1),  "{rs} = xchg_64({rd} {off}, {rs})",                   Atomic(W64, AtomicOp::Xchg),    Atomic64,  V3),
    row(0xdb, ANY, ANY, ANY, is(0xf1),  "r0 = cmpxchg_64({rd} {off}, r0, {rs})",              Atomic(W64, AtomicOp::CmpXchg), Atomic64,  V3),
    row(0xdb, ANY, ANY, ANY, is(0x100), "{rd} = load_acquire((u64 *)({rs} {off}))",           LoadAcquire(Dw),                Extension, V4),
    row(0xdb, ANY, ANY, ANY, is(0x110), "store_release((u64 *)({rd} {off}), {rs})",           StoreRelease(Dw),               Extension, V4),

    // 64-bit immediates (section 5.4), two slots each
    wide(0x18, ANY, is(0), __, ANY, ANY, "{rd} = {value} ll",                  LoadImm64(Value),         Base64, V1),
    wide(0x18, ANY, is(1), __, ANY, __,  "{rd} = map_fd[{imm}] ll",            LoadImm64(MapFd),         Base64, V1),
    wide(0x18, ANY, is(2), __, ANY, ANY, "{rd} = map_value_fd[{imm}] {at} ll", LoadImm64(MapValueFd),    Base64, V1),
    wide(0x18, ANY, is(3), __, ANY, ANY, "{rd} = btf_var[{imm}, {next}] ll",   LoadImm64(Variable),      Base64, V1),
    wide(0x18, ANY, is(4), __, ANY, __,  "{rd} = subprog[{far}] ll",           LoadImm64(Code),          Base64, V1),
    wide(0x18, ANY, is(5), __, ANY, __,  "{rd} = map[{map}] ll",               LoadImm64(MapIndex),      Base64, V1),
    wide(0x18, ANY, is(6), __, ANY, ANY, "{rd} = map_value[{map}] {at} ll",    LoadImm64(MapValueIndex), Base64, V1),

    // Legacy packet loads (section 5.5)
    row(0x20, __, __,  __, ANY, "r0 = *(u32 *)skb[{imm}]",      LoadPacket(W, K), Packet, V1),
    row(0x28, __, __,  __, ANY, "r0 = *(u16 *)skb[{imm}]",      LoadPacket(H, K), Packet, V1),
    row(0x30, __, __,  __, ANY, "r0 = *(u8 *)skb[{imm}]",       LoadPacket(B, K), Packet, V1),
    row(0x40, __, ANY, __, ANY, "r0 = *(u32 *)skb[{rs}{plus}]", LoadPacket(W, X), Packet, V1),
    row(0x48, __, ANY, __, ANY, "r0 = *(u16 *)skb[{rs}{plus}]", LoadPacket(H, X), Packet, V1),
    row(0x50, __, ANY, __, ANY, "r0 = *(u8 *)skb[{rs}{plus}]",  LoadPacket(B, X), Packet, V1),
];

/// A row of a one-slot instruction.
#[expect(clippy::too_many_arguments, reason = "the columns of the table")]
const fn row(
    opcode: u8,
    dst: Field,
    src: Field,
    offset: Field,
    imm: Field,
    text: &'static str,
    form: Form,
    group: Group,
    cpu: Cpu,
) -> Encoding {
    Encoding { opcode, dst, src, offset, imm, next_imm: None, text, form, group, cpu }
}

/// A row of a two-slot instruction, with the second slot's `imm` as additional column.
#[expect(clippy::too_many_arguments, reason = "the columns of the table")]
const fn wide(
    opcode: u8,
    dst: Field,
    src: Field,
    offset: Field,
    imm: Field,
    next_imm: Field,
    text: &'static str,
    form: Form,
    group: Group,
    cpu: Cpu,
) -> Encoding {
    Encoding { opcode, dst, src, offset, imm, next_imm: Some(next_imm), text, form, group, cpu }
}
