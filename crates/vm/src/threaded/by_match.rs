//! The same operations dispatched by a `match` over their codes: what an interpreter in Rust usually is, to measure what
//! jumping from handler to handler brings.

use std::sync::Arc;

use super::handlers::{Loop, each_code, operation};
use super::machine::Machine;
use super::op::{Head, Op};
use super::{Operations, start};
use crate::engine::Engine;
use crate::host::Host;
use crate::image::{Image, Unset, packet_by_packet};
use crate::program::Program;

/// The program with this kind of dispatch; `None` if it is not one for the threaded interpreter.
#[must_use]
pub fn by_match(program: &Program) -> Option<Program> {
    let operations = program.image.operations.as_ref()?;
    let mut ops = operations.ops.to_vec();
    for (op, note) in ops.iter_mut().zip(&*operations.notes) {
        // Second parts keep their word.
        if let Some(code) = note.code() {
            op.head = Head { word: u64::from(code) };
        }
    }
    let operations = Some(Operations { ops: Arc::from(ops), notes: operations.notes.clone() });
    // By another engine's name: a tail call from the threaded interpreter must not take these operations for its own.
    let engine = Engine::Plain;
    let burst_entry = packet_by_packet;
    Program::with_image(Image {
        entry,
        tail_entry,
        burst_entry,
        engine,
        operations,
        ..(*program.image).clone()
    })
    .ok()
}

unsafe extern "C" fn entry(context: u64, image: u64, _: Unset, _: Unset, _: Unset, host: &mut Host) -> u64 {
    host.begin(context);
    // SAFETY: the caller vouches for it.
    unsafe { run(context, image, host) }
}

unsafe extern "C" fn tail_entry(
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
/// As of [`tail_entry`](super::tail_entry).
#[inline(never)]
unsafe fn run(context: u64, image: u64, host: &mut Host) -> u64 {
    // SAFETY: the caller vouches for the address.
    if host.cpu() >= unsafe { &*(image as *const Image) }.cpus {
        return host.lacks_cpu();
    }
    // SAFETY: the caller vouches for the address.
    let mut ip = unsafe { start(image) };
    let mut machine = Machine::new(context, host);
    machine.keeps = true;
    while !ip.is_null() {
        // SAFETY: the operations are those of a verified program, and their heads hold their codes.
        ip = unsafe { step((*ip).head.word, ip, &raw mut machine) };
    }
    machine.registers[0]
}

macro_rules! step {
    ($($code:literal)*) => {
        /// # Safety
        /// As of [`operation`] of this code.
        #[inline(always)]
        unsafe fn step(code: u64, ip: *const Op, machine: *mut Machine) -> *const Op {
            match code {
                // SAFETY: the caller vouches for it.
                $($code => unsafe { operation::<Loop, $code>(ip, machine) },)*
                _ => std::ptr::null(),
            }
        }
    };
}

each_code!(step);
