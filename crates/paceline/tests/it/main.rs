//! Tests that need no process of their own, one file for each subject, in one binary, which links once.

#[cfg(feature = "captures")]
mod capture_queues;
mod chain;
#[cfg(feature = "json")]
mod chain_files;
mod drops;
mod filter;
mod loading;
mod pipeline;
mod tail_calls;
mod timers;
#[cfg(feature = "json")]
mod typed_maps;
