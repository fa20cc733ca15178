//! The engines that run programs, the helpers programs call, and the memory they may touch.
//!
//! A [`Program`] is a program that was checked for form and bound to its maps. It runs over a packet, a burst of
//! packets, or plain memory; a [`Host`] is what its helpers see of the world.

mod chain;
mod context;
mod engine;
mod entry_program;
mod fault;
mod form;
mod helpers;
mod host;
mod image;
mod interpreter;
mod kernel_context;
mod later;
mod load;
mod memory;
mod memory_program;
mod native;
mod observe;
mod plain;
mod program;
mod readable;
mod region;
mod site;
mod target;
mod threaded;
mod time;

pub use chain::{Chain, ChainCounts, ChainError};
pub use engine::{Engine, NoSuchEngine};
pub use fault::{Fault, FaultKind};
pub use form::ProgramError;
pub use host::{Event, EventSink, Host};
pub use load::LoadError;
pub use memory_program::MemoryProgram;
pub use native::NativeCode;
pub use observe::Observed;
pub use paceline_exec::{CodeMap, Function as NativeFunction};
pub use paceline_exec::{JitSymbols, JitSymbolsError, NAMES_VARIABLE};
pub use paceline_jit::{Prefetch, Settings as NativeSettings};
pub use program::{BurstFault, DEFAULT_BUDGET, Exit, InstallError, Program};
pub use region::{Access, FaultAddress};
pub use site::{
    ByKey, ByProgram, CallSite, Caller, Calls, Choice, DispatcherCode, Fallback, KeyedSite, Site,
    SiteStatistics, UpdateError,
};
pub use target::Target;
#[cfg(feature = "variants")]
#[doc(hidden)]
pub use threaded::by_match::by_match;
#[doc(hidden)]
pub use threaded::inspect as threaded_handlers;
pub use time::TimeSource;
