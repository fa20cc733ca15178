//! Time, chance and place.

use crate::host::Host;
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

/// `long bpf_get_numa_node_id(void)`: there is one node.
pub(super) extern "C" fn get_numa_node_id(_: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Host) -> u64 {
    0
}
