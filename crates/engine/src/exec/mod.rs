//! Memory that holds generated code.
//!
//! An [`Arena`] is a contiguous range of addresses close to the process's own code. [`Arena::install`] copies [`Code`] into it and
//! returns a [`CodeBlock`]; dropping that retires the code, which is freed when no worker can execute it any more: a [`Domain`]
//! knows the workers by their [`Reader`]s.
//!
//! ```
//! # #[cfg(target_arch = "x86_64")] {
//! use paceline_engine::exec::{Arena, Code};
//!
//! let arena = Arena::global()?;
//! let code = [0xb8, 42, 0, 0, 0, 0xc3]; // mov eax, 42; ret
//! let block = arena.install(&Code::new(&code))?;
//! // SAFETY: the block holds a function of this type, and lives until after the call.
//! let answer = unsafe { std::mem::transmute::<*const u8, extern "sysv64" fn() -> u32>(block.as_ptr()) };
//! assert_eq!(answer(), 42);
//! # }
//! # Ok::<(), paceline_engine::exec::ExecError>(())
//! ```
//!
//! # Never writable and executable
//! No address of the process is both writable and executable, and executable memory has no writable alias: code is written through
//! the file behind the executable mapping. This is allowed under `PR_SET_MDWE` (systemd's `MemoryDenyWriteExecute=`). All
//! executable memory contains code or guard bytes, which are breakpoints on x86-64: between blocks, in place of freed code, and in
//! memory that the arena has committed in advance.
//!
//! # Replacing code under running workers
//! Each worker registers once and pins itself around a burst. To replace code, first publish the new address, then drop the old
//! block:
//!
//! ```
//! # #[cfg(target_arch = "x86_64")] {
//! use std::sync::atomic::{AtomicPtr, Ordering};
//!
//! use paceline_engine::exec::{Arena, Code};
//!
//! let arena = Arena::global()?;
//! let first = arena.install(&Code::new(&[0xb8, 1, 0, 0, 0, 0xc3]))?;
//! let current = AtomicPtr::new(first.as_ptr().cast_mut());
//!
//! std::thread::scope(|scope| {
//!     let mut reader = arena.domain().reader();
//!     scope.spawn(|| {
//!         let mut reader = reader;
//!         let _burst = reader.pin();
//!         let code = current.load(Ordering::Acquire);
//!         // SAFETY: both blocks hold a function of this type, and the one found now stays while the reader is pinned.
//!         let code = unsafe { std::mem::transmute::<*mut u8, extern "sysv64" fn() -> u32>(code) };
//!         assert!([1, 2].contains(&code()));
//!     });
//!     let second = arena.install(&Code::new(&[0xb8, 2, 0, 0, 0, 0xc3])).unwrap();
//!     current.store(second.as_ptr().cast_mut(), Ordering::Release);
//!     drop(first);
//!     std::mem::forget(second); // still published
//! });
//! # }
//! # Ok::<(), paceline_engine::exec::ExecError>(())
//! ```
//!
//! # Forks
//! A fork of the process has a copy of all code, which it may execute indefinitely. It cannot install code: [`ExecError::Forked`].
//!
//! # Symbols
//! A [`Function`] has the name of a code range and the instructions it was compiled from. [`find`] looks up an address, also in a
//! signal handler; [`JitSymbols`] exports symbols to `perf` and `gdb`.
//!
//! # Architectures
//! Code can be installed on x86-64 and s390x, whose instruction caches are coherent, and on arm64, where they are maintained after each
//! write; on others an arena can be created, but [`Arena::install`] fails.

mod arena;
mod block;
mod cache;
mod code;
mod error;
mod extents;
mod fork;
mod marker;
mod memory;
mod names;
mod place;
mod registry;
mod serialize;
mod space;
mod sync;

pub use arena::Arena;
pub use block::CodeBlock;
pub use code::{Code, CodeMap, Function, MAX_ALIGNMENT, Relocation, SourceLine};
pub use error::ExecError;
pub use memory::GUARD_BYTE;
pub use names::{JitSymbols, JitSymbolsError, NAMES_VARIABLE};
pub use paceline_epoch::{Domain, Pin, Reader};
pub use registry::{Location, find};
