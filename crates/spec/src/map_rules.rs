//! The capabilities of a map kind.

use paceline_btf::SpecialKind;

use super::errno::Errno;
use super::map_use::MapUse;

/// Keys of a map kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Any bytes of the key size.
    Bytes,
    /// Indices of 4 bytes below `max_entries`.
    Index,
    /// `struct bpf_lpm_trie_key`: the length of a prefix in bits, and its bytes.
    Prefix,
    /// The kind has no keys; their size is 0.
    None,
}

/// Elements of a map kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// Bytes that programs and user space define.
    Bytes,
    /// Programs, for tail calls.
    Programs,
    /// Maps.
    Maps,
    /// Network devices, each with an optional program.
    Devices,
    /// CPUs, each with an optional program.
    Cpus,
    /// AF_XDP sockets.
    XdpSockets,
    /// Sockets of the network, to which programs get references.
    Sockets,
    /// Perf events, one per CPU.
    Events,
    /// Records of a ring buffer, whose size in bytes is `max_entries`.
    Records,
    /// Values that are only tested for membership.
    Members,
}

/// Condition on a map as an element of a map of maps (`map_meta_equal` in the kernel's `struct bpf_map_ops`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerLength {
    /// Any `max_entries` (`bpf_map_meta_equal`).
    Any,
    /// The `max_entries` of the template, because programs do not check it again.
    Fixed,
    /// The `max_entries` of the template, unless the template has `BPF_F_INNER_MAP` (`array_map_meta_equal`).
    FixedUnlessFlagged,
    /// The kind cannot be an element of a map.
    Forbidden,
}

/// The capabilities of a map kind: the row that the verifier, the maps, the engines, the command and the documentation read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapRules {
    /// The uses that programs may make of a map.
    pub uses: &'static [MapUse],
    /// Form of the keys.
    pub keys: KeyKind,
    /// Meaning of the elements.
    pub elements: ElementKind,
    /// Whether each CPU (worker) has its own value under one key.
    pub is_per_cpu: bool,
    /// Whether a full map evicts elements to make room.
    pub is_lru: bool,
    /// Whether programs may only read values: the kernel adds `BPF_F_RDONLY_PROG` at creation (`dev_map_alloc`).
    pub is_read_only: bool,
    /// Whether programs may name an address in the value of a map of one entry (`map_direct_value_addr`).
    pub is_addressable: bool,
    /// Special fields that values may have (`map_check_btf` in `kernel/bpf/syscall.c`).
    pub special: &'static [SpecialKind],
    /// Whether the kernel is told the types of keys and values; libbpf omits them for the other kinds
    /// (`bpf_object__create_map`), whose values have no special fields then.
    pub has_element_types: bool,
    /// Whether `map_extra` has a meaning; it must be 0 otherwise.
    pub has_extra: bool,
    /// Condition on maps of the kind as elements of maps.
    pub inner_length: InnerLength,
    /// The kernel's error number for sizes and numbers of entries over a limit.
    pub over_limit: Errno,
    /// The prerequisite of an implementation; `None` if Paceline has the kind.
    pub needs: Option<&'static str>,
}

impl MapRules {
    /// A kind that Paceline has, with keys and values of bytes and without any use by programs.
    pub(crate) const fn supported() -> Self {
        Self {
            uses: &[],
            keys: KeyKind::Bytes,
            elements: ElementKind::Bytes,
            is_per_cpu: false,
            is_lru: false,
            is_read_only: false,
            is_addressable: false,
            special: &[],
            has_element_types: true,
            has_extra: false,
            inner_length: InnerLength::Any,
            over_limit: Errno::E2BIG,
            needs: None,
        }
    }

    /// A kind that Paceline does not have, with the prerequisite of an implementation.
    pub(crate) const fn needs(prerequisite: &'static str) -> Self {
        Self { needs: Some(prerequisite), ..Self::supported() }
    }

    pub(crate) const fn uses(self, uses: &'static [MapUse]) -> Self {
        Self { uses, ..self }
    }

    pub(crate) const fn keys(self, keys: KeyKind) -> Self {
        Self { keys, ..self }
    }

    pub(crate) const fn elements(self, elements: ElementKind) -> Self {
        Self { elements, ..self }
    }

    pub(crate) const fn per_cpu(self) -> Self {
        Self { is_per_cpu: true, ..self }
    }

    pub(crate) const fn lru(self) -> Self {
        Self { is_lru: true, ..self }
    }

    pub(crate) const fn read_only(self) -> Self {
        Self { is_read_only: true, ..self }
    }

    pub(crate) const fn addressable(self) -> Self {
        Self { is_addressable: true, ..self }
    }

    pub(crate) const fn holds(self, special: &'static [SpecialKind]) -> Self {
        Self { special, ..self }
    }

    pub(crate) const fn untyped(self) -> Self {
        Self { has_element_types: false, ..self }
    }

    pub(crate) const fn extra(self) -> Self {
        Self { has_extra: true, ..self }
    }

    pub(crate) const fn inner(self, inner_length: InnerLength) -> Self {
        Self { inner_length, ..self }
    }

    pub(crate) const fn over_limit(self, over_limit: Errno) -> Self {
        Self { over_limit, ..self }
    }
}
