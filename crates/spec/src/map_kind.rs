//! The table of map kinds: number, name and capabilities.
//!
//! A kind is a row of capabilities and a file in `paceline-maps` with its checks, storage and `MapOps`. Helpers name the use that
//! they make of a map, and a call is compatible if the kind's row has it. A const assertion in `map_ops` compares the rows with the
//! constructors.

use std::fmt;

use paceline_btf::SpecialKind::{
    self, KernelPointer, ListHead, Refcount, ResilientSpinLock, SpinLock, TaskWork, Timer, TreeRoot,
    Workqueue,
};

use super::errno::Errno;
use super::map_use::MapUse;
use crate::availability::{SOCKETS, TASKS, USER_RING_BUFFERS};
use crate::map_rules::{ElementKind, InnerLength, KeyKind, MapRules};

/// Helpers on elements with keys of bytes.
const VALUES: &[MapUse] = &[MapUse::Lookup, MapUse::Update, MapUse::Delete, MapUse::ForEach];
/// Helpers on elements with a value per CPU.
const CPU_VALUES: &[MapUse] =
    &[MapUse::Lookup, MapUse::LookupPerCpu, MapUse::Update, MapUse::Delete, MapUse::ForEach];
const ELEMENTS: &[MapUse] = &[MapUse::Lookup, MapUse::Update, MapUse::Delete];
const TARGETS: &[MapUse] = &[MapUse::Lookup, MapUse::Redirect];
const ENDS: &[MapUse] = &[MapUse::Push, MapUse::Pop, MapUse::Peek];

/// All special fields.
const ALL_FIELDS: &[SpecialKind] =
    &[SpinLock, ResilientSpinLock, Timer, Workqueue, TaskWork, ListHead, TreeRoot, KernelPointer, Refcount];
/// Special fields of LRU values: `map_check_btf` excludes locks.
const NO_LOCKS: &[SpecialKind] = &[Timer, Workqueue, TaskWork, ListHead, TreeRoot, KernelPointer, Refcount];
const REFERENCES: &[SpecialKind] = &[KernelPointer, Refcount];
const LOCKS: &[SpecialKind] = &[SpinLock, ResilientSpinLock];
const STORAGE: &[SpecialKind] = &[SpinLock, ResilientSpinLock, KernelPointer, Refcount];

/// Defines [`MapKind`] from rows of variant, number of `enum bpf_map_type`, name that bpftool uses, and capabilities.
macro_rules! map_kinds {
    ($($variant:ident = $number:literal, $name:literal => $rules:expr;)*) => {
        /// The map kinds of the kernel's `enum bpf_map_type`, including those that Paceline does not have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum MapKind {
            $(#[doc = concat!("`", $name, "`")] $variant = $number,)*
        }

        impl MapKind {
            /// All kinds, by rising number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The kind of a number of `enum bpf_map_type`.
            #[must_use]
            pub const fn from_number(number: u32) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }

            /// The name that bpftool uses, such as `percpu_array`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The capabilities of the kind.
            #[inline]
            #[must_use]
            pub const fn rules(self) -> &'static MapRules {
                match self { $(Self::$variant => const { &$rules },)* }
            }
        }
    };
}

const fn supported() -> MapRules {
    MapRules::supported()
}

const fn needs(prerequisite: &'static str) -> MapRules {
    MapRules::needs(prerequisite)
}

