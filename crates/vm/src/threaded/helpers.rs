//! Helpers that want to know of the threaded interpreter what they may read.

use crate::helpers::{HelperFn, common_fn};
use crate::host::{Host, STACK_FRAME};

/// The function of a helper that prints what lies at addresses.
pub(super) fn printing(id: u32) -> Option<HelperFn> {
    Some(match id {
        6 => print::<6>,
        165 => print::<165>,
        177 => print::<177>,
        _ => return None,
    })
}

/// Calls a helper that may read the stack of the running function.
unsafe extern "C" fn print<const ID: u32>(
    r1: u64,
    r2: u64,
    r3: u64,
    r4: u64,
    r5: u64,
    host: &mut Host,
) -> u64 {
    host.readable.set_stack(host.machine.frame_pointer(), STACK_FRAME);
    // SAFETY: the caller vouches for the arguments.
    common_fn(ID).map_or(0, |function| unsafe { function(r1, r2, r3, r4, r5, host) })
}
