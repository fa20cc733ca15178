//! Memory that holds generated code.
//!
//! An [`Arena`] is one stretch of addresses near the process's own code. [`Arena::install`] copies [`Code`] into it and
//! gives a [`CodeBlock`]; dropping that retires the code, which is freed when no worker can be inside any more: a
//! [`Domain`] knows the workers by their [`Reader`]s.
//!
//! ```
//! # #[cfg(target_arch = "x86_64")] {
//! use paceline_exec::{Arena, Code};
//!
//! let arena = Arena::global()?;
//! let code = [0xb8, 42, 0, 0, 0, 0xc3]; // mov eax, 42; ret
//! let block = arena.install(&Code::new(&code))?;
//! // SAFETY: the block holds a function of this type, and lives until after the call.
//! let answer = unsafe { std::mem::transmute::<*const u8, extern "sysv64" fn() -> u32>(block.as_ptr()) };
//! assert_eq!(answer(), 42);
//! # }
//! # Ok::<(), paceline_exec::ExecError>(())
//! ```
//!
//! # Never writable and executable
//! No address of the process can be written and executed, and what can be executed has no other address that can be
//! written: code goes in through the file behind the executable mapping. So it works under `PR_SET_MDWE` (systemd's
//! `MemoryDenyWriteExecute=`). All that can be executed is code or guard bytes, a breakpoint each on x86-64: between
//! blocks, where code was, and in all memory that the arena has committed in advance.
//!
//! # Replacing code under running workers
//! Each worker registers once and pins itself around a burst. Whoever replaces code publishes the new address first
//! and drops the old block then:
//!
//! ```
//! # #[cfg(target_arch = "x86_64")] {
//! use std::sync::atomic::{AtomicPtr, Ordering};
//!
//! use paceline_exec::{Arena, Code};
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
//! # Ok::<(), paceline_exec::ExecError>(())
//! ```
//!
//! # Forks
//! A fork of the process has a copy of all code, which it may run as long as it likes, and installs none: that is an
//! [`ExecError::Forked`].
//!
//! # JitSymbols
//! A [`Function`] says what a stretch of code is called and which instructions it was made from. [`find`] answers that
//! for an address, also in a signal handler; [`JitSymbols`] tells `perf` and `gdb`.
//!
//! # Machines
//! Code can be installed on x86-64 and s390x, whose instruction caches follow writes; elsewhere an arena can be made and
//! [`Arena::install`] says that it is not supported.

mod arena;
mod block;
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
mod sync;

pub use arena::{Arena, MAX_ALIGNMENT};
pub use block::CodeBlock;
pub use code::{Code, CodeMap, Function, Relocation, SourceLine};
pub use error::ExecError;
pub use memory::GUARD_BYTE;
pub use names::{JitSymbols, JitSymbolsError, NAMES_VARIABLE};
pub use paceline_epoch::{Domain, Pin, Reader};
pub use registry::{Location, find};
