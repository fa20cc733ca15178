//! The engine: programs, chains of programs, and call sites, on every engine.
//!
//! A [`Program`] is a program that was checked for form and bound to its maps. It runs over a packet, a burst of
//! packets, or plain memory; a [`Host`] is all that its helpers observe besides these.

mod arrival;
mod chain;
mod engine;
mod entry_program;
#[cfg(feature = "jit")]
pub mod exec;
mod form;
mod host;
mod install;
mod load;
mod load_error;
mod look_ahead;
mod memory_program;
#[cfg(feature = "jit")]
mod native;
mod packet_entry;
mod program;
mod run;
mod site;
#[cfg(feature = "jit")]
mod slice;
#[cfg(feature = "jit")]
mod stages;
mod target;
mod uses;

#[cfg(feature = "jit")]
pub use crate::exec::{CodeMap, Function as NativeFunction, JitSymbols, JitSymbolsError, NAMES_VARIABLE};
pub use arrival::{Arrival, ArrivalError, Outcome, RanAs};
#[cfg(feature = "jit")]
pub use chain::ChainPart;
pub use chain::{Chain, ChainCounts, ChainError};
pub use engine::{Engine, NoSuchEngine};
pub use form::MalformedProgram;
pub use host::Host;
pub use install::InstallError;
pub use load_error::EngineError;
pub use look_ahead::{LookAhead, NoSlice, NoSuchLookAhead};
pub use memory_program::MemoryProgram;
#[cfg(feature = "jit")]
pub use native::NativeCode;
#[cfg(all(feature = "jit", feature = "testing"))]
pub use native::compile_for;
#[cfg(all(feature = "jit", feature = "testing"))]
pub use paceline_compiler::native::{Architecture, Compiled};
#[cfg(feature = "jit")]
pub use paceline_compiler::native::{
    CompileError, OptLevel, Prefetch, Settings as NativeSettings, Unsupported,
};
pub use paceline_runtime::fault::{Fault, FaultKind};
pub use paceline_runtime::host::{Event, EventSink};
pub use paceline_runtime::interpreter::image::{DEFAULT_BUDGET, Exit};
pub use paceline_runtime::interpreter::observe::{Location, Observed, Steer};
#[cfg(feature = "testing")]
pub use paceline_runtime::interpreter::plain::{Machine, Next};
#[doc(hidden)]
pub use paceline_runtime::interpreter::threaded::inspect as threaded_handlers;
pub use paceline_runtime::region::{Access, FaultAddress};
pub use paceline_runtime::time::TimeSource;
pub use program::Program;
#[cfg(feature = "variants")]
#[doc(hidden)]
pub use program::by_match;
pub use run::BurstFault;
#[cfg(feature = "jit")]
pub use site::DispatcherCode;
pub use site::{
    ByKey, ByProgram, CallSite, Caller, Calls, Choice, Fallback, KeyedSite, Site, SiteStatistics, UpdateError,
};
pub use target::Target;
