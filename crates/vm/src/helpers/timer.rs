//! Timers in map values (`kernel/bpf/helpers.c`). The first word of a timer's field is the address of its map once it was
//! made, 0 before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline_maps::{Map, Timer, make_timer, timer_at};
use paceline_spec::Errno;

use super::args;
use crate::host::Host;
use crate::later::{CallbackCode, Later};
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

fn result(result: Result<u64, Errno>) -> u64 {
    result.unwrap_or_else(Errno::to_return)
}

/// The first word of a timer's field.
///
/// # Safety
/// The address must be that of the `bpf_timer` in a value of a map that lives through the call.
unsafe fn word<'a>(address: u64) -> &'a AtomicU64 {
    // SAFETY: timers lie in values at multiples of 8, as values do. Nothing but these functions and updates of elements,
    // which are atomic as well, touches them.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }
}

/// The timer that was made in a field.
///
/// # Safety
/// As of [`word`].
unsafe fn timer(address: u64) -> Result<Arc<Timer>, Errno> {
    // SAFETY: the caller vouches for the address.
    let map = unsafe { word(address) }.load(Ordering::Acquire) as *const Map;
    // SAFETY: it is null, or the map in one of whose values it is.
    let map = unsafe { map.as_ref() };
    map.and_then(|map| timer_at(map, address as usize)).ok_or(Errno::EINVAL)
}

/// `long bpf_timer_init(timer, map, flags)`
pub(super) unsafe extern "C" fn init(
    address: u64,
    map: u64,
    flags: u64,
    _: u64,
    _: u64,
    _: &mut Host,
) -> u64 {
    if !matches!(flags, CLOCK_REALTIME | CLOCK_MONOTONIC | CLOCK_BOOTTIME) {
        return Errno::EINVAL.to_return();
    }
    // SAFETY: the argument fits the prototype.
    let shared = unsafe { args::shared_map(map) };
    result(make_timer(&shared, address as usize, flags).map(|()| {
        // SAFETY: the map has just said that a timer lies there.
        unsafe { word(address) }.store(map, Ordering::Release);
        0
    }))
}

/// `long bpf_timer_set_callback(timer, function)`, for compiled code.
pub(super) unsafe extern "C" fn set_callback(
    address: u64,
    function: u64,
    _: u64,
    _: u64,
    _: u64,
    _: &mut Host,
) -> u64 {
    // SAFETY: the argument fits the prototype.
    let timer = unsafe { timer(address) };
    result(timer.and_then(|timer| {
        let home = CallbackCode::of(function).ok_or(Errno::EINVAL)?;
        // SAFETY: the verifier has shown that the function takes the values of the timer's map.
        unsafe { timer.set_callback(Later::Compiled(home, function).into_callback()) }.map(|()| 0)
    }))
}

/// The same with a function on the machine that checks every access.
///
/// # Safety
/// The address must fit the prototype.
pub(crate) unsafe fn set_later(address: u64, later: Later) -> u64 {
    // SAFETY: the caller vouches for the address.
    let timer = unsafe { timer(address) };
    // SAFETY: the machine that runs the function checks every access.
    let set = |timer: Arc<Timer>| unsafe { timer.set_callback(later.into_callback()) };
    result(timer.and_then(set).map(|()| 0))
}

/// When a timer is due, on the monotonic clock.
fn due(host: &Host, clock: u64, time: u64, flags: u64) -> u64 {
    let now = host.now(Clock::Monotonic);
    if flags & ABSOLUTE == 0 {
        return now.checked_add(time).filter(|&at| at <= NEVER).unwrap_or(NEVER);
    }
    let there = match clock {
        CLOCK_REALTIME => host.now(Clock::Real),
        CLOCK_BOOTTIME => host.now(Clock::Boot),
        _ => now,
    };
    // What would lie before the clock's beginning never comes, as with delays that are too long (`ktime_add_safe`).
    if time > NEVER {
        return NEVER;
    }
    let left = i128::from(time) - i128::from(there);
    (i128::from(now) + left).clamp(0, i128::from(NEVER)) as u64
}

/// `long bpf_timer_start(timer, nanoseconds, flags)`
pub(super) unsafe extern "C" fn start(
    address: u64,
    time: u64,
    flags: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    if flags & !(ABSOLUTE | CPU_PIN) != 0 {
        return Errno::EINVAL.to_return();
    }
    // SAFETY: the argument fits the prototype.
    let timer = unsafe { timer(address) };
    result(timer.and_then(|timer| {
        let at = due(host, timer.clock(), time, flags);
        timer.start(&host.timers.queue, at).map(|()| 0)
    }))
}

/// `long bpf_timer_cancel(timer)`: 1 if it ran. It does not wait for a function that another worker is in.
pub(super) unsafe extern "C" fn cancel(address: u64, _: u64, _: u64, _: u64, _: u64, host: &mut Host) -> u64 {
    // SAFETY: the argument fits the prototype.
    let timer = unsafe { timer(address) };
    result(timer.and_then(|timer| match Arc::as_ptr(&timer) as usize == host.timers.firing {
        true => Err(Errno::EDEADLK),
        false => Ok(u64::from(timer.cancel())),
    }))
}
