//! Tests of captures, one file for each subject, in one binary, which links once.

mod bad_captures;
mod common;
mod formats;
mod mutations;
mod oracle;
mod splits;
mod windows;
