//! The threaded interpreter, for verified programs.
//!
//! A program is translated once to operations (`translate`): 16 bytes each, with the address of the code that executes
//! it and operands that need no decoding. What the verifier knows is used: code that is never reached is left out,
//! branches that go one way only are no branches, a load from the context is one from the frame. Each handler ends by
//! jumping to the handler of the next operation, so that every operation has an indirect jump of its own, which the
//! processor predicts by what came before. In builds that do not optimize, and on other architectures, handlers return
//! to a loop instead.

#[cfg(feature = "match-dispatch")]
pub(crate) mod by_match;
mod draft;
mod fuse;
mod handlers;
pub mod inspect;
mod kind;
mod machine;
mod op;
mod translate;

use std::sync::Arc;

use paceline_isa::{Imm64, Insn};
use paceline_maps::Map;
use paceline_verifier::Verified;

use crate::engine::Engine;
use crate::host::Host;
use crate::image::{Image, Unset, cpus_of, packet_by_packet};
use crate::program::{DEFAULT_BUDGET, Exit, Program, ProgramError, check};
use machine::Machine;
use op::{Note, Op};

/// A program as operations, which hold the addresses of its maps.
#[derive(Clone)]
pub(crate) struct Operations {
    ops: Arc<[Op]>,
    /// Beside each operation.
    notes: Arc<[Note]>,
}

impl Operations {
    /// Where the program starts.
    pub(crate) fn start(&self) -> *const Op {
        self.ops.as_ptr()
    }
}

/// Makes operations of a verified program.
///
/// # Errors
/// It needs what no engine has.
pub(crate) fn load(verified: &Verified, maps: Vec<Arc<Map>>) -> Result<Program, ProgramError> {
    let spec = Arc::new(verified.program().clone());
    let code = check(&spec, &maps, false)?;
    Program::with_image(Image {
        entry,
        tail_entry,
        burst_entry: packet_by_packet,
        id: Image::next_id(),
        engine: Engine::Threaded,
        spec,
        code,
        operations: Some(translate::translate(verified, &maps)),
        cpus: least_cpus(verified, &maps),
        maps: maps.into(),
        budget: DEFAULT_BUDGET,
        native: None,
    })
}

/// CPUs that all per-CPU arrays which the program names have values for.
fn least_cpus(verified: &Verified, maps: &[Arc<Map>]) -> usize {
    let named = verified.code().iter().filter_map(|(_, insn)| match insn {
        Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => maps.get(usize::try_from(*index).ok()?),
        _ => None,
    });
    named.filter_map(|map| cpus_of(map)).min().unwrap_or(usize::MAX)
}

/// Where packets enter programs of this engine.
///
/// # Safety
/// As for [`tail_entry`].
pub(crate) unsafe extern "C" fn entry(
    context: u64,
    image: u64,
    _: Unset,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    host.begin(context);
    // SAFETY: the caller vouches for it.
    unsafe { run(context, image, host) }
}

/// Where tail calls enter programs of this engine.
///
/// # Safety
/// The first argument must be the address of the frame that the host runs, the second that of the program's image.
pub(crate) unsafe extern "C" fn tail_entry(
    context: u64,
    image: u64,
    _: Unset,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the caller vouches for it.
    unsafe { run(context, image, host) }
}

/// # Safety
/// As for [`tail_entry`].
#[inline]
unsafe fn run(context: u64, image: u64, host: &mut Host) -> u64 {
    // SAFETY: the caller vouches for the address.
    if host.cpu() >= unsafe { &*(image as *const Image) }.cpus {
        return host.lacks_cpu();
    }
    // SAFETY: the caller vouches for the address.
    let mut ip = unsafe { start(image) };
    let mut machine = Machine::new(context, host);
    while !ip.is_null() {
        // SAFETY: the operations are those of a verified program, whose maps the image keeps.
        ip = unsafe { ((*ip).head.handler)(ip, &raw mut machine) };
    }
    machine.registers[0]
}

/// Where a program starts.
///
/// # Safety
/// It must be the address of an image of this engine.
#[inline]
unsafe fn start(image: u64) -> *const Op {
    // SAFETY: the caller vouches for the address.
    match &unsafe { &*(image as *const Image) }.operations {
        Some(operations) => operations.start(),
        None => handlers::end(),
    }
}

/// Runs a program over the packet that the host runs, and counts its instructions; those of programs that it comes to by
/// tail calls do not count.
///
/// # Safety
/// As for [`tail_entry`]; the operations must be those of the image.
pub(crate) unsafe fn run_counted(
    image: &Image,
    operations: &Operations,
    context: u64,
    host: &mut Host,
) -> Exit {
    if host.cpu() >= image.cpus {
        return Exit { r0: host.lacks_cpu(), instructions: 0 };
    }
    let mut machine = Machine::new(context, host);
    machine.keeps = true;
    let (start, mut ip, mut instructions) = (operations.start(), operations.start(), 0);
    // What ends the run is no operation of the program.
    let index = |ip: *const Op| (ip as usize).wrapping_sub(start as usize) / size_of::<Op>();
    while let Some((note, code)) = operations.notes.get(index(ip)).and_then(|note| Some((note, note.code()?)))
    {
        instructions += u64::from(note.weight);
        // SAFETY: `ip` is an operation of this kind, of a verified program whose maps the caller keeps.
        ip = unsafe { handlers::STEPS[usize::from(code)](ip, &raw mut machine) };
    }
    Exit { r0: machine.registers[0], instructions }
}
