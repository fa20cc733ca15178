//! Packets that are not in any cache.
#![allow(unsafe_code, reason = "no safe function empties a cache")]

use paceline::Burst;

/// Size of a cache line in bytes.
const LINE: usize = 64;
/// Size of a huge page in bytes.
const HUGE: usize = 2 << 20;

/// Puts the packets into huge pages, as packet pools do, so that cache misses are measured and not TLB misses. Without huge
/// pages the packets stay where they are.
pub(super) fn in_huge_pages(bursts: &[Burst]) {
    let addresses = || bursts.iter().flat_map(Burst::iter).map(|frame| frame.data() as usize);
    let (Some(first), Some(last)) = (addresses().min(), addresses().max()) else { return };
    for page in (first.next_multiple_of(HUGE)..last / HUGE * HUGE).step_by(HUGE) {
        // SAFETY: changes the page size of the mapping and not its contents.
        unsafe { libc::madvise(page as *mut libc::c_void, HUGE, libc::MADV_COLLAPSE) };
    }
}

/// Flushes all bytes of the packets from all caches, as if a network card had just written them to memory. Their descriptors
/// stay cached.
pub(super) fn evict(bursts: &[Burst]) {
    for frame in bursts.iter().flat_map(Burst::iter) {
        frame.packet().chunks(LINE).for_each(|line| flush(line.as_ptr()));
    }
    fence();
}

#[cfg(target_arch = "x86_64")]
fn flush(byte: *const u8) {
    // SAFETY: every x86-64 processor has `clflush`, which changes no byte.
    unsafe { std::arch::x86_64::_mm_clflush(byte) }
}

#[cfg(target_arch = "x86_64")]
fn fence() {
    // SAFETY: every x86-64 processor has this fence.
    unsafe { std::arch::x86_64::_mm_mfence() }
}

#[cfg(not(target_arch = "x86_64"))]
fn flush(_: *const u8) {}

#[cfg(not(target_arch = "x86_64"))]
fn fence() {}
