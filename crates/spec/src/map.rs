//! What a map is.

use std::fmt;

use paceline_btf::{Btf, SpecialField, SpecialKind};

macro_rules! map_kinds {
    ($($variant:ident = $number:literal, $name:literal;)*) => {
        /// The kinds of map of the kernel's `enum bpf_map_type`, whether Paceline has them or not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum MapKind {
            $(#[doc = concat!("`", $name, "`")] $variant = $number,)*
        }

        impl MapKind {
            /// Every kind, by rising number.
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
        }
    };
}

map_kinds! {
    Hash = 1, "hash";
    Array = 2, "array";
    ProgArray = 3, "prog_array";
    PerfEventArray = 4, "perf_event_array";
    PerCpuHash = 5, "percpu_hash";
    PerCpuArray = 6, "percpu_array";
    StackTrace = 7, "stack_trace";
    CgroupArray = 8, "cgroup_array";
    LruHash = 9, "lru_hash";
    LruPerCpuHash = 10, "lru_percpu_hash";
    LpmTrie = 11, "lpm_trie";
    ArrayOfMaps = 12, "array_of_maps";
    HashOfMaps = 13, "hash_of_maps";
    DevMap = 14, "devmap";
    SockMap = 15, "sockmap";
    CpuMap = 16, "cpumap";
    XskMap = 17, "xskmap";
    SockHash = 18, "sockhash";
    CgroupStorage = 19, "cgroup_storage";
    ReuseportSockArray = 20, "reuseport_sockarray";
    PerCpuCgroupStorage = 21, "percpu_cgroup_storage";
    Queue = 22, "queue";
    Stack = 23, "stack";
    SkStorage = 24, "sk_storage";
    DevMapHash = 25, "devmap_hash";
    StructOps = 26, "struct_ops";
    RingBuf = 27, "ringbuf";
    InodeStorage = 28, "inode_storage";
    TaskStorage = 29, "task_storage";
    BloomFilter = 30, "bloom_filter";
    UserRingBuf = 31, "user_ringbuf";
    CgrpStorage = 32, "cgrp_storage";
    Arena = 33, "arena";
}

impl MapKind {
    /// The kind's number in `enum bpf_map_type`.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Whether the kernel is told the types of keys and values of maps of this kind; libbpf leaves them out for the others
    /// (`bpf_object__create_map`), whose values have no special fields then.
    #[must_use]
    pub const fn has_element_types(self) -> bool {
        !matches!(
            self,
            Self::PerfEventArray
                | Self::CgroupArray
                | Self::StackTrace
                | Self::ArrayOfMaps
                | Self::HashOfMaps
                | Self::DevMap
                | Self::DevMapHash
                | Self::CpuMap
                | Self::XskMap
                | Self::SockMap
                | Self::SockHash
                | Self::Queue
                | Self::Stack
                | Self::Arena
        )
    }

    /// Whether values of maps of this kind may have a special field (`map_check_btf` in `kernel/bpf/syscall.c`).
    #[must_use]
    pub const fn may_hold(self, field: SpecialKind) -> bool {
        use SpecialKind as F;
        let is_storage = matches!(
            self,
            Self::CgroupStorage
                | Self::SkStorage
                | Self::InodeStorage
                | Self::TaskStorage
                | Self::CgrpStorage
        );
        match field {
            F::SpinLock | F::ResilientSpinLock => is_storage || matches!(self, Self::Hash | Self::Array),
            F::Timer | F::Workqueue | F::TaskWork | F::ListHead | F::TreeRoot => {
                matches!(self, Self::Hash | Self::LruHash | Self::Array)
            }
            F::KernelPointer | F::Refcount => {
                is_storage || self.is_per_cpu() || matches!(self, Self::Hash | Self::LruHash | Self::Array)
            }
        }
    }

    /// Whether each CPU (worker) has its own value under one key.
    #[must_use]
    pub const fn is_per_cpu(self) -> bool {
        matches!(self, Self::PerCpuArray | Self::PerCpuHash | Self::LruPerCpuHash)
    }

    /// Whether a full map of this kind gives up elements to make room.
    #[must_use]
    pub const fn is_lru(self) -> bool {
        matches!(self, Self::LruHash | Self::LruPerCpuHash)
    }

    /// Whether its elements are sockets, of which a program gets a reference.
    #[must_use]
    pub const fn holds_sockets(self) -> bool {
        matches!(self, Self::SockMap | Self::SockHash)
    }

    /// Whether a map of this kind has a value at each index from 0 on.
    #[must_use]
    pub const fn is_array(self) -> bool {
        matches!(self, Self::Array | Self::PerCpuArray)
    }
}

