//! Tests of the instruction set, one file for each subject, in one binary, which links once.

mod assembler;
mod common;
mod decode;
mod llvm;
mod round_trips;
mod table;
