//! Packets out of the caches.
#![allow(unsafe_code, reason = "no safe function empties a cache")]

use paceline::Burst;

/// Bytes of a line.
const LINE: usize = 64;
/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// Puts the packets into huge pages, as pools of packet buffers lie: what is measured is the cache, and not the translation of
/// addresses. A system that has none leaves them where they are.
pub(super) fn in_huge_pages(bursts: &[Burst]) {
    let addresses = || bursts.iter().flat_map(Burst::iter).map(|frame| frame.data() as usize);
    let (Some(first), Some(last)) = (addresses().min(), addresses().max()) else { return };
    for page in (first.next_multiple_of(HUGE)..last / HUGE * HUGE).step_by(HUGE) {
        // SAFETY: it changes how large the pages are, and nothing that a program could see.
        unsafe { libc::madvise(page as *mut libc::c_void, HUGE, libc::MADV_COLLAPSE) };
    }
}

/// Sees that no byte of the packets is in any cache, as if a card had just written them to memory. Their descriptors stay
/// where they are.
pub(super) fn evict(bursts: &[Burst]) {
    for frame in bursts.iter().flat_map(Burst::iter) {
        frame.packet().chunks(LINE).for_each(|line| flush(line.as_ptr()));
    }
    fence();
}

#[cfg(target_arch = "x86_64")]
fn flush(byte: *const u8) {
    // SAFETY: all processors of this kind have it, and it changes no byte.
    unsafe { std::arch::x86_64::_mm_clflush(byte) }
}

#[cfg(target_arch = "x86_64")]
fn fence() {
    // SAFETY: all processors of this kind have it.
    unsafe { std::arch::x86_64::_mm_mfence() }
}

#[cfg(not(target_arch = "x86_64"))]
fn flush(_: *const u8) {}

#[cfg(not(target_arch = "x86_64"))]
fn fence() {}
