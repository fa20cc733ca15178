//! How handlers continue with the next operation, and the registers that they have in common.

use crate::host::Host;
use crate::interpreter::op::{Op, Packet};

/// Dispatch of the next operation. The results of handlers are for its [`run`](Self::run).
pub(crate) trait Dispatch {
    /// Runs from an operation to the end; returns the program's result.
    ///
    /// # Safety
    /// `ip` must be an operation of a verified program whose maps live, which came to it on this host's machine; packet and window are
    /// the host's.
    unsafe fn run(ip: *const Op, host: *mut Host, packet: Packet, window: *mut u64) -> u64;

    /// # Safety
    /// `ip` must be an operation of a program that the machine runs, or [`end`]; packet and window are the host's.
    unsafe fn go(ip: *const Op, host: *mut Host, packet: Packet, window: *mut u64) -> u64;

    /// Ends the run with a result.
    ///
    /// # Safety
    /// The machine must be this run's.
    unsafe fn end(host: *mut Host, result: u64) -> u64;
}

/// Returns the address of the next operation to a loop, which calls the handler; 0 at the end.
pub(crate) struct Loop;

impl Dispatch for Loop {
    unsafe fn run(mut ip: *const Op, host: *mut Host, _: Packet, _: *mut u64) -> u64 {
        // SAFETY: the first operation is guaranteed by the caller, and each gives one that follows it.
        unsafe {
            while !ip.is_null() {
                let window = (*host).machine.window();
                ip = ((*ip).head.handler)(ip, host, Packet::of(host), window) as *const Op;
            }
            (*host).machine.result
        }
    }

    #[inline(always)]
    unsafe fn go(ip: *const Op, _: *mut Host, _: Packet, _: *mut u64) -> u64 {
        ip as u64
    }

    #[inline(always)]
    unsafe fn end(host: *mut Host, result: u64) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { (*host).machine.result = result };
        0
    }
}

/// Jumps to the handler; the last one returns the result. The call in tail position becomes a jump in optimized
/// builds, which `engine/tests/tail_jumps.rs` checks.
#[cfg(all(tail_jumps, not(debug_assertions)))]
pub(crate) struct Jump;

#[cfg(all(tail_jumps, not(debug_assertions)))]
impl Dispatch for Jump {
    #[inline(always)]
    unsafe fn run(ip: *const Op, host: *mut Host, packet: Packet, window: *mut u64) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::go(ip, host, packet, window) }
    }

    #[inline(always)]
    unsafe fn go(ip: *const Op, host: *mut Host, packet: Packet, window: *mut u64) -> u64 {
        // SAFETY: guaranteed by the caller: `ip`, and the first part of an operation has a handler.
        unsafe { ((*ip).head.handler)(ip, host, packet, window) }
    }

    #[inline(always)]
    unsafe fn end(_: *mut Host, result: u64) -> u64 {
        result
    }
}

#[cfg(not(all(tail_jumps, not(debug_assertions))))]
pub(crate) use Loop as Jump;

static END: Op = Op::new(finish, [0; 8]);

/// An operation that ends the run with the machine's result.
pub(super) fn end(host: &mut Host, result: u64) -> *const Op {
    host.machine.result = result;
    &raw const END
}

unsafe extern "C" fn finish(_: *const Op, host: *mut Host, _: Packet, _: *mut u64) -> u64 {
    // SAFETY: called for a run's machine, as handlers are.
    unsafe { Jump::end(host, (*host).machine.result) }
}

/// The value of a register.
///
/// # Safety
/// The number must be that of a word of the window.
#[inline(always)]
pub(super) unsafe fn get(window: *mut u64, register: u8) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { *window.add(usize::from(register)) }
}

#[inline(always)]
pub(super) unsafe fn set(window: *mut u64, register: u8, value: u64) {
    // SAFETY: the number is guaranteed by the caller.
    unsafe { *window.add(usize::from(register)) = value };
}
