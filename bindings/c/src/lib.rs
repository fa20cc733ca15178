//! Paceline as a C library: what `include/paceline.h` declares. docs/C.md is its page for users; this one is for those who change it.
//!
//! # Handles
//! A handle of C is a number, typed as a pointer (`handles`): kind, cell and generation. No memory is read through it, so that one
//! that was freed, is of another kind, or never was, is an error and not a crash. A handle has one owner, who frees it once. What it
//! names is reference counted: a program keeps its maps when its collection is freed, and a chain its programs.
//!
//! # Threads
//! Objects, collections, programs, maps, chains, pools and filters may be used by any number of threads. Bursts, hosts, workers and
//! builders are locked while a call uses them; a second user gets `PACELINE_STATUS_BUSY` at once, as it may be a callback of the
//! first, which would wait for ever. Handles are locked in one order: worker, host, burst, pool.
//!
//! # Errors
//! A call gives a status or a handle; if the caller wants more, an error handle has data and text (`told`). A missing element, an
//! empty ring, the end of a list are answers (`PACELINE_STATUS_NOT_FOUND`) without a handle.
//!
//! # Unsafe code
//! Everything that C passes by address has a type of `raw`, the only file that reads, writes and calls through pointers; the others are safe
//! code, apart from `pool`, where the caller's memory becomes frames (`tests/interface.rs` reads the sources for it). Every function runs
//! in `call`, from which no panic escapes.
//!
//! # The interface's version
//! Functions and members of structures are added, never changed or removed, within one [`PACELINE_ABI_VERSION`], the number in the
//! soname. Structures begin with their size, so that members can be added at their end: of a shorter one the rest is
//! zero, and a longer one is taken if the rest is. `tests/interface.rs` compares the functions here, the header, the list
//! in `symbols.txt` and the layouts of structures; `header.sh` makes the header with cbindgen.
#![allow(non_camel_case_types, reason = "the names of C")]
#![allow(missing_debug_implementations, reason = "its users are in C")]

mod bound;
mod builder;
mod burst;
mod c_string;
mod call;
mod chain;
mod chain_file;
mod collection;
mod context;
mod edge;
mod error;
mod event;
mod filter;
mod handles;
mod host;
mod kinds;
mod map;
mod object;
mod opaque;
mod packet;
mod pool;
mod program;
mod raw;
mod status;
mod text;
mod told;
mod version;

pub use builder::*;
pub use burst::*;
pub use chain::*;
pub use chain_file::*;
pub use collection::*;
pub use context::*;
pub use edge::*;
pub use error::*;
pub use event::*;
pub use filter::*;
pub use host::*;
pub use kinds::*;
pub use map::*;
pub use object::*;
pub use opaque::*;
pub use packet::*;
pub use pool::*;
pub use program::*;
pub use raw::*;
pub use status::*;
pub use text::*;
pub use told::*;
pub use version::*;
