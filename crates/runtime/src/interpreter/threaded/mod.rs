//! The threaded interpreter, for verified programs.
//!
//! A program is translated once, by its SSA form and the passes of native code (`form`, `select`), to operations: 16 bytes each, with the
//! address of the code that executes it and operands that need no decoding. Each handler ends by jumping to the handler of the next
//! operation, so that every operation has an indirect jump of its own, which the processor predicts by what came before. Operations that
//! often follow each other have a handler for all (`fuse`). In builds that do not optimize, and on other architectures, handlers return
//! to a loop instead.
//!
//! Registers are words of memory, the window of the running function: a call moves the window on and saves none. Handlers hold the
//! packet's start and length in registers of the machine. A comparison that leads to a constant result ends the program itself. A
//! handler ends in a tail call of the next one: `crates/engine/tests/tail_jumps.rs` reads the machine code to check that the compiler
//! made it a jump. Runs that count instructions are those of the plain interpreter. There is nothing that it cannot run: an error
//! of translation is a bug.

#[cfg(feature = "variants")]
mod by_match;
mod code;
mod error;
mod form;
mod fuse;
mod handlers;
mod helpers;
pub mod inspect;
mod kind;
mod select;
mod sequence;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use crate::callback::{CallbackCode, CompiledFunctions};
use crate::host::Host;
use crate::machine::LEAST_WORDS;
use crate::readable::Readable;
use paceline_frame::Frame;
use paceline_isa::Code;
use paceline_maps::Map;
use paceline_spec::ProgramSpec;
use paceline_verifier::Verified;

use crate::interpreter::entry::{Interpreter, entries};
use crate::interpreter::image::{Image, sets_callbacks};
use crate::interpreter::op::{Op, Packet};
use crate::interpreter::operations::{Operations, in_fresh_machine};
use handlers::dispatch::{Dispatch, Jump};

pub use error::TranslateError;

#[cfg(feature = "variants")]
pub use by_match::by_match;

/// The image of a verified program for the threaded interpreter.
///
/// # Errors
/// [`TranslateError`]: a bug.
pub fn image(
    verified: &Verified,
    spec: Arc<ProgramSpec>,
    code: Code,
    maps: Vec<Arc<Map>>,
) -> Result<Image, TranslateError> {
    let operations = form::translate(verified, &maps)?;
    let entries = match operations.words <= LEAST_WORDS {
        true => entries::<Threaded<true>>(spec.kind),
        false => entries::<Threaded<false>>(spec.kind),
    };
    let sets_callbacks = sets_callbacks(&code);
    let image = Image::new(spec, code, maps.into(), entries);
    let callbacks = sets_callbacks
        .then(|| CallbackCode::new(operations.clone(), image.per_cpu.clone(), image.maps.to_vec()));
    Ok(Image { operations: Some(operations), shares_machine: true, callbacks, ..image })
}

impl CompiledFunctions for Operations {
    fn range(&self) -> Range<u64> {
        let ops = self.ops.as_ptr_range();
        ops.start as u64..ops.end as u64
    }

    unsafe fn call(&self, address: u64, arguments: [u64; 5], maps: &[Arc<Map>], host: &mut Host) {
        host.run.readable = Readable::of(maps);
        in_fresh_machine(host, |host| {
            let (_, window) = self.begin(&mut host.machine, 0);
            // SAFETY: the function and its arguments, which the window has room for, are guaranteed by the caller.
            unsafe {
                window.add(1).cast::<[u64; 5]>().write(arguments);
                Jump::run(address as *const Op, host, Packet::of(host), window)
            }
        });
    }
}

/// The threaded interpreter; for programs to which [`LEAST_WORDS`] are enough if `SMALL`.
struct Threaded<const SMALL: bool>;

impl<const SMALL: bool> Interpreter for Threaded<SMALL> {
    type Code<'a> = &'a Operations;

    fn code(image: &Image) -> Option<&Operations> {
        image.operations.as_ref()
    }

    unsafe fn run(operations: &Operations, context: u64, host: &mut Host) -> u64 {
        let (start, window) = match SMALL {
            // SAFETY: every machine has so many words.
            true => unsafe { operations.begin_small(&mut host.machine, context) },
            false => operations.begin(&mut host.machine, context),
        };
        // SAFETY: the operations are those of a verified program, whose maps the image keeps; the rest is guaranteed by the caller.
        unsafe { Jump::run(start, host, Packet::in_frame(context as *const Frame), window) }
    }

    unsafe fn run_called(operations: &Operations, context: u64, host: &mut Host) -> u64 {
        // SAFETY: guaranteed by the caller.
        in_fresh_machine(host, |host| unsafe { Self::run(operations, context, host) })
    }
}
