//! Checks of a new map (`map_alloc_check` of each kind in the kernel).

use std::fmt;

use paceline_btf::SpecialKind;
use paceline_spec::{Errno, MapFlags, MapKind, MapSpec};
use thiserror::Error;

use crate::slab::NoMemory;

/// Limits on the resources of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPUs (workers) that have a value of their own in per-CPU maps; at least 1.
    pub cpus: usize,
    /// Most bytes that one map may declare: all elements and the index that finds them. Pages are committed only
    /// when they are used.
    pub memory: u64,
}

/// Error of a map that cannot be created; printed with the kernel's error number if the kernel refuses it too.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("map {name:?}: {cause}{}", of_kernel(*.kind, .cause))]
pub struct CreateError {
    /// Name of the map in its object.
    pub name: String,
    /// Its kind.
    pub kind: MapKind,
    /// Cause.
    pub cause: CreateErrorKind,
}

/// Cause of a [`CreateError`]; sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CreateErrorKind {
    /// Paceline does not have the kind.
    #[error("map type {} is not supported: needs {}", .0, .0.needs().unwrap_or("an implementation"))]
    Unsupported(MapKind),
    /// A key of zero bytes.
    #[error("key size is zero")]
    ZeroKeySize,
    /// The kind has keys of one size only.
    #[error("key size is {size}, must be {expected}")]
    KeySize {
        /// Size asked for.
        size: u32,
        /// The only size allowed.
        expected: u32,
    },
    /// A value of zero bytes.
    #[error("value size is zero")]
    ZeroValueSize,
    /// The kind has values of certain sizes only.
    #[error("value size is {size}, must be {}", OneOf(allowed))]
    ValueSize {
        /// Size asked for.
        size: u32,
        /// The sizes allowed.
        allowed: &'static [u32],
    },
    /// A value larger than the kernel's limit.
    #[error("value size is {size}, at most {limit} allowed")]
    ValueTooLarge {
        /// Size asked for.
        size: u32,
        /// The largest.
        limit: u32,
    },
    /// A key alone is over the limit for key and value together.
    #[error("key size is {size}, at most {limit} allowed")]
    KeyTooLarge {
        /// Size asked for.
        size: u32,
        /// The largest.
        limit: u32,
    },
    /// Key and value together are over the limit.
    #[error("key and value take {size} bytes, at most {limit} allowed")]
    ElementTooLarge {
        /// Both sizes added.
        size: u64,
        /// The largest sum.
        limit: u32,
    },
    /// A key smaller than the kind's smallest.
    #[error("key size is {size}, at least {least} required")]
    KeyTooSmall {
        /// Size asked for.
        size: u32,
        /// The smallest.
        least: u32,
    },
    /// No elements.
    #[error("max_entries is zero")]
    ZeroEntries,
    /// More elements than the kind may have.
    #[error("max_entries is {entries}, at most {limit} allowed")]
    TooManyEntries {
        /// Elements asked for.
        entries: u32,
        /// The most.
        limit: u32,
    },
    /// `map_extra` is more than the kind allows.
    #[error("map_extra is {extra:#x}, at most {limit:#x} allowed")]
    Extra {
        /// The requested value.
        extra: u64,
        /// The most.
        limit: u64,
    },
    /// A map of maps without a specification of its inner maps.
    #[error("nothing says what its inner maps look like")]
    NoInner,
    /// Inner maps that would have inner maps.
    #[error("inner maps may not hold maps")]
    NestedInner,
    /// A kind that cannot be an element of a map.
    #[error("inner maps cannot be of type {0}")]
    InnerKind(MapKind),
    /// An inner map cannot be made.
    #[error("an inner map: {0}")]
    Inner(Box<Self>),
    /// A ring buffer of a size that is no power of two or less than a page.
    #[error("max_entries is {entries}, must be a power of two and a multiple of {page}")]
    RingSize {
        /// Bytes asked for.
        entries: u32,
        /// Bytes of a page.
        page: u32,
    },
    /// Flags that are unknown, not for this kind, or exclude each other.
    #[error("map flags {flags:#x} are not allowed")]
    Flags {
        /// The offending bits.
        flags: u32,
    },
    /// A flag that the kind must have.
    #[error("map flags {flags:#x} are required")]
    MissingFlags {
        /// The missing bits.
        flags: u32,
    },
    /// More bytes than the limit set for a map.
    #[error("{entries} entries need {} bytes, the limit is {limit}", Count(*.needed))]
    Memory {
        /// Elements asked for.
        entries: u32,
        /// Bytes they need; `u64::MAX` when more than can be counted.
        needed: u64,
        /// [`Limits::memory`].
        limit: u64,
    },
    /// The system has not that many bytes.
    #[error("no memory for {needed} bytes")]
    OutOfMemory {
        /// Bytes needed.
        needed: u64,
    },
    /// [`Limits::cpus`] is zero.
    #[error("the limit on CPUs is zero")]
    NoCpus,
    /// A field of the value that this kind of map cannot have.
    #[error("values of this kind of map cannot have a {0}")]
    SpecialField(SpecialKind),
    /// Values with fields that are not for loads and stores, in a map of which programs may only read or write.
    #[error("a map of values with a {0} cannot be read-only or write-only for programs")]
    SpecialAccess(SpecialKind),
    /// Every map number of this process has been given out.
    #[error("all map numbers are used up")]
    NoIds,
}

