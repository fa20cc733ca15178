//! The threaded interpreter, for verified programs.
//!
//! A program is translated once to operations (`translate`): 16 bytes each, with the address of the code that executes
//! it and operands that need no decoding. What the verifier knows is used: code that is never reached is left out,
//! branches that go one way only are no branches, a load from the context is one from the frame. Each handler ends by
//! jumping to the handler of the next operation, so that every operation has an indirect jump of its own, which the
//! processor predicts by what came before. In builds that do not optimize, and on other architectures, handlers return
//! to a loop instead.

#[cfg(feature = "variants")]
mod by_match;
mod draft;
mod fuse;
mod handlers;
mod helpers;
pub mod inspect;
mod kind;
mod known;
mod live;
mod op;
mod packet_field;
#[cfg(test)]
mod tests;
mod translate;

use std::ops::Range;
use std::sync::Arc;

use paceline_isa::Code;
use paceline_maps::Map;
use paceline_runtime::callback::{CallbackCode, CompiledFunctions};
use paceline_runtime::host::Host;
use paceline_runtime::machine::Machine;
use paceline_runtime::readable::Readable;
use paceline_runtime::run_rules::RunRules;
use paceline_runtime::stack::STACK_FRAME;
use paceline_spec::ProgramSpec;
use paceline_verifier::Verified;

use crate::entry::{Interpreter, burst_entry, entry_for, tail_entry};
use crate::image::{DEFAULT_BUDGET, Exit, Image, least_cpus, sets_callbacks};
use handlers::Dispatch;
use kind::Kind;
use op::{Head, Note, Op, Packet};

#[cfg(feature = "variants")]
pub use by_match::by_match;

/// A program as operations, which hold the addresses of its maps.
#[derive(Clone)]
pub struct Operations {
    ops: Arc<[Op]>,
    /// Beside each operation.
    notes: Arc<[Note]>,
}

impl Operations {
    /// Makes operations of others that lie, or would lie, from an address on.
    fn new(ops: &[Op], from: u64, notes: Arc<[Note]>) -> Self {
        let mut ops: Arc<[Op]> = Arc::from(ops);
        let moved = (ops.as_ptr() as u64).wrapping_sub(from);
        let is_test = |note: &Note| matches!(note.kind(), Some(Kind::Test { .. }));
        for (op, note) in Arc::get_mut(&mut ops).into_iter().flatten().skip(1).zip(&*notes) {
            if is_test(note) {
                // SAFETY: the second part of a test holds a number, where its first part leads.
                op.head = Head { word: unsafe { op.head.word }.wrapping_add(moved) };
            }
        }
        Self { ops, notes }
    }

    /// Where the program starts.
    fn start(&self) -> *const Op {
        self.ops.as_ptr()
    }
}

/// The image of a verified program for the threaded interpreter.
#[must_use]
pub fn image(verified: &Verified, spec: Arc<ProgramSpec>, code: Code, maps: Vec<Arc<Map>>) -> Image {
    let operations = translate::translate(verified, &maps);
    let cpus = least_cpus(verified.code(), &maps);
    let callbacks = sets_callbacks(&code).then(|| CallbackCode::new(operations.clone(), cpus, maps.clone()));
    let rules = RunRules::of(spec.kind);
    Image {
        entry: entry_for::<Threaded>(rules.as_ref()),
        tail_entry: tail_entry::<Threaded>,
        burst_entry: burst_entry::<Threaded>,
        id: Image::next_id(),
        rules,
        spec,
        code,
        operations: Some(operations),
        shares_machine: true,
        cpus,
        maps: maps.into(),
        budget: DEFAULT_BUDGET,
        callbacks,
        native: None,
        staged: None,
    }
}

impl CompiledFunctions for Operations {
    fn range(&self) -> Range<u64> {
        let ops = self.ops.as_ptr_range();
        ops.start as u64..ops.end as u64
    }

    unsafe fn call(&self, address: u64, arguments: [u64; 5], maps: &[Arc<Map>], host: &mut Host) {
        host.readable = Readable::of(maps);
        in_fresh_machine(host, |host| {
            host.machine.registers[1..6].copy_from_slice(&arguments);
            // SAFETY: the caller vouches for the function and its arguments.
            unsafe { handlers::Jump::run(address as *const Op, host) }
        });
    }
}

/// The threaded interpreter.
struct Threaded;

impl Interpreter for Threaded {
    type Code<'a> = *const Op;

    fn code(image: &Image) -> Option<*const Op> {
        image.operations.as_ref().map(Operations::start)
    }

    unsafe fn run(start: *const Op, context: u64, host: &mut Host) -> u64 {
        // SAFETY: the operations are those of a verified program, whose maps the image keeps; the caller vouches for the rest.
        unsafe { run::<handlers::Jump>(start, context, host) }
    }

    unsafe fn run_called(start: *const Op, context: u64, host: &mut Host) -> u64 {
        // SAFETY: the caller vouches for it.
        in_fresh_machine(host, |host| unsafe { Self::run(start, context, host) })
    }
}

/// Runs a program while the machine, and the frames of the stack that are in use, wait for it.
fn in_fresh_machine(host: &mut Host, run: impl FnOnce(&mut Host) -> u64) -> u64 {
    let top = host.stack_top() - (host.depth * STACK_FRAME) as u64;
    let waiting = std::mem::replace(&mut host.machine, Machine::new(top));
    let r0 = run(host);
    host.machine = waiting;
    r0
}

/// Runs a program over a packet.
///
/// # Safety
/// The host must run the packet, and its machine nothing; `start` must be where a verified program starts whose maps live.
#[inline]
unsafe fn run<D: Dispatch>(start: *const Op, context: u64, host: &mut Host) -> u64 {
    host.machine.registers[1] = context;
    // SAFETY: the caller vouches for it.
    unsafe { D::run(start, host) }
}

/// Runs a program over the packet that the host runs, and counts its instructions; those of programs that it comes to by
/// tail calls do not count.
///
/// # Safety
/// The context must be the address of the frame that the host runs.
pub unsafe fn run_counted(image: &Image, operations: &Operations, context: u64, host: &mut Host) -> Exit {
    let Some(start) = Threaded::prepare(image, host) else { return Exit { r0: 0, instructions: 0 } };
    host.machine.registers[1] = context;
    host.machine.keeps = true;
    let (mut ip, mut instructions) = (start, 0);
    // Operations are executed one by one, as those that are fused may leave in the middle. What ends the run is no
    // operation of the program.
    let index = |ip: *const Op| (ip as usize).wrapping_sub(start as usize) / size_of::<Op>();
    while let Some((note, code)) =
        operations.notes.get(index(ip)).and_then(|note| Some((note, note.alone()?)))
    {
        instructions += u64::from(note.weight);
        // SAFETY: `ip` is an operation of this kind, of a verified program whose maps the image keeps.
        ip = unsafe { handlers::STEPS[usize::from(code)](ip, host, Packet::of(host)) } as *const Op;
    }
    host.machine.keeps = false;
    Exit { r0: host.machine.registers[0], instructions }
}
