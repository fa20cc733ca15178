//! Tests of the loader, one file for each subject, in one binary, which links once.

mod bpftool;
mod common;
mod conventions;
mod crafted;
mod hostile;
mod libbpf;
mod values;
mod variables;
