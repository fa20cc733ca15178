//! One program of an object on all that can run it: each engine with single packets and with bursts, the ways to run a
//! chain, the kernel. Each has its own maps with equal contents.
//!
//! The programs come from the public loader ([`paceline::Object`]). Campaigns run these trials in child processes
//! ([`child`](crate::child)), so that a crash affects one program.

mod chain;
mod files;
mod fill;
mod kernel;
mod observation;
mod ours;
mod packets;
mod trial;

pub use chain::{ChainTrial, chain_difference};
pub use files::{captured, files_below};
pub use fill::{fill_from_seed, has_large_maps, size_maps};
pub use kernel::{KernelRun, on_kernel};
pub use ours::{is_pure, on_engine};
pub use packets::{packets_of, pool};
pub use trial::{ENGINES, Findings, KernelVerdict, OurVerdict, Verdicts, try_program};

pub use observation::{Observation, Trial};
