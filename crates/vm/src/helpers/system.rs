//! Time, chance and place.

use paceline_spec::Errno;

use crate::host::Host;
use crate::memory;
use crate::time::Clock;

macro_rules! clock {
    ($(#[$doc:meta] $name:ident: $clock:ident;)*) => {$(
        #[$doc]
        pub(super) extern "C" fn $name(_: u64, _: u64, _: u64, _: u64, _: u64, host: &mut Host) -> u64 {
            host.now(Clock::$clock)
        }
    )*};
}

clock! {
    /// `u64 bpf_ktime_get_ns(void)`
    ktime_get_ns: Monotonic;
    /// `u64 bpf_ktime_get_boot_ns(void)`
    ktime_get_boot_ns: Boot;
    /// `u64 bpf_ktime_get_coarse_ns(void)`
    ktime_get_coarse_ns: Coarse;
    /// `u64 bpf_ktime_get_tai_ns(void)`
    ktime_get_tai_ns: Tai;
}

/// Ticks a second: distributions' kernels have 250 (`CONFIG_HZ`).
const HZ: u64 = 250;

/// `u64 bpf_jiffies64(void)`, counted from boot.
pub(super) extern "C" fn jiffies64(_: u64, _: u64, _: u64, _: u64, _: u64, host: &mut Host) -> u64 {
    host.now(Clock::Monotonic) / (1_000_000_000 / HZ)
}

/// `u32 bpf_get_prandom_u32(void)`
pub(super) extern "C" fn get_prandom_u32(_: u64, _: u64, _: u64, _: u64, _: u64, host: &mut Host) -> u64 {
    u64::from(host.random())
}

/// `u32 bpf_get_smp_processor_id(void)`: the worker's number.
pub(super) extern "C" fn get_smp_processor_id(
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    host.cpu() as u64
}

/// `long bpf_probe_read_kernel(dst, size, unsafe_ptr)`: zeros where not all of it is there. Of a kernel's memory there are the packet
/// and the connections that the program has.
pub(super) unsafe extern "C" fn probe_read_kernel(
    to: u64,
    size: u64,
    from: u64,
    _: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // Where user space has memory the kernel does not even look (`copy_from_kernel_nofault_allowed`).
    const USER: u64 = 1 << 47;
    let mut bytes = vec![0; size as u32 as usize];
    let is_there = host.copy_kernel_memory(from, &mut bytes);
    if !is_there {
        bytes.fill(0);
    }
    let errno = if from < USER { Errno::ERANGE } else { Errno::EFAULT };
    // SAFETY: the prototype says that so many bytes at the address are written.
    unsafe { memory::copy_to(to, &bytes) };
    if is_there { 0 } else { errno.to_return() }
}

/// `long bpf_get_numa_node_id(void)`: there is one node.
pub(super) extern "C" fn get_numa_node_id(_: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    0
}
