//! The state and memory of a run, and the helpers that programs call.
//!
//! A [`Host`](host::Host) is all that programs observe besides packets and maps. Engines begin and end runs on it, and call helpers
//! with it. Nothing here knows an engine.

pub mod callback;
pub mod context;
mod cpu_claim;
pub mod fault;
pub mod helpers;
pub mod host;
pub mod interpreter;
mod kernel_context;
pub mod machine;
pub mod memory;
pub mod per_cpu;
pub mod readable;
pub mod region;
pub mod rounds;
pub mod run_rules;
pub mod stack;
pub mod time;
pub mod timers;
pub mod trials;
mod tunnel_key;
