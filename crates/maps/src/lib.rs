//! BPF maps: the kinds, their storage, and the kernel's rules for both.
//!
//! A [`Map`] is made from a [`MapSpec`](paceline_spec::MapSpec) and used from two sides that the kernel tells
//! apart as well:
//! * programs look up, update and delete with the helpers' semantics and get the address of a value
//!   ([`Map::for_programs`], which gives a [`ProgramSide`]);
//! * user space copies values with the semantics of the `bpf(2)` system call ([`Map::lookup`], [`Map::insert`],
//!   [`Map::delete`], [`Map::keys`]): a per-CPU kind gives and takes the values of all CPUs. [`Map::typed`] has the same with
//!   Rust types.
//!
//! # Memory
//! The values of a map lie in one block whose addresses never change. A found value belongs to its element as long as the worker is
//! pinned ([`paceline_epoch`]): a replaced or deleted element keeps its bytes, which are reused only after all workers that may have
//! found them have ended their bursts. The kernel does not guarantee this for preallocated maps. A worker that is not pinned reads
//! another value of the same map at worst. Pages are committed when they are first written.
//!
//! # Threads and races
//! All operations may be called from any number of threads. Programs' look-ups take no lock and never wait. Changes of
//! hashes take a lock that few keys share; so do user space's look-ups, which therefore never see a partial change.
//!
//! Operations of this crate never see a value half written where the kernel guarantees that: an update of a hash element replaces
//! it. Updates of arrays, per-CPU values and device, CPU and socket maps happen in place, an aligned 8-byte word at a time. Programs
//! write through pointers at any time; a concurrent reader sees, per word, the old bytes or the new.

mod ahead;
mod batch;
mod btf_type;
mod cpu_owners;
mod create;
mod described;
mod due_timer;
mod entries;
mod entry_program;
mod eviction;
mod fill;
mod freeze;
mod hashing;
mod index;
mod indices;
mod inner;
mod kinds;
mod lanes;
mod lines;
mod lookup;
mod make;
mod map;
mod map_ops;
mod map_user;
mod mode;
mod occupied;
mod owned_ring;
mod prog_array;
mod ring_reader;
mod ringbuf;
mod routes;
mod shape;
mod shape_check;
mod slab;
mod slots;
pub mod spin_lock;
mod sync;
mod table;
mod timer;
mod typed;
mod walks;
mod words;

pub use batch::{BatchError, Elements};
pub use cpu_owners::CpuOwners;
pub use create::{CreateError, CreateErrorKind, Limits};
pub use due_timer::{DueTimer, make_timer, timer_at};
pub use entry_program::{EntryProgram, announce, entry_program, entry_program_changes};
pub use fill::Fill;
pub use inner::Mismatch;
pub use lookup::LookupFunction;
pub use map::{FillError, KeyCursor, Keys, Map, ProgramAccess, ProgramSide};
pub use map_ops::{ArrayLayout, MapTarget};
pub use map_user::MapUser;
pub use mode::UpdateMode;
pub use owned_ring::{OwnedRingReader, RingError};
pub use prog_array::{Owner, ProgArray, TokenLayout};
pub use ring_reader::RingReader;
pub use ringbuf::{Origin, Record, RingBuffer};
pub use shape::{BtfType, Shape, ShapeField};
pub use shape_check::{FieldMismatch, check_shape};
pub use timer::{Timer, TimerQueue};
pub use typed::{MapValue, PerCpu, Plain, TypeError, TypedMap};
pub use walks::{AheadFunction, Walks};
