//! Tests of captures, one file for each subject, in one binary, which links once.

mod common;
mod bad_captures;
mod formats;
mod mutations;
mod oracle;