impl CreateError {
    /// The error number of `bpf(BPF_MAP_CREATE)` in the same case.
    #[must_use]
    pub fn errno(&self) -> Errno {
        errno(self.kind, &self.cause)
    }
}

fn errno(kind: MapKind, cause: &CreateErrorKind) -> Errno {
    use CreateErrorKind as Cause;
    match cause {
        // The kernel is given an inner map, which must have been made.
        Cause::NoInner | Cause::Inner(_) => Errno::EBADF,
        Cause::InnerKind(_) => Errno::ENOTSUPP,
        Cause::Memory { .. } | Cause::OutOfMemory { .. } => Errno::ENOMEM,
        Cause::NoIds => Errno::ENOSPC,
        Cause::SpecialField(_) => Errno::EOPNOTSUPP,
        Cause::SpecialAccess(_) => Errno::EACCES,
        Cause::Flags { flags } if kind.is_lru() && *flags == MapFlags::NO_PREALLOC.0 => Errno::ENOTSUPP,
        Cause::ValueTooLarge { .. }
        | Cause::KeyTooLarge { .. }
        | Cause::ElementTooLarge { .. }
        | Cause::TooManyEntries { .. } => kind.rules().over_limit,
        _ => Errno::EINVAL,
    }
}

impl From<NoMemory> for CreateErrorKind {
    fn from(error: NoMemory) -> Self {
        Self::OutOfMemory { needed: error.bytes }
    }
}

/// The error number as text; empty for limits that the kernel does not have.
fn of_kernel(kind: MapKind, cause: &CreateErrorKind) -> String {
    use CreateErrorKind as Cause;
    match cause {
        Cause::Unsupported(_) | Cause::Memory { .. } | Cause::OutOfMemory { .. } => String::new(),
        Cause::NoCpus | Cause::NoIds => String::new(),
        cause => format!(" ({})", errno(kind, cause)),
    }
}

/// Bytes, or more than can be counted.
struct Count(u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("too many"),
            count => count.fmt(f),
        }
    }
}

struct OneOf<'a>(&'a [u32]);

impl fmt::Display for OneOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, size) in self.0.iter().enumerate() {
            write!(f, "{}{size}", if i == 0 { "" } else { " or " })?;
        }
        Ok(())
    }
}

/// `MAX_BPF_STACK`: keys are limited to the stack of programs.
pub(crate) const MAX_STACK: u32 = 512;

/// `KMALLOC_MAX_SIZE`
pub(crate) const MAX_ALLOCATION: u32 = 4 << 20;

/// `BPF_F_NUMA_NODE`: accepted and without effect.
pub(crate) const NUMA_NODE: MapFlags = MapFlags(1 << 2);
/// `BPF_F_ACCESS_MASK`
pub(crate) const ACCESS: MapFlags =
    MapFlags(MapFlags::RDONLY.0 | MapFlags::WRONLY.0 | MapFlags::RDONLY_PROG.0 | MapFlags::WRONLY_PROG.0);

/// Flags of the maps whose entries are references: they limit user space, and programs have no access to limit.
pub(crate) const REFERENCE_FLAGS: MapFlags = MapFlags(NUMA_NODE.0 | MapFlags::RDONLY.0 | MapFlags::WRONLY.0);

/// Request for a new map: a kind checks it, and may complete its specification as the kernel does.
pub(crate) struct Request<'a> {
    pub(crate) spec: MapSpec,
    pub(crate) limits: &'a Limits,
    /// Makes a map for a trial, and gives its specification as completed: the template of inner maps.
    pub(crate) try_inner: fn(&MapSpec, &Limits) -> Result<MapSpec, CreateErrorKind>,
}

