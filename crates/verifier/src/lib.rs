//! Verifier.
#![forbid(unsafe_code)]

pub mod domain;
