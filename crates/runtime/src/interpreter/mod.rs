//! Images of programs, and the two interpreters that run them.
//!
//! An [`Image`](image::Image) is a program made ready for an engine: a function that takes a packet, with one signature for all engines, so
//! that programs of different engines can tail call each other. Native code has images too, which its compiler makes.

mod callers;
pub mod entry;
pub mod image;
pub mod observe;
mod op;
mod operations;
pub mod plain;
pub mod staged;
pub mod threaded;
