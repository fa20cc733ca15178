//! Time, random numbers, and the worker's place.

use paceline_spec::Errno;
use smallvec::smallvec;

use super::mem::{Bytes, WriteMem};
use crate::host::Host;
use crate::time::Clock;

/// `u64 bpf_ktime_get_ns(void)`
pub(super) fn ktime_get_ns(host: &mut Host) -> u64 {
    host.now(Clock::Monotonic)
}

/// `u64 bpf_ktime_get_boot_ns(void)`
pub(super) fn ktime_get_boot_ns(host: &mut Host) -> u64 {
    host.now(Clock::Boot)
}

/// `u64 bpf_ktime_get_coarse_ns(void)`
pub(super) fn ktime_get_coarse_ns(host: &mut Host) -> u64 {
    host.now(Clock::Coarse)
}

/// `u64 bpf_ktime_get_tai_ns(void)`
pub(super) fn ktime_get_tai_ns(host: &mut Host) -> u64 {
    host.now(Clock::Tai)
}

/// Ticks a second: distributions' kernels have 250 (`CONFIG_HZ`).
const HZ: u64 = 250;

/// `u64 bpf_jiffies64(void)`, counted from boot.
pub(super) fn jiffies64(host: &mut Host) -> u64 {
    host.now(Clock::Monotonic) / (1_000_000_000 / HZ)
}

/// `u32 bpf_get_prandom_u32(void)`
pub(super) fn get_prandom_u32(host: &mut Host) -> u64 {
    u64::from(host.world.random())
}

/// `u32 bpf_get_smp_processor_id(void)`: the worker's number.
pub(super) fn get_smp_processor_id(host: &mut Host) -> u64 {
    host.cpu() as u64
}

/// `long bpf_probe_read_kernel(dst, size, unsafe_ptr)`: zeros unless all bytes can be read. Of the kernel's memory the packet
/// and the program's connections exist.
pub(super) fn probe_read_kernel(host: &mut Host, to: WriteMem<'_>, from: u64) -> Result<(), Errno> {
    // The kernel refuses addresses of user space without an access (`copy_from_kernel_nofault_allowed`).
    const USER: u64 = 1 << 47;
    let mut bytes: Bytes = smallvec![0; to.len()];
    let is_readable = host.copy_kernel_memory(from, &mut bytes);
    if !is_readable {
        bytes.fill(0);
    }
    to.write(&bytes);
    match is_readable {
        true => Ok(()),
        false if from < USER => Err(Errno::ERANGE),
        false => Err(Errno::EFAULT),
    }
}

/// `long bpf_get_numa_node_id(void)`: one node exists.
pub(super) fn get_numa_node_id(_: &mut Host) -> u64 {
    0
}
