//! Spin locks in map values (`kernel/bpf/helpers.c`).

use std::sync::atomic::AtomicU32;

use paceline_maps::spin_lock::{give_back, take};

use crate::host::Host;

/// The word of a lock.
///
/// # Safety
/// The address must be that of the `bpf_spin_lock` in a value of a map that lives through the call.
unsafe fn word<'a>(address: u64) -> &'a AtomicU32 {
    // SAFETY: locks lie in values at multiples of 4, and values at multiples of 8. Nothing but these functions and
    // updates of elements, which are atomic as well, touches them.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }
}

/// `void bpf_spin_lock(lock)`: waits until nobody else has it. As in the kernel a worker has at most one, and calls
/// nothing that could wait meanwhile, so that nobody waits long.
pub(super) unsafe extern "C" fn lock(lock: u64, _: u64, _: u64, _: u64, _: u64, host: &mut Host) -> u64 {
    // SAFETY: the argument fits the prototype.
    take(unsafe { word(lock) });
    host.held_lock = lock;
    0
}

/// `void bpf_spin_unlock(lock)`
pub(super) unsafe extern "C" fn unlock(lock: u64, _: u64, _: u64, _: u64, _: u64, host: &mut Host) -> u64 {
    host.held_lock = 0;
    // SAFETY: the argument fits the prototype.
    give_back(unsafe { word(lock) });
    0
}

/// Gives back a lock that a program still had when it stopped, which verified programs never do.
///
/// # Safety
/// The map of the lock must still live.
pub(crate) unsafe fn release_held(host: &mut Host) {
    if host.held_lock != 0 {
        // SAFETY: it was taken by `lock`, and the caller vouches for the map.
        give_back(unsafe { word(host.held_lock) });
        host.held_lock = 0;
    }
}
