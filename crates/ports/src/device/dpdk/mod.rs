//! DPDK's devices. `libpaceline-dpdk.so`, which `dpdk/Makefile` builds, is the only thing that knows DPDK; it is loaded when a
//! device is opened, so that programs neither depend on DPDK nor start slower with it.

mod library;
mod port;

pub use port::DpdkPort;
