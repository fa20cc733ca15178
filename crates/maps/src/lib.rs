//! BPF maps: the kinds, their storage, and the kernel's rules for both.
//!
//! A [`Map`] is made from a [`MapSpec`](paceline_spec::MapSpec) and used from two sides that the kernel tells
//! apart as well:
//! * programs look up, update and delete with the helpers' semantics and get the address of a value
//!   ([`Map::lookup`], [`Map::update`], [`Map::delete`]);
//! * user space copies values with the semantics of the `bpf(2)` system call ([`Map::get`], [`Map::set`],
//!   [`Map::remove`], [`Map::keys`]): a per-CPU kind gives and takes the values of all CPUs.
//!
//! # Memory
//! The values of a map lie in one block whose addresses never change. An element that is deleted or replaced stays
//! readable memory of its map, and may be handed to another key at once: what a program does with a stale pointer
//! hits another value of the same map at worst, as with the kernel's preallocated hash. Pages are committed when
//! they are first written.
//!
//! # Threads and races
//! All operations may be called from any number of threads. Look-ups never wait for each other. Those of arrays take
//! no lock at all; in hashes and longest-prefix maps they share a lock with the keys of their shard, one of four per
//! CPU, and may wait for a change to one of those keys.
//!
//! Between operations of this crate a value is never seen
//! half written where the kernel promises that: an update of a hash element replaces it. Updates of arrays,
//! per-CPU values and device, CPU and socket maps happen in place, an aligned 8-byte word at a time. Programs
//! write through pointers whenever they like, and whoever reads meanwhile sees, per word, the old bytes or the new.

mod array;
mod clock;
mod cpumap;
mod create;
mod devmap;
mod entries;
mod hash;
mod lpm_trie;
mod map;
mod perf_event_array;
mod prog_array;
mod ringbuf;
mod slab;
pub mod spin_lock;
mod storage;
mod table;
mod words;
mod xskmap;

pub use create::{CreateError, CreateErrorKind, Limits};
pub use map::{ArrayLayout, FillError, Keys, Map, ProgramAccess, RedirectTarget};
pub use prog_array::{Owner, ProgArray, ProgArrayUser, TokenLayout};
pub use ringbuf::RingBuffer;
