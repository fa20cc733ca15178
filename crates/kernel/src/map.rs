//! Kernel maps.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use paceline_btf::TypeId;
use paceline_spec::{ElementKind, Errno, InitialValue, MapKind, MapSpec};

use crate::cpu::possible_cpus;
use crate::error::KernelError;
use crate::sys::{self, MapCreate, Sizes};

/// A map in the kernel; it is freed with this value and the programs that use it.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    name: String,
    kind: MapKind,
    max_entries: u32,
    value_size: usize,
    sizes: Sizes,
}

/// The types of a map's elements.
#[derive(Clone, Copy, Debug)]
pub struct ElementTypes<'a> {
    /// BTF in the kernel.
    pub btf: BorrowedFd<'a>,
    /// Type of keys; 0 for sections of variables, whose only key is 0.
    pub key: TypeId,
    /// Type of values.
    pub value: TypeId,
}

/// Elements of a map by key; for per-CPU maps the values of the CPU that ran the program. Keys of queues and stacks are
/// positions in pop order, 4 bytes big-endian.
pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Whether elements of a map are bytes, and not programs, maps or buffers.
#[must_use]
pub fn has_byte_contents(kind: MapKind) -> bool {
    matches!(kind.rules().elements, ElementKind::Bytes | ElementKind::Devices | ElementKind::Cpus)
}