map_kinds! {
    Hash = 1, "hash" => supported().uses(VALUES).holds(ALL_FIELDS);
    Array = 2, "array" =>
        supported()
        .keys(KeyKind::Index)
        .uses(VALUES)
        .holds(ALL_FIELDS)
        .addressable()
        .inner(InnerLength::FixedUnlessFlagged);
    ProgArray = 3, "prog_array" => supported()
        .keys(KeyKind::Index)
        .elements(ElementKind::Programs)
        .uses(&[MapUse::TailCall])
        // The programs that an array may hold are unknown before its first use.
        .inner(InnerLength::Forbidden);
    PerfEventArray = 4, "perf_event_array" =>
        supported().keys(KeyKind::Index).elements(ElementKind::Events).uses(&[MapUse::PerfEvent]).untyped();
    PerCpuHash = 5, "percpu_hash" => supported().per_cpu().uses(CPU_VALUES).holds(REFERENCES);
    PerCpuArray = 6, "percpu_array" => supported().per_cpu().keys(KeyKind::Index).uses(CPU_VALUES).holds(REFERENCES);
    StackTrace = 7, "stack_trace" => needs(TASKS).untyped();
    CgroupArray = 8, "cgroup_array" => needs(TASKS).keys(KeyKind::Index).untyped();
    LruHash = 9, "lru_hash" => supported().lru().uses(VALUES).holds(NO_LOCKS);
    LruPerCpuHash = 10, "lru_percpu_hash" => supported().lru().per_cpu().uses(CPU_VALUES).holds(REFERENCES);
    LpmTrie = 11, "lpm_trie" =>
        supported().keys(KeyKind::Prefix).uses(ELEMENTS).over_limit(Errno::EINVAL);
    ArrayOfMaps = 12, "array_of_maps" => supported()
        .keys(KeyKind::Index)
        .elements(ElementKind::Maps)
        .uses(&[MapUse::Lookup])
        .untyped()
        .inner(InnerLength::Forbidden);
    HashOfMaps = 13, "hash_of_maps" =>
        supported().elements(ElementKind::Maps).uses(&[MapUse::Lookup]).untyped().inner(InnerLength::Forbidden);
    DevMap = 14, "devmap" =>
        supported().keys(KeyKind::Index).elements(ElementKind::Devices).uses(TARGETS).read_only().untyped();
    SockMap = 15, "sockmap" => supported()
        .keys(KeyKind::Index)
        .elements(ElementKind::Sockets)
        .uses(ELEMENTS)
        .untyped()
        .over_limit(Errno::EINVAL);
    CpuMap = 16, "cpumap" =>
        supported().keys(KeyKind::Index).elements(ElementKind::Cpus).uses(&[MapUse::Redirect]).untyped();
    XskMap = 17, "xskmap" => supported()
        .keys(KeyKind::Index)
        .elements(ElementKind::XdpSockets)
        .uses(TARGETS)
        .untyped()
        .inner(InnerLength::Fixed);
    SockHash = 18, "sockhash" => supported().elements(ElementKind::Sockets).uses(ELEMENTS).untyped();
    CgroupStorage = 19, "cgroup_storage" => needs(TASKS).holds(LOCKS);
    ReuseportSockArray = 20, "reuseport_sockarray" => needs(SOCKETS).keys(KeyKind::Index);
    PerCpuCgroupStorage = 21, "percpu_cgroup_storage" => needs(TASKS);
    Queue = 22, "queue" => supported().keys(KeyKind::None).uses(ENDS).untyped();
    Stack = 23, "stack" => supported().keys(KeyKind::None).uses(ENDS).untyped();
    SkStorage = 24, "sk_storage" => needs(SOCKETS).holds(STORAGE);
    DevMapHash = 25, "devmap_hash" =>
        supported().elements(ElementKind::Devices).uses(TARGETS).read_only().untyped().over_limit(Errno::EINVAL);
    StructOps = 26, "struct_ops" => needs("kernel operations that are programs");
    RingBuf = 27, "ringbuf" =>
        supported().keys(KeyKind::None).elements(ElementKind::Records).uses(&[MapUse::RingBuffer]);
    InodeStorage = 28, "inode_storage" => needs(TASKS).holds(STORAGE);
    TaskStorage = 29, "task_storage" => needs(TASKS).holds(STORAGE);
    BloomFilter = 30, "bloom_filter" => supported()
        .keys(KeyKind::None)
        .elements(ElementKind::Members)
        .uses(&[MapUse::Push, MapUse::Peek])
        .extra();
    UserRingBuf = 31, "user_ringbuf" =>
        needs(USER_RING_BUFFERS).keys(KeyKind::None).elements(ElementKind::Records);
    CgrpStorage = 32, "cgrp_storage" => needs(TASKS).holds(STORAGE);
    Arena = 33, "arena" =>
        needs("memory that programs and user space address alike").keys(KeyKind::None).untyped().extra();
}

