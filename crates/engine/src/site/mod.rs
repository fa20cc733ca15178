//! Call sites: places from which many programs are called, and where a running program is replaced.
//!
//! A site has a dispatcher, as the kernel has for XDP programs: generated code that finds the program by comparing and jumps
//! straight into it, so that the call is a direct one. A new image is built beside the old one and published in one store; the old
//! one, and a program that no slot holds any more, are freed after a grace period.

mod call_site;
mod calls;
mod choice;
#[cfg(feature = "jit")]
mod code;
#[cfg(feature = "jit")]
mod compile;
mod error;
mod image;
mod maker;
mod statistics;

pub use call_site::{CallSite, KeyedSite, Site};
pub use calls::{Caller, Calls};
pub use choice::{ByKey, ByProgram, Choice};
#[cfg(feature = "jit")]
pub use code::DispatcherCode;
pub use error::{Fallback, UpdateError};
pub use statistics::SiteStatistics;
