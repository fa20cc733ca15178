//! Maps before they are created: flags, initial values and the specification.

use paceline_btf::{Btf, SpecialField, SpecialKind, Value};

use super::map_kind::MapKind;

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

/// Sharing of a map with other objects (`LIBBPF_PIN_BY_NAME`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pinning {
    /// The map belongs to its object.
    #[default]
    None,
    /// One map for all objects that name it.
    ByName,
}

/// Initial value of an element of a map.
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
    /// Kind.
    pub kind: MapKind,
    /// Size of a key.
    pub key_size: u32,
    /// Size of a value.
    pub value_size: u32,
    /// Maximum number of elements; 0 if the kind has none or the loader must choose.
    pub max_entries: u32,
    /// Creation flags.
    pub flags: MapFlags,
    /// Kind-specific extra (`map_extra`): hash count of a bloom filter, address of an arena.
    pub extra: u64,
    /// Sharing with other objects.
    pub pinning: Pinning,
    /// BTF type id of the key, 0 when unknown.
    pub key_type: u32,
    /// BTF type id of the value, 0 when unknown. For `.data`, `.rodata` and `.bss` maps the id of the section's type.
    pub value_type: u32,
    /// Special fields of the value, which programs cannot load or store, by rising offset; from the value's type.
    pub special: Box<[SpecialField]>,
    /// Template of the inner maps of a map of maps.
    pub inner: Option<Box<MapSpec>>,
    /// Elements present from the start: key (4 bytes, native order for arrays) and value.
    pub contents: Vec<(Vec<u8>, InitialValue)>,
    /// Whether the map is frozen after its contents are written, as `.rodata` is.
    pub frozen: bool,
}

impl MapSpec {
    /// A map of this kind and these sizes in bytes: without flags, pinning, types and initial elements.
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

    /// A key as people write it ([`Value::Written`]): by its type, as a prefix in longest-prefix tries, as an index in arrays. `None` without
    /// a type, and where bytes and type do not agree.
    #[must_use]
    pub fn decode_key(&self, btf: Option<&Btf>, key: &[u8]) -> Option<Value> {
        let is_prefix = self.kind.has_prefixes();
        let typed = btf.filter(|_| self.key_type != 0).and_then(|btf| match is_prefix {
            true => btf.decode_prefix(self.key_type, key).ok(),
            false => btf.decode_written(self.key_type, key).ok(),
        });
        let is_index = self.kind.is_array() || self.kind.holds_programs();
        let index = || key.try_into().ok().map(|key| Value::Unsigned(u32::from_ne_bytes(key).into()));
        typed
            .or_else(|| is_prefix.then(|| Value::untyped_prefix(key)))
            .or_else(|| index().filter(|_| is_index))
    }

    /// A value as people write it ([`Value::Written`]), by its type. `None` without one, and where bytes and type do not agree.
    #[must_use]
    pub fn decode_value(&self, btf: Option<&Btf>, value: &[u8]) -> Option<Value> {
        btf.filter(|_| self.value_type != 0)?.decode_written(self.value_type, value).ok()
    }

    /// Sets the [`special`](Self::special) fields of its values and of those of its inner maps, if their type is
    /// known and has the value size.
    pub fn find_special_fields(&mut self, btf: &Btf) {
        let is_known = self.value_type != 0
            && self.kind.has_element_types()
            && btf.size_of(self.value_type) == Ok(u64::from(self.value_size));
        self.special = if is_known { btf.special_fields(self.value_type) } else { Box::default() };
        if let Some(inner) = &mut self.inner {
            inner.find_special_fields(btf);
        }
    }

    /// Whether neither applications nor programs can change its contents, such as those of `.rodata`.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.frozen && self.flags.contains(MapFlags::RDONLY_PROG)
    }

    /// The `bpf_timer` of its values.
    #[must_use]
    pub fn timer(&self) -> Option<SpecialField> {
        self.last_special(SpecialKind::Timer)
    }

    /// The `bpf_spin_lock` of its values, unless a packed structure puts it at an offset that is no multiple of 4: such a lock is not
    /// accessible, but cannot be taken either.
    #[must_use]
    pub fn spin_lock(&self) -> Option<SpecialField> {
        self.last_special(SpecialKind::SpinLock).filter(|field| field.offset.is_multiple_of(4))
    }

    /// The field of a kind, which the kernel allows once in each structure: of several the last one counts (`btf_parse_fields`).
    fn last_special(&self, kind: SpecialKind) -> Option<SpecialField> {
        self.special.iter().copied().rfind(|field| field.kind == kind)
    }
}
