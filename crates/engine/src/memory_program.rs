//! Programs that run over plain memory, without a packet.

use std::sync::Arc;

use paceline_maps::Map;
use paceline_runtime::fault::Fault;
use paceline_runtime::interpreter::image::Exit;
#[cfg(all(feature = "jit", feature = "testing"))]
use paceline_runtime::interpreter::image::Unset;
use paceline_runtime::interpreter::plain;
use paceline_spec::ProgramSpec;

#[cfg(all(feature = "jit", feature = "testing"))]
use crate::engine::Engine;
use crate::form::{Form, MalformedProgram};
use crate::host::Host;
#[cfg(all(feature = "jit", feature = "testing"))]
use crate::load_error::EngineError;
#[cfg(all(feature = "jit", feature = "testing"))]
use crate::native;
use crate::program::Program;

/// A program over plain memory, such as a seccomp filter or a test of the bpf_conformance suite: `r1` is the address of the memory,
/// or 0 if it is empty, and `r2` its length. It may also use the legacy packet loads, over that memory. The verifier knows
/// no such programs: the plain interpreter checks every access.
#[derive(Clone)]
pub struct MemoryProgram(Program);

impl std::fmt::Debug for MemoryProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MemoryProgram").field(&self.0).finish()
    }
}

impl MemoryProgram {
    /// Binds a program to its maps, which its instructions name by index, for the plain interpreter.
    ///
    /// # Errors
    /// [`MalformedProgram`] names the first malformed instruction.
    pub fn new(spec: Arc<ProgramSpec>, maps: Vec<Arc<Map>>) -> Result<Self, MalformedProgram> {
        Program::checked(spec, maps, Form::Memory).map(Self)
    }

    /// Runs the program over memory. Native code does not count its instructions: the number is 0.
    ///
    /// # Errors
    /// The program made an invalid access.
    pub fn run(&self, memory: &mut [u8], host: &mut Host) -> Result<Exit, Box<Fault>> {
        let range = memory.as_mut_ptr_range();
        let (start, end) = (range.start as u64, range.end as u64);
        let image = &self.0.image;
        let host = &mut host.runtime;
        host.admit(&self.0.image.per_cpu)?;
        let exit = self.0.pinned(host, |host| match self.0.engine() {
            #[cfg(all(feature = "jit", feature = "testing"))]
            // SAFETY: the program was guaranteed by the caller of `jit`.
            Engine::Jit => Ok(unsafe { run_native(&self.0, start, end, host) }),
            // SAFETY: the memory is borrowed for the run.
            _ => unsafe { plain::run_memory(image, start..end, host) },
        });
        host.run.resume_panic();
        exit
    }
}

/// Engines that only tests have.
#[cfg(feature = "testing")]
impl MemoryProgram {
    /// The decoded instructions.
    #[must_use]
    pub fn code(&self) -> &paceline_isa::Code {
        &self.0.image.code
    }

    /// Runs the program over memory on the plain interpreter's machine, which `drive` lets execute instructions in place of the
    /// interpreter's loop.
    ///
    /// # Errors
    /// The program made an invalid access.
    pub fn run_driven(
        &self,
        memory: &mut [u8],
        host: &mut Host,
        drive: impl FnOnce(plain::Machine<'_>) -> Result<Exit, Box<Fault>>,
    ) -> Result<Exit, Box<Fault>> {
        let range = memory.as_mut_ptr_range();
        let (start, end) = (range.start as u64, range.end as u64);
        let arguments = [if start == end { 0 } else { start }, end - start];
        let host = &mut host.runtime;
        host.admit(&self.0.image.per_cpu)?;
        let exit = self.0.pinned(host, |host| {
            host.run.leave_packet();
            // SAFETY: the memory is borrowed for the run.
            drive(unsafe { plain::Machine::on_memory(&self.0.image, arguments, start..end, host) })
        });
        host.run.resume_panic();
        exit
    }
}

/// Native code over memory, which only tests run.
#[cfg(all(feature = "jit", feature = "testing"))]
impl MemoryProgram {
    /// The program as native code that checks nothing.
    ///
    /// # Errors
    /// [`EngineError`](EngineError): it is malformed, or there is no native code for it.
    ///
    /// # Safety
    /// Runs of the program must end, and access only its stack, its arguments, and its maps.
    pub unsafe fn jit(spec: Arc<ProgramSpec>, maps: Vec<Arc<Map>>) -> Result<Self, EngineError> {
        // SAFETY: the program is guaranteed by the caller.
        unsafe { native::load_unverified(spec, maps, Form::Memory) }.map(Self)
    }
}

/// Enters native code past the instructions that set up a packet's run.
///
/// # Safety
/// The program must be one of [`MemoryProgram::jit`].
#[cfg(all(feature = "jit", feature = "testing"))]
unsafe fn run_native(
    program: &Program,
    start: u64,
    end: u64,
    host: &mut paceline_runtime::host::Host,
) -> Exit {
    let r1 = if start == end { 0 } else { start };
    let unset = Unset::uninit();
    host.run.leave_packet();
    host.run.tail_calls = 0;
    // SAFETY: the program is guaranteed by the caller.
    let r0 = unsafe { (program.image.entries.tail)(r1, end - start, unset, unset, unset, host) };
    Exit { r0, instructions: 0 }
}
