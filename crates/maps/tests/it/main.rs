//! Tests that need no process of their own, one file for each subject, in one binary, which links once.

#[path = "../common/mod.rs"]
mod common;
mod freeze;
mod lru;
mod model;
mod prefixes;
mod ring_buffer;
mod rules;
mod typed;
