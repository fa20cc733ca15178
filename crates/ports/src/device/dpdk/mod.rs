//! DPDK's devices. `libpaceline-dpdk.so`, which `dpdk/Makefile` builds, is the only thing that knows DPDK; it is loaded when a
//! device is opened, so that programs neither depend on DPDK nor start slower with it.
//!
//! A port lends each mbuf of a queue's pool a chunk as its external buffer. A received mbuf gets a free chunk and goes back to its
//! pool at once, and its own chunk goes to the burst; a sent chunk goes to a free mbuf, whose own comes back. So drivers see
//! ordinary mbufs, the number of lent chunks never changes, and no completion is tracked. An mbuf of another pool, or one of
//! several parts, is copied.

mod library;
mod port;

pub use port::DpdkPort;
