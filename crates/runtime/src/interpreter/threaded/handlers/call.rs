//! Calls.

use std::mem::transmute;

use crate::helpers::HelperFn;
use crate::host::{Host, MAX_TAIL_CALLS};
use crate::machine::{CallingBack, Continuation, Machine};
use crate::readable::Readable;
use crate::rounds::Rounds;
use paceline_maps::Map;
use paceline_spec::helper::Callback;

use super::dispatch::{end, get, set};
use crate::interpreter::image::{Image, Unset};
use crate::interpreter::op::{DST, Op, SCRATCH};

/// The arguments of a call. Those that the function does not have are any words of the window.
#[inline(always)]
unsafe fn arguments(op: &Op, window: *mut u64) -> [u64; 5] {
    // SAFETY: the bytes hold registers.
    op.args().map(|register| unsafe { get(window, register) })
}

/// # Safety
/// Of all functions here: as of `operation`.
#[inline(always)]
pub(super) unsafe fn helper(op: &Op, function: u64, host: *mut Host, window: *mut u64) {
    // SAFETY: the second part of the operation holds the address of a helper, and the verifier has shown that the
    // arguments fit its prototype. The host outlives the run, and the run borrows it exclusively.
    unsafe {
        let function = transmute::<usize, HelperFn>(function as usize);
        let [r1, r2, r3, r4, r5] = arguments(op, window);
        let r0 = function(r1, r2, r3, r4, r5, &mut *host);
        set(window, op.register(DST), r0);
    }
}

/// A call of a function of the program. Returns its first operation.
#[inline(always)]
pub(super) unsafe fn function(ip: *const Op, host: *mut Host, window: *mut u64) -> *const Op {
    // SAFETY: the second part holds the distance of the function, and the size of the window.
    unsafe {
        let (op, second) = (&*ip, &*ip.add(1));
        let arguments = arguments(op, window);
        let words = second.head.word as usize;
        enter(&mut (*host).machine, ip.add(2), op.register(DST), words, arguments);
        ip.offset(second.imm() as isize)
    }
}

/// Enters a function with arguments in the registers of a call.
#[inline(always)]
unsafe fn enter(machine: &mut Machine, next: *const Op, result: u8, words: usize, arguments: [u64; 5]) {
    // SAFETY: the verifier has shown that fewer than eight functions are active, and the program begins with the words for all of them.
    unsafe {
        let window = machine.enter(next.cast(), result, words);
        window.add(1).cast::<[u64; 5]>().write(arguments);
    }
}

/// A call of a helper that calls back. Returns the next operation.
#[inline(never)]
pub(super) unsafe fn call_back(ip: *const Op, host: *mut Host, callback: Callback) -> *const Op {
    // SAFETY: the verifier has shown that the arguments fit the prototype, and what calls back is two operations.
    unsafe {
        let (cpu, machine) = ((*host).cpu(), &mut (*host).machine);
        let [subject, function, given, flags, _] = arguments(&*ip, machine.window());
        match Rounds::new(callback, subject, given, flags) {
            Ok(rounds) => {
                machine.calling_back.push(CallingBack { function: function as Continuation, rounds });
                call_once_more(ip.add(1), machine, cpu)
            }
            Err(errno) => {
                set(machine.window(), (*ip.add(1)).register(DST), errno.to_return());
                ip.add(2)
            }
        }
    }
}

/// Continues a helper after its function returned. Returns the next operation.
#[inline(never)]
pub(super) unsafe fn called_back(ip: *const Op, host: *mut Host) -> *const Op {
    // SAFETY: as of `call_back`, whose second operation this is.
    unsafe {
        let (cpu, machine) = ((*host).cpu(), &mut (*host).machine);
        match get(machine.window(), SCRATCH) {
            0 => call_once_more(ip, machine, cpu),
            _ => return_calls(ip, machine),
        }
    }
}

/// Calls the function, which returns to `ip`, or returns from the helper.
unsafe fn call_once_more(ip: *const Op, machine: &mut Machine, cpu: usize) -> *const Op {
    // SAFETY: as of `called_back`.
    unsafe {
        let next = machine
            .calling_back
            .last_mut()
            .map(|calling| (calling.function, calling.rounds.next_arguments(cpu)));
        let Some((function, Some(arguments))) = next else { return return_calls(ip, machine) };
        enter(machine, ip, SCRATCH, (*ip).imm() as usize, arguments);
        function.cast()
    }
}

unsafe fn return_calls(ip: *const Op, machine: &mut Machine) -> *const Op {
    let calls = machine.calling_back.pop().map_or(0, |calling| calling.rounds.calls());
    // SAFETY: another operation follows.
    unsafe {
        set(machine.window(), (*ip).register(DST), calls);
        ip.add(1)
    }
}

/// `bpf_tail_call(ctx, map, index)`: another program runs in place of this function, and its result is the function's.
/// Execution continues if there is no program, or after too many calls. Returns the next operation.
#[inline(never)]
pub(super) unsafe fn tail_call(ip: *const Op, host: *mut Host) -> *const Op {
    // SAFETY: the verifier has shown that the arguments are the context, a program array and a number. Tokens are
    // addresses of images, which live as long as a reader may hold them.
    unsafe {
        let host = &mut *host;
        let [context, map, index, ..] = arguments(&*ip, host.machine.window());
        let token =
            (*(map as *const Map)).for_programs().prog_array().and_then(|array| array.token(index as u32));
        let Some(token) = token.filter(|_| host.run.tail_calls < MAX_TAIL_CALLS) else { return ip.add(1) };
        host.run.tail_calls += 1;
        let image = &*(token.get() as *const Image);
        if host.machine.depth() == 0
            && image.shares_machine
            && host.is_admitted(&image.per_cpu)
            && let Some(operations) = &image.operations
        {
            host.run.readable = Readable::of(&image.maps);
            return operations.begin(&mut host.machine, context).0;
        }
        let (depth, readable) = (host.run.depth(), host.run.readable);
        host.run.set_depth(depth + host.machine.depth());
        let unset = Unset::uninit();
        let r0 = (image.entries.tail)(context, token.get(), unset, unset, unset, host);
        host.run.set_depth(depth);
        host.run.readable = readable;
        if host.run.fault.is_some() {
            host.machine.stop();
            return end(host, 0);
        }
        host.machine.leave(r0).map_or_else(|| end(host, r0), |next| next.cast())
    }
}
