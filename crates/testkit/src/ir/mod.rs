//! The form of `paceline-ir`: whole programs on the plain interpreter's machine.

mod machine;

pub use machine::run_on;
