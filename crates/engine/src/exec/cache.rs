//! Caches after code was written, on machines whose instruction caches do not follow their data caches.
//!
//! `membarrier` makes other CPUs drop what they have fetched. QEMU before 8.1 ignores `ic ivau`: the feature `emulated` maps what
//! was written anew, for tests.

/// Makes code at these addresses visible to instruction fetches of all CPUs. Those that have fetched old instructions already are
/// [serialized](crate::exec::serialize) afterwards.
///
/// Data caches of arm64 are as if they had physical addresses, so that bytes that the kernel wrote through the file are cleaned by any
/// address of theirs (Arm Architecture Reference Manual, D7.5.9 "Cache maintenance").
#[cfg(target_arch = "aarch64")]
pub(crate) fn publish(start: *const u8, len: usize) {
    use std::arch::asm;

    let lines: u64;
    // SAFETY: reads the sizes of cache lines, which Linux allows to processes.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) lines, options(nomem, nostack, preserves_flags)) };
    let line = |field: u32| 4_usize << (lines >> field & 0xf);
    let (data, instructions) = (line(16), line(0));
    let start = start.addr();
    let of = |line: usize| (start & !(line - 1)..start + len).step_by(line);
    for address in of(data) {
        // SAFETY: cleans a line to where instructions are fetched from; the address is readable, and nothing changes.
        unsafe { asm!("dc cvau, {}", in(reg) address, options(nostack, preserves_flags)) };
    }
    // SAFETY: waits until the lines are clean.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    for address in of(instructions) {
        // SAFETY: drops a line of instruction caches, which is fetched again when it is needed.
        unsafe { asm!("ic ivau, {}", in(reg) address, options(nostack, preserves_flags)) };
    }
    // SAFETY: waits until that is done everywhere, and drops what this CPU has fetched.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

/// Instruction caches are coherent.
#[cfg(not(target_arch = "aarch64"))]
pub(crate) fn publish(_: *const u8, _: usize) {}
