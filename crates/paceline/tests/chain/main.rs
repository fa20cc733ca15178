//! Tests of descriptions of chains, one file for each subject, in one binary, which links once.

mod file;
mod front_ends;
mod run_config;
