//! Calls.

use std::mem::transmute;

use paceline_isa::Size;
use paceline_maps::Map;
use paceline_runtime::helpers::HelperFn;
use paceline_runtime::host::{Host, MAX_TAIL_CALLS};
use paceline_runtime::machine::{CallingBack, Continuation, Machine};
use paceline_runtime::memory;
use paceline_runtime::readable::Readable;
use paceline_runtime::rounds::Rounds;
use paceline_spec::helper::Callback;

use super::{get, set};
use crate::image::{Image, Unset};
use crate::threaded::op::Op;

/// # Safety
/// Of all functions here: as of [`operation`](super::operation).
#[inline(always)]
pub(super) unsafe fn helper(host: *mut Host, function: u64) {
    // SAFETY: the second part of the operation holds the address of a helper, and the verifier has shown that the
    // arguments fit its prototype. The host outlives the run, and the run borrows it exclusively.
    unsafe {
        let function = transmute::<usize, HelperFn>(function as usize);
        let [_, r1, r2, r3, r4, r5, ..] = (*host).machine.registers;
        let r0 = function(r1, r2, r3, r4, r5, &mut *host);
        set(host, 0, r0);
    }
}

/// `bpf_map_lookup_elem` in an array.
#[inline(always)]
pub(super) unsafe fn lookup_array(op: &Op, second: &Op, host: *mut Host) {
    // SAFETY: the verifier has shown that the key may be read; the second part holds what `Map::array_layout` said.
    unsafe {
        let index = memory::load(get(host, 2), Size::W);
        let value = second.head.word + index * u64::from(second.imm as u32);
        set(host, 0, if index < u64::from(op.imm as u32) { value } else { 0 });
    }
}

/// A call of a helper that calls back. Returns the next operation.
#[inline(never)]
pub(super) unsafe fn call_back(ip: *const Op, host: *mut Host, callback: Callback) -> *const Op {
    // SAFETY: the verifier has shown that the arguments fit the prototype, and what calls back is two operations.
    unsafe {
        let (cpu, machine) = ((*host).cpu(), &mut (*host).machine);
        let [_, subject, function, given, flags, ..] = machine.registers;
        match Rounds::new(callback, subject, given, flags) {
            Ok(rounds) => {
                machine.calling_back.push(CallingBack { function: function as Continuation, rounds });
                call_once_more(ip.add(1), machine, cpu)
            }
            Err(errno) => {
                machine.registers[0] = errno.to_return();
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
        if machine.registers[0] == 0 { call_once_more(ip, machine, cpu) } else { return_calls(ip, machine) }
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
        machine.enter(ip.cast());
        machine.registers[1..6].copy_from_slice(&arguments);
        function.cast()
    }
}

unsafe fn return_calls(ip: *const Op, machine: &mut Machine) -> *const Op {
    machine.registers[0] = machine.calling_back.pop().map_or(0, |calling| calling.rounds.calls());
    // SAFETY: another operation follows.
    unsafe { ip.add(1) }
}

/// `bpf_tail_call(ctx, map, index)`: another program runs in place of this function, and its result is the function's.
/// Execution continues if there is no program, or after too many calls. Returns the next operation.
#[inline(never)]
pub(super) unsafe fn tail_call(ip: *const Op, host: *mut Host) -> *const Op {
    // SAFETY: the verifier has shown that the arguments are the context, a program array and a number. Tokens are
    // addresses of images, which live as long as a reader may hold them.
    unsafe {
        let host = &mut *host;
        let [_, context, map, index, ..] = host.machine.registers;
        let token =
            (*(map as *const Map)).for_programs().prog_array().and_then(|array| array.token(index as u32));
        let Some(token) = token.filter(|_| host.tail_calls < MAX_TAIL_CALLS) else { return ip.add(1) };
        host.tail_calls += 1;
        let image = &*(token.get() as *const Image);
        if host.machine.depth() == 0
            && !host.machine.keeps
            && image.shares_machine
            && host.cpu() < image.cpus
            && let Some(operations) = &image.operations
        {
            host.readable = Readable::of(&image.maps);
            return operations.start();
        }
        let (depth, readable) = (host.depth, host.readable);
        host.depth += host.machine.depth();
        let unset = Unset::uninit();
        let r0 = (image.tail_entry)(context, token.get(), unset, unset, unset, host);
        (host.depth, host.readable) = (depth, readable);
        if host.fault.is_some() {
            host.machine.stop();
            return super::end();
        }
        host.machine.registers[0] = r0;
        super::leave(&mut host.machine)
    }
}
