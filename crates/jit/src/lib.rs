//! x86-64 code from verified programs.

#![forbid(unsafe_code)]

pub mod x64;