impl Request<'_> {
    pub(crate) fn key_size(&self) -> usize {
        self.spec.key_size as usize
    }

    pub(crate) fn value_size(&self) -> usize {
        self.spec.value_size as usize
    }

    pub(crate) fn entries(&self) -> usize {
        self.spec.max_entries as usize
    }

    pub(crate) fn check_flags(&self, allowed: MapFlags) -> Result<(), CreateErrorKind> {
        self.reject(MapFlags(self.spec.flags.0 & !allowed.0))?;
        self.reject_both(MapFlags::RDONLY_PROG | MapFlags::WRONLY_PROG)
    }

    /// Refuses maps that user space may neither read nor write (`bpf_get_file_flag` in `kernel/bpf/syscall.c`), for all kinds.
    pub(crate) fn check_user_access(&self) -> Result<(), CreateErrorKind> {
        self.reject_both(MapFlags::RDONLY | MapFlags::WRONLY)
    }

    fn reject_both(&self, pair: MapFlags) -> Result<(), CreateErrorKind> {
        if self.spec.flags.contains(pair) { self.reject(pair) } else { Ok(()) }
    }

    fn reject(&self, flags: MapFlags) -> Result<(), CreateErrorKind> {
        match flags.0 {
            0 => Ok(()),
            flags => Err(CreateErrorKind::Flags { flags }),
        }
    }

    pub(crate) fn check_has_no_flag(&self, flag: MapFlags) -> Result<(), CreateErrorKind> {
        self.reject(MapFlags(self.spec.flags.0 & flag.0))
    }

    pub(crate) fn check_has_flag(&self, flag: MapFlags) -> Result<(), CreateErrorKind> {
        let has = self.spec.flags.contains(flag);
        if has { Ok(()) } else { Err(CreateErrorKind::MissingFlags { flags: flag.0 }) }
    }

    pub(crate) fn check_key_between(&self, least: u32, limit: u32) -> Result<(), CreateErrorKind> {
        match self.spec.key_size {
            0 => Err(CreateErrorKind::ZeroKeySize),
            size if size < least => Err(CreateErrorKind::KeyTooSmall { size, least }),
            size if size > limit => Err(CreateErrorKind::KeyTooLarge { size, limit }),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_entries(&self) -> Result<(), CreateErrorKind> {
        if self.spec.max_entries == 0 { Err(CreateErrorKind::ZeroEntries) } else { Ok(()) }
    }

    pub(crate) fn check_entries_at_most(&self, limit: u32) -> Result<(), CreateErrorKind> {
        let entries = self.spec.max_entries;
        if entries > limit { Err(CreateErrorKind::TooManyEntries { entries, limit }) } else { Ok(()) }
    }

    /// Values without keys.
    pub(crate) fn check_no_key(&self) -> Result<(), CreateErrorKind> {
        match self.spec.key_size {
            0 => Ok(()),
            size => Err(CreateErrorKind::KeySize { size, expected: 0 }),
        }
    }

    pub(crate) fn check_extra_at_most(&self, limit: u64) -> Result<(), CreateErrorKind> {
        let extra = self.spec.extra;
        if extra > limit { Err(CreateErrorKind::Extra { extra, limit }) } else { Ok(()) }
    }

    /// Keys are array indices.
    pub(crate) fn check_index_key(&self) -> Result<(), CreateErrorKind> {
        match self.spec.key_size {
            4 => Ok(()),
            0 => Err(CreateErrorKind::ZeroKeySize),
            size => Err(CreateErrorKind::KeySize { size, expected: 4 }),
        }
    }

    pub(crate) fn check_value_is_one_of(&self, allowed: &'static [u32]) -> Result<(), CreateErrorKind> {
        let size = self.spec.value_size;
        if allowed.contains(&size) { Ok(()) } else { Err(CreateErrorKind::ValueSize { size, allowed }) }
    }

    pub(crate) fn check_value_at_most(&self, limit: u32) -> Result<(), CreateErrorKind> {
        match self.spec.value_size {
            0 => Err(CreateErrorKind::ZeroValueSize),
            size if size > limit => Err(CreateErrorKind::ValueTooLarge { size, limit }),
            _ => Ok(()),
        }
    }

    /// The fields of the value that are not for loads and stores (`map_check_btf` in `kernel/bpf/syscall.c`).
    pub(crate) fn check_special_fields(&self) -> Result<(), CreateErrorKind> {
        let is_limited = |flag| self.spec.flags.contains(flag);
        for field in &self.spec.special {
            if is_limited(MapFlags::RDONLY_PROG) || is_limited(MapFlags::WRONLY_PROG) {
                return Err(CreateErrorKind::SpecialAccess(field.kind));
            }
            if !self.spec.kind.may_hold(field.kind) {
                return Err(CreateErrorKind::SpecialField(field.kind));
            }
        }
        Ok(())
    }

    /// The last check: `needed` is the declared size in bytes, `None` if it overflows.
    pub(crate) fn check_memory(&self, needed: Option<u64>) -> Result<(), CreateErrorKind> {
        let (needed, limit) = (needed.unwrap_or(u64::MAX), self.limits.memory);
        if needed > limit {
            return Err(CreateErrorKind::Memory { entries: self.spec.max_entries, needed, limit });
        }
        Ok(())
    }
}
