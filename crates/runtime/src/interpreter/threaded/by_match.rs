//! The same operations dispatched by a `match` over their codes, as usual for interpreters in Rust: the baseline of
//! measurements of handlers that jump to each other.

use crate::host::Host;

use super::code::NO_CODE;
use super::handlers::dispatch::Loop;
use super::handlers::{each_code, operation};
use crate::interpreter::entry::{Interpreter, entries};
use crate::interpreter::image::Image;
use crate::interpreter::op::{Head, Op, Packet};
use crate::interpreter::operations::{Operations, in_fresh_machine};

/// The image with this kind of dispatch; `None` if it is not one for the threaded interpreter.
#[must_use]
pub fn by_match(image: &Image) -> Option<Image> {
    let operations = image.operations.as_ref()?;
    let mut ops = operations.ops.to_vec();
    for (op, code) in ops.iter_mut().zip(&*operations.codes) {
        // Second parts keep their words.
        if *code != NO_CODE {
            op.head = Head { word: u64::from(*code) };
        }
    }
    let operations = Some(Operations::new(&ops, &operations.codes, operations.words));
    // The heads hold codes, which the machine of the threaded interpreter does not execute.
    Some(Image {
        entries: entries::<ByMatch>(image.spec.kind),
        operations,
        shares_machine: false,
        ..image.clone()
    })
}

/// The interpreter with this kind of dispatch.
struct ByMatch;

impl Interpreter for ByMatch {
    type Code<'a> = &'a Operations;

    fn code(image: &Image) -> Option<&Operations> {
        image.operations.as_ref()
    }

    #[inline(never)]
    unsafe fn run(operations: &Operations, context: u64, host: &mut Host) -> u64 {
        let (mut ip, _) = operations.begin(&mut host.machine, context);
        // SAFETY: the operations are those of a verified program, and their heads hold their codes.
        unsafe {
            while !ip.is_null() {
                ip = step((*ip).head.word, ip, host) as *const Op;
            }
        }
        host.machine.result
    }

    unsafe fn run_called(operations: &Operations, context: u64, host: &mut Host) -> u64 {
        // SAFETY: guaranteed by the caller.
        in_fresh_machine(host, |host| unsafe { Self::run(operations, context, host) })
    }
}

macro_rules! step {
    ($($code:literal)*) => {
        /// # Safety
        /// As of [`operation`] of this code.
        #[inline(always)]
        unsafe fn step(code: u64, ip: *const Op, host: *mut Host) -> u64 {
            match code {
                // SAFETY: guaranteed by the caller.
                $($code => unsafe { operation::<Loop, $code>(ip, host, Packet::of(host), (*host).machine.window()) },)*
                _ => 0,
            }
        }
    };
}

each_code!(step);