impl MapKind {
    /// The kind's number in `enum bpf_map_type`.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Whether Paceline has maps of this kind.
    #[must_use]
    pub const fn is_supported(self) -> bool {
        self.rules().needs.is_none()
    }

    /// The prerequisite of an implementation, for kinds that Paceline does not have.
    #[must_use]
    pub const fn needs(self) -> Option<&'static str> {
        self.rules().needs
    }

    /// Whether programs may make a use of maps of this kind.
    #[must_use]
    pub fn has_use(self, by: MapUse) -> bool {
        self.rules().uses.contains(&by)
    }

    /// Whether values of maps of this kind may have a special field.
    #[must_use]
    pub fn may_hold(self, field: SpecialKind) -> bool {
        self.rules().special.contains(&field)
    }

    /// Whether the kernel is told the types of keys and values.
    #[must_use]
    pub const fn has_element_types(self) -> bool {
        self.rules().has_element_types
    }

    /// Whether each CPU (worker) has its own value under one key.
    #[must_use]
    pub const fn is_per_cpu(self) -> bool {
        self.rules().is_per_cpu
    }

    /// Whether a full map of this kind evicts elements to make room.
    #[must_use]
    pub const fn is_lru(self) -> bool {
        self.rules().is_lru
    }

    /// Whether programs may only read the values.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        self.rules().is_read_only
    }

    /// Whether a map of this kind has a value of bytes at each index from 0 on.
    #[must_use]
    pub const fn is_array(self) -> bool {
        self.has_indices() && self.holds_bytes()
    }

    /// Whether elements have keys.
    #[must_use]
    pub const fn has_keys(self) -> bool {
        !matches!(self.rules().keys, KeyKind::None)
    }

    /// Whether keys are indices of 4 bytes.
    #[must_use]
    pub const fn has_indices(self) -> bool {
        matches!(self.rules().keys, KeyKind::Index)
    }

    /// Whether keys are prefixes.
    #[must_use]
    pub const fn has_prefixes(self) -> bool {
        matches!(self.rules().keys, KeyKind::Prefix)
    }

    /// Whether elements are bytes that are added and removed by key.
    #[must_use]
    pub const fn is_keyed(self) -> bool {
        matches!(self.rules().keys, KeyKind::Bytes | KeyKind::Prefix) && self.holds_bytes()
    }

    /// Whether elements are bytes in an order of their own, without keys: queues and stacks.
    #[must_use]
    pub const fn is_queue(self) -> bool {
        matches!(self.rules().keys, KeyKind::None) && self.holds_bytes()
    }

    /// Whether elements are bytes that programs and user space define.
    #[must_use]
    pub const fn holds_bytes(self) -> bool {
        matches!(self.rules().elements, ElementKind::Bytes)
    }

    /// Whether elements are sockets of the network, to which programs get references.
    #[inline]
    #[must_use]
    pub const fn holds_sockets(self) -> bool {
        matches!(self.rules().elements, ElementKind::Sockets)
    }

    /// Whether elements are maps.
    #[must_use]
    pub const fn holds_maps(self) -> bool {
        matches!(self.rules().elements, ElementKind::Maps)
    }

    /// Whether elements are programs for tail calls.
    #[must_use]
    pub const fn holds_programs(self) -> bool {
        matches!(self.rules().elements, ElementKind::Programs)
    }

    /// Whether the map is a ring buffer, whose size in bytes is `max_entries`.
    #[must_use]
    pub const fn is_ring_buffer(self) -> bool {
        matches!(self.rules().elements, ElementKind::Records)
    }

    /// Whether elements are perf events, one per CPU if `max_entries` is 0.
    #[must_use]
    pub const fn holds_events(self) -> bool {
        matches!(self.rules().elements, ElementKind::Events)
    }

    /// Whether `bpf_map_peek_elem` reads a value and tests it for membership, instead of writing one
    /// (`resolve_map_arg_type`).
    #[must_use]
    pub const fn tests_membership(self) -> bool {
        matches!(self.rules().elements, ElementKind::Members)
    }
}

impl fmt::Display for MapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_and_needs_exclude_each_other() {
        for &kind in MapKind::ALL {
            assert_eq!(kind.rules().uses.is_empty(), !kind.is_supported(), "{kind}");
        }
    }
}