impl Map {
    /// Creates an empty map from `spec`; `inner` is the template of a map of maps.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn create(
        spec: &MapSpec,
        inner: Option<&Self>,
        types: Option<ElementTypes<'_>>,
    ) -> Result<Self, KernelError> {
        let max_entries = match spec.max_entries {
            0 if spec.kind.holds_events() => u32::try_from(possible_cpus()).unwrap_or(1),
            entries => entries,
        };
        let attr = MapCreate {
            map_type: spec.kind.number(),
            key_size: spec.key_size,
            value_size: spec.value_size,
            max_entries,
            map_flags: spec.flags.0,
            inner_map_fd: inner.map_or(0, Self::raw_fd),
            map_name: object_name(&spec.name),
            btf_fd: types.map_or(0, |types| types.btf.as_raw_fd().cast_unsigned()),
            btf_key_type_id: types.map_or(0, |types| types.key),
            btf_value_type_id: types.map_or(0, |types| types.value),
            map_extra: spec.extra,
            ..MapCreate::default()
        };
        let fd = sys::map_create(attr).map_err(|errno| KernelError::new("create map", errno))?;
        let value_size = spec.value_size as usize;
        let kernel_value = match spec.kind.is_per_cpu() {
            true => value_size.next_multiple_of(8) * possible_cpus(),
            false => value_size,
        };
        let sizes = Sizes { key: spec.key_size as usize, value: kernel_value };
        Ok(Self { fd, name: spec.name.clone(), kind: spec.kind, max_entries, value_size, sizes })
    }

    /// Creates maps with their initial bytes, for per-CPU maps on one CPU, and inner maps, which must precede their outer
    /// map.
    ///
    /// # Errors
    /// The kernel's refusal, or a missing inner map.
    pub fn create_all(specs: &[MapSpec], cpu: usize) -> Result<Vec<Self>, KernelError> {
        let mut made: Vec<Self> = Vec::new();
        for spec in specs {
            let template = spec.inner.as_deref().map(|inner| Self::create(inner, None, None)).transpose()?;
            let map = Self::create(spec, template.as_ref(), None)?;
            for (key, value) in &spec.contents {
                match value {
                    InitialValue::Bytes(bytes) => map.update(key, bytes, cpu)?,
                    InitialValue::Map(index) => {
                        let inner = made.get(*index).ok_or(KernelError::new("update map", Errno::EBADF))?;
                        map.update(key, &inner.raw_fd().to_ne_bytes(), cpu)?;
                    }
                    InitialValue::Program(_) => {}
                }
            }
            if spec.frozen {
                map.freeze()?;
            }
            made.push(map);
        }
        Ok(made)
    }

    /// The map's name in its spec.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The map's kind.
    #[must_use]
    pub fn kind(&self) -> MapKind {
        self.kind
    }

    /// The map's descriptor.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn raw_fd(&self) -> u32 {
        self.fd.as_raw_fd().cast_unsigned()
    }

    /// Sets an element; in per-CPU maps the value of `cpu`, and zero on all others. A shorter value is padded with zeros.
    ///
    /// # Errors
    /// The kernel's refusal; [`Errno::EINVAL`] for a key of another size or a value that is longer than the map's.
    pub fn update(&self, key: &[u8], value: &[u8], cpu: usize) -> Result<(), KernelError> {
        let error = |errno| KernelError::new("update map", errno);
        if key.len() != self.sizes.key || value.len() > self.value_size {
            return Err(error(Errno::EINVAL));
        }
        let mut full = vec![0; self.sizes.value];
        let start = if self.kind.is_per_cpu() { cpu * self.value_size.next_multiple_of(8) } else { 0 };
        let slot = full.get_mut(start..start + value.len()).ok_or(error(Errno::EINVAL))?;
        slot.copy_from_slice(value);
        sys::map_update(self.fd(), self.sizes, key, &full, 0).map_err(error)
    }

    /// The value under a key, for per-CPU maps that of `cpu`.
    ///
    /// # Errors
    /// The kernel's refusal, [`Errno::ENOENT`] if there is no such element.
    pub fn lookup(&self, key: &[u8], cpu: usize) -> Result<Vec<u8>, KernelError> {
        self.lookup_with(key, cpu, 0)
    }

    /// The same with flags, such as `BPF_F_LOCK`.
    ///
    /// # Errors
    /// As of [`lookup`](Self::lookup).
    pub fn lookup_with(&self, key: &[u8], cpu: usize, flags: u64) -> Result<Vec<u8>, KernelError> {
        let error = |errno| KernelError::new("look up in map", errno);
        if key.len() != self.sizes.key {
            return Err(error(Errno::EINVAL));
        }
        sys::map_lookup(self.fd(), self.sizes, key, (false, flags))
            .map(|value| self.of_cpu(value, cpu))
            .map_err(error)
    }

    fn of_cpu(&self, mut value: Vec<u8>, cpu: usize) -> Vec<u8> {
        if self.kind.is_per_cpu() {
            value.drain(..(cpu * self.value_size.next_multiple_of(8)).min(value.len()));
            value.truncate(self.value_size);
        }
        value
    }

    /// Sets an entry of a map of maps.
    ///
    /// # Errors
    /// The kernel's refusal, [`Errno::EINVAL`] for a map that is not like the template.
    pub fn put_map(&self, key: &[u8], inner: &Self) -> Result<(), KernelError> {
        self.update(key, &inner.raw_fd().to_ne_bytes(), 0)
    }

    /// Removes an element.
    ///
    /// # Errors
    /// The kernel's refusal, [`Errno::ENOENT`] if there is no such element.
    pub fn delete(&self, key: &[u8]) -> Result<(), KernelError> {
        let error = |errno| KernelError::new("delete from map", errno);
        if key.len() != self.sizes.key {
            return Err(error(Errno::EINVAL));
        }
        sys::map_delete(self.fd(), self.sizes, key).map_err(error)
    }

    /// Freezes the map: user space can no longer write to it.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn freeze(&self) -> Result<(), KernelError> {
        sys::map_freeze(self.fd()).map_err(|errno| KernelError::new("freeze map", errno))
    }

    /// All elements, for per-CPU maps the values of `cpu`; `None` for kinds whose elements are objects or buffers. Queues
    /// and stacks are emptied.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn contents(&self, cpu: usize) -> Result<Option<Contents>, KernelError> {
        match self.kind {
            kind if kind.is_array() => self.by_index(cpu).map(Some),
            kind if kind.is_queue() => self.popped().map(Some),
            kind if has_byte_contents(kind) => self.by_key(cpu).map(Some),
            _ => Ok(None),
        }
    }

    fn by_index(&self, cpu: usize) -> Result<Contents, KernelError> {
        let keys = (0..self.max_entries).map(|index| index.to_ne_bytes().to_vec());
        keys.map(|key| self.lookup(&key, cpu).map(|value| (key, value))).collect()
    }

    fn by_key(&self, cpu: usize) -> Result<Contents, KernelError> {
        let mut contents = Contents::new();
        let mut key: Option<Vec<u8>> = None;
        loop {
            key = match sys::map_next_key(self.fd(), self.sizes, key.as_deref()) {
                Ok(next) => Some(next),
                Err(Errno::ENOENT) => return Ok(contents),
                Err(errno) => return Err(KernelError::new("next key of map", errno)),
            };
            let found = key.clone().unwrap_or_default();
            match self.lookup(&found, cpu) {
                Ok(value) => drop(contents.insert(found, value)),
                // Device maps iterate over unset entries.
                Err(error) if error.errno == Errno::ENOENT => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn popped(&self) -> Result<Contents, KernelError> {
        let mut contents = Contents::new();
        for place in 0..self.max_entries {
            match sys::map_lookup(self.fd(), self.sizes, &[], (true, 0)) {
                Ok(value) => drop(contents.insert(place.to_be_bytes().to_vec(), value)),
                Err(Errno::ENOENT) => break,
                Err(errno) => return Err(KernelError::new("pop from map", errno)),
            }
        }
        Ok(contents)
    }
}

/// A name that `bpf_obj_name_cpy` in `kernel/bpf/syscall.c` accepts: at most 15 letters, digits, dots and underscores; other
/// bytes become underscores.
pub(super) fn object_name(name: &str) -> [u8; 16] {
    let mut out = [0; 16];
    let allowed = name.bytes().map(|b| if b.is_ascii_alphanumeric() || b == b'.' { b } else { b'_' });
    for (place, byte) in out.iter_mut().take(15).zip(allowed) {
        *place = byte;
    }
    out
}
