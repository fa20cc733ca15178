//! Verified programs as control-flow graphs in SSA form, before and after passes: for reading what a compiler makes of a program.
//!
//! ```
//! use paceline::ir::{Passes, build, optimize};
//! use paceline::{ProgramKind, ProgramSpec, isa, verifier};
//!
//! let insns = isa::assemble("r0 = 1\n r0 += 1\n exit", &())?.encode()?;
//! let program = ProgramSpec::new("two", ProgramKind::SocketFilter, insns);
//! let verified = verifier::verify(&program, &[], None, &verifier::Options::default())?;
//! let mut module = build(&verified)?;
//! optimize(&mut module, &Passes::default())?;
//! assert!(module.to_string().contains("const.i64 2"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use paceline_compiler::ir::text::ParseError;
pub use paceline_compiler::ir::{
    BuildCause, BuildError, CheckError, Module, NoSuchPass, Pass, PassError, Passes, build, check, optimize,
    parse,
};
