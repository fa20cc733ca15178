//! Seccomp programs over recorded system calls.

use std::sync::Arc;

use paceline_classic::{Action, ConvertError, Filter, SystemCall};
use paceline_engine::{Fault, Host, MemoryProgram};

/// A seccomp program that computes the actions for system calls.
///
/// The filter runs on the plain interpreter, which checks every access: the verifier has no such program type.
#[derive(Clone)]
pub struct Seccomp {
    program: MemoryProgram,
}

impl std::fmt::Debug for Seccomp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seccomp").finish_non_exhaustive()
    }
}

impl Seccomp {
    /// Converts a program that was checked for [`Purpose::Seccomp`](super::Purpose::Seccomp).
    ///
    /// # Errors
    /// [`ConvertError`] if it was checked for something else.
    pub fn new(filter: &Filter) -> Result<Self, ConvertError> {
        let spec = Arc::new(filter.to_seccomp("seccomp")?);
        let program = MemoryProgram::new(spec, Vec::new())
            .unwrap_or_else(|error| unreachable!("what is converted has the form of a program: {error}"));
        Ok(Self { program })
    }

    /// The program's action for a system call.
    ///
    /// # Errors
    /// The program made an invalid access; impossible for checked programs.
    pub fn action(&self, call: &SystemCall, host: &mut Host) -> Result<Action, Box<Fault>> {
        let exit = self.program.run(&mut call.to_bytes(), host)?;
        Ok(Action::from_return(exit.r0 as u32))
    }
}
