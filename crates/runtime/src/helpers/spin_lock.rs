//! Spin locks in map values (`kernel/bpf/helpers.c`).

use std::sync::atomic::AtomicU32;

use paceline_maps::spin_lock::{give_back, take};

use crate::host::Host;

/// `void bpf_spin_lock(lock)`: waits until no other worker holds the lock. As in the kernel a worker holds at most one, and calls
/// nothing that waits meanwhile, which bounds the wait.
pub(super) fn lock(host: &mut Host, lock: &AtomicU32) {
    take(lock);
    host.run.held_lock = lock.as_ptr().expose_provenance() as u64;
}

/// `void bpf_spin_unlock(lock)`
pub(super) fn unlock(host: &mut Host, lock: &AtomicU32) {
    host.run.held_lock = 0;
    give_back(lock);
}

/// Releases a lock that a program still holds when it stops, which verified programs never do.
///
/// # Safety
/// The map of the lock must still live.
#[inline]
pub unsafe fn release_held(host: &mut Host) {
    if host.run.held_lock != 0 {
        // SAFETY: `lock` took it, locks lie in values at multiples of 4, and the map is guaranteed by the caller.
        give_back(unsafe { AtomicU32::from_ptr(host.run.held_lock as *mut u32) });
        host.run.held_lock = 0;
    }
}
