//! The form as text, both ways.
//!
//! ```text
//! function 0 "parse" (r1) stack 8 {
//! block0(v0: i64 context):
//!     v1: packet = context_load.u32 v0+0 @0
//!     v2: packet_end = context_load.u32 v0+4 @1
//!     v3 = const.i64 14 @2
//!     v4: packet = add.i64 v1, v3 @2
//!     branch.ugt.i64 v4, v2, block2, block1 @3
//! block1:
//!     v5 = load.u16 packet v1+12 in 12..12 of 14 @4
//!     return v5 @5
//! block2:
//!     v6 = const.i64 1 @6
//!     return v6 @7
//! }
//! ```
//! A value's definition may have what it points to after a colon; block parameters have their type before it. `@4` is the slot of the
//! program's instruction. After the address of an access may follow the offsets from the start of its region, and of packets the
//! number of bytes that are proven; after a call its map, key, callback, and the stack bytes that it reads. Text after `;` is a
//! comment. Numbers of values and blocks are kept, unless there are more than
//! 2^20: then they are those of the text's order.

mod lex;
mod names;
mod parse;
mod print;
mod renumber;

pub use parse::{ParseCause, ParseError, parse, parse_unchecked};

#[cfg(test)]
mod tests;
