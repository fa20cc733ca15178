//! The form of `paceline-compiler`: whole programs on the plain interpreter's machine.

mod machine;

pub use machine::run_on;
