//! From verified programs to code: the SSA form and its passes, slices of programs, and code generators.
//!
//! | module | what it does |
//! |---|---|
//! | [`ir`] | programs as control-flow graphs in SSA form: built, checked, interpreted, optimized, as text |
//! | [`slice`](mod@slice) | the part of a program that computes the keys of its first look-ups |
//! | [`codegen`] | the part of a code generator that knows no machine: virtual registers, their allocation, emission |
//! | [`native`] | machine code for x86-64 and arm64 |
#![forbid(unsafe_code)]

pub mod codegen;
pub mod internal;
pub mod ir;
pub mod native;
pub mod slice;
