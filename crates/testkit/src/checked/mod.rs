//! Code that checks every access at run time and counts instructions: for unverified programs, and to find unsoundness of the
//! verifier. So it relies on no fact and shares nothing with the code generator but the assembler: each instruction is translated by
//! itself, and each register of the program is always in the same one of the machine.
//!
//! The runtime decides (`run`): stubs pass it `r0` to `r5` in memory, the slot and the accessed pointer. BPF stack frames lie outside the native
//! stack, so that no store of a program can overwrite a return address. When the runtime ends a run, the stack is unwound to the entry.
//!
//! | | |
//! |---|---|
//! | `r0` to `r5` | `rax`, `rdi`, `rsi`, `rdx`, `rcx`, `r8` |
//! | `r6` to `r9` | `rbx`, `r13`, `r14`, `r15` |
//! | `r10` | `rbp` |
//! | the state of the run | `r12` |
//! | scratch | `r10`, `r11`, `r9` |

mod alu;
mod atomic;
mod compile;
mod divide;
mod emitter;
mod error;
mod jump;
mod links;
mod memory;
mod run;
mod stubs;

use std::sync::Arc;

pub use error::CheckedError;
use paceline_engine::exec::{Arena, Code, CodeBlock};
use paceline_engine::{Engine, Exit, Fault, Host, MemoryProgram, Program};
use paceline_maps::Map;
use paceline_runtime::interpreter::entry::entries;
use paceline_runtime::interpreter::image::Native;
use paceline_spec::ProgramSpec;
use paceline_verifier::Verified;

/// The name of checked code in cases and campaigns.
pub const NAME: &str = "checked-jit";

/// Whether this machine can run checked code.
#[must_use]
pub const fn is_available() -> bool {
    cfg!(target_arch = "x86_64")
}

/// A verified program as checked code, which uses no fact of the proof.
///
/// # Errors
/// [`CheckedError`].
pub fn load(verified: &Verified, maps: Vec<Arc<Map>>) -> Result<Program, CheckedError> {
    of(Program::load(verified, maps, Engine::Plain)?)
}

/// A program that nobody verified as checked code.
///
/// # Errors
/// [`CheckedError`].
pub fn load_unverified(spec: Arc<ProgramSpec>, maps: Vec<Arc<Map>>) -> Result<Program, CheckedError> {
    of(Program::new(spec, maps)?)
}

/// A program of any engine as checked code, over the same maps.
///
/// # Errors
/// [`CheckedError`].
#[allow(unsafe_code, reason = "the code of an engine is entered by address")]
pub fn of(program: Program) -> Result<Program, CheckedError> {
    let block = install(program.spec(), program.code(), program.maps())?;
    let native = Native { entry: block.address(), block: Arc::new(block) };
    let entries = entries::<run::Checked>(program.spec().kind);
    // SAFETY: the code is the program's, and the entries enter it.
    Ok(unsafe { program.with_entries(entries, native) })
}

/// Code of a program in executable memory; its entry is the first byte.
fn install(
    spec: &ProgramSpec,
    code: &paceline_isa::Code,
    maps: &[Arc<Map>],
) -> Result<CodeBlock, CheckedError> {
    if !is_available() {
        return Err(CheckedError::Unavailable);
    }
    let bytes = compile::compile(spec, code, maps, run::links())?;
    Ok(Arena::global()?.install(&Code::new(&bytes))?)
}

/// A program over plain memory as checked code.
pub struct CheckedMemory {
    program: MemoryProgram,
    block: CodeBlock,
}

impl CheckedMemory {
    /// Binds a program to its maps.
    ///
    /// # Errors
    /// [`CheckedError`].
    pub fn new(spec: Arc<ProgramSpec>, maps: Vec<Arc<Map>>) -> Result<Self, CheckedError> {
        let program = MemoryProgram::new(spec.clone(), maps.clone())?;
        let block = install(&spec, program.code(), &maps)?;
        Ok(Self { program, block })
    }

    /// Runs the program over memory.
    ///
    /// # Errors
    /// The program made an invalid access.
    #[allow(unsafe_code, reason = "the code of an engine is entered by address")]
    pub fn run(&self, memory: &mut [u8], host: &mut Host) -> Result<Exit, Box<Fault>> {
        let entry = self.block.address();
        // SAFETY: the code is the program's.
        self.program.run_driven(memory, host, |machine| unsafe { run::run(machine, entry) })
    }
}
