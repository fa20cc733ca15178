//! Timers in map values (`kernel/bpf/helpers.c`). The first word of a timer's field is the address of its map once it was
//! made, 0 before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline_maps::{Map, Timer, make_timer, timer_at};
use paceline_spec::Errno;

use super::argument::Code;
use crate::callback::{CallbackCode, CompiledCallback, TimerCallback, keep};
use crate::host::Host;
use crate::time::Clock;

const CLOCK_REALTIME: u64 = 0;
const CLOCK_MONOTONIC: u64 = 1;
const CLOCK_BOOTTIME: u64 = 7;

/// `BPF_F_TIMER_ABS`: the time is no delay.
const ABSOLUTE: u64 = 1;
/// `BPF_F_TIMER_CPU_PIN`: on the CPU that starts it, as all are here.
const CPU_PIN: u64 = 2;

/// The last time there is (`KTIME_MAX`).
const NEVER: u64 = i64::MAX as u64;

/// The timer that was made in a field.
fn timer(field: &AtomicU64) -> Result<Arc<Timer>, Errno> {
    let map = field.load(Ordering::Acquire) as *const Map;
    // SAFETY: the word is null, or the address of the map in one of whose values the field lies.
    let map = unsafe { map.as_ref() };
    map.and_then(|map| timer_at(map, address(field))).ok_or(Errno::EINVAL)
}

fn address(field: &AtomicU64) -> usize {
    field.as_ptr().addr()
}

/// `long bpf_timer_init(timer, map, flags)`
pub(super) fn init(_: &mut Host, field: &AtomicU64, map: Arc<Map>, flags: u64) -> Result<(), Errno> {
    if !matches!(flags, CLOCK_REALTIME | CLOCK_MONOTONIC | CLOCK_BOOTTIME) {
        return Err(Errno::EINVAL);
    }
    make_timer(&map, address(field), flags)?;
    field.store(Arc::as_ptr(&map).expose_provenance() as u64, Ordering::Release);
    Ok(())
}

/// `long bpf_timer_set_callback(timer, function)`, for compiled code.
pub(super) fn set_callback(_: &mut Host, field: &AtomicU64, function: Code) -> Result<(), Errno> {
    let timer = timer(field)?;
    let code = CallbackCode::of(function.0).ok_or(Errno::EINVAL)?;
    // SAFETY: the verifier has shown that the function takes the values of the timer's map.
    unsafe { timer.set_callback(keep(CompiledCallback { code, address: function.0 })) }
}

/// `bpf_timer_set_callback` with a callback of the plain interpreter, which checks every access. Returns the value of `r0`.
///
/// # Safety
/// The address must be that of the `bpf_timer` in a value of a map that lives through the call.
pub unsafe fn set_timer_callback(address: u64, callback: impl TimerCallback + 'static) -> u64 {
    // SAFETY: the address is guaranteed by the caller: timers lie in values of maps at multiples of 8, and only helpers and updates
    // of elements, which are atomic, access them.
    let field = unsafe { AtomicU64::from_ptr(address as *mut u64) };
    // SAFETY: the interpreter checks every access of the function.
    let set = |timer: Arc<Timer>| unsafe { timer.set_callback(keep(callback)) };
    timer(field).and_then(set).map_or_else(Errno::to_return, |()| 0)
}

/// When a timer is due, on the monotonic clock.
fn due(host: &Host, clock: u64, time: u64, flags: u64) -> u64 {
    let now = host.now(Clock::Monotonic);
    if flags & ABSOLUTE == 0 {
        // default: a time that does not fit never comes.
        return now.checked_add(time).filter(|&at| at <= NEVER).unwrap_or(NEVER);
    }
    let there = match clock {
        CLOCK_REALTIME => host.now(Clock::Real),
        CLOCK_BOOTTIME => host.now(Clock::Boot),
        _ => now,
    };
    // Times before the clock's start never come, as with delays that are too long (`ktime_add_safe`).
    if time > NEVER {
        return NEVER;
    }
    let left = i128::from(time) - i128::from(there);
    (i128::from(now) + left).clamp(0, i128::from(NEVER)) as u64
}

/// `long bpf_timer_start(timer, nanoseconds, flags)`
pub(super) fn start(host: &mut Host, field: &AtomicU64, time: u64, flags: u64) -> Result<(), Errno> {
    if flags & !(ABSOLUTE | CPU_PIN) != 0 {
        return Err(Errno::EINVAL);
    }
    let timer = timer(field)?;
    timer.start(&host.timers.queue, due(host, timer.clock(), time, flags))
}

/// `long bpf_timer_cancel(timer)`: 1 if the timer was pending. Does not wait for a callback that another worker runs.
pub(super) fn cancel(host: &mut Host, field: &AtomicU64) -> Result<u64, Errno> {
    let timer = timer(field)?;
    match Arc::as_ptr(&timer) as usize == host.timers.firing {
        true => Err(Errno::EDEADLK),
        false => Ok(u64::from(timer.cancel())),
    }
}
