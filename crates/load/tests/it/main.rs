//! Tests of the loader, one file for each subject, in one binary, which links once.

mod common;
mod bpftool;
mod conventions;
mod crafted;
mod hostile;
mod libbpf;
mod values;