impl fmt::Display for MapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Creation flags, the bits of `map_flags` (`BPF_F_*` in the UAPI header).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MapFlags(pub u32);

impl MapFlags {
    /// Elements are allocated when they are inserted.
    pub const NO_PREALLOC: Self = Self(1 << 0);
    /// An LRU map keeps one list per CPU.
    pub const NO_COMMON_LRU: Self = Self(1 << 1);
    /// User space may only read.
    pub const RDONLY: Self = Self(1 << 3);
    /// User space may only write.
    pub const WRONLY: Self = Self(1 << 4);
    /// Hash seed of zero, for tests.
    pub const ZERO_SEED: Self = Self(1 << 6);
    /// Programs may only read.
    pub const RDONLY_PROG: Self = Self(1 << 7);
    /// Programs may only write.
    pub const WRONLY_PROG: Self = Self(1 << 8);
    /// An array may be mapped into user space.
    pub const MMAPABLE: Self = Self(1 << 10);
    /// Inner maps of an array of maps may differ in `max_entries`.
    pub const INNER_MAP: Self = Self(1 << 12);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for MapFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Whether the map is shared by name with other objects (`LIBBPF_PIN_BY_NAME`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pinning {
    /// The object's own.
    #[default]
    None,
    /// One map for all objects that name it.
    ByName,
}

/// A value that the object gives to an element of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InitialValue {
    /// Plain bytes, at most the value size; the rest is zero.
    Bytes(Vec<u8>),
    /// Another map of the object, by index: the elements of maps of maps.
    Map(usize),
    /// A program of the object, by its function's name: the elements of program arrays.
    Program(String),
}

/// A map as an object declares it; sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapSpec {
    /// Name in the object.
    pub name: String,
    /// Its kind.
    pub kind: MapKind,
    /// Size of a key.
    pub key_size: u32,
    /// Size of a value.
    pub value_size: u32,
    /// Most elements it may hold; 0 where the kind has none or the loader must choose.
    pub max_entries: u32,
    /// Creation flags.
    pub flags: MapFlags,
    /// Kind-specific extra (`map_extra`): hash count of a bloom filter, address of an arena.
    pub extra: u64,
    /// Sharing.
    pub pinning: Pinning,
    /// BTF type id of the key, 0 when unknown.
    pub key_type: u32,
    /// BTF type id of the value, 0 when unknown. For `.data`, `.rodata` and `.bss` maps the id of the section's type.
    pub value_type: u32,
    /// Fields of the value that are not for loads and stores, by rising offset: what its type says of them.
    pub special: Box<[SpecialField]>,
    /// What inner maps of a map of maps look like.
    pub inner: Option<Box<MapSpec>>,
    /// Elements present from the start: key (4 bytes, native order for arrays) and value.
    pub contents: Vec<(Vec<u8>, InitialValue)>,
    /// Whether user space may no longer change it once the contents are in: `.rodata`.
    pub frozen: bool,
}

impl MapSpec {
    /// A map of this kind and these sizes, in bytes, and of what else a definition may leave out: no flags, not pinned,
    /// of unknown types, empty.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        kind: MapKind,
        key_size: u32,
        value_size: u32,
        max_entries: u32,
    ) -> Self {
        Self {
            name: name.into(),
            kind,
            key_size,
            value_size,
            max_entries,
            flags: MapFlags::default(),
            extra: 0,
            pinning: Pinning::None,
            key_type: 0,
            value_type: 0,
            special: Box::default(),
            inner: None,
            contents: Vec::new(),
            frozen: false,
        }
    }

    /// Finds the [`special`](Self::special) fields of its values and of those of its inner maps, where their type is
    /// known and as large as they are.
    pub fn find_special_fields(&mut self, btf: &Btf) {
        let is_known = self.value_type != 0
            && self.kind.has_element_types()
            && btf.size_of(self.value_type) == Ok(u64::from(self.value_size));
        self.special = if is_known { btf.special_fields(self.value_type) } else { Box::default() };
        if let Some(inner) = &mut self.inner {
            inner.find_special_fields(btf);
        }
    }

    /// The `bpf_timer` of its values.
    #[must_use]
    pub fn timer(&self) -> Option<SpecialField> {
        self.special.iter().copied().find(|field| field.kind == SpecialKind::Timer)
    }

    /// The `bpf_spin_lock` of its values.
    #[must_use]
    pub fn spin_lock(&self) -> Option<SpecialField> {
        self.special.iter().copied().find(|field| field.kind == SpecialKind::SpinLock)
    }
}
