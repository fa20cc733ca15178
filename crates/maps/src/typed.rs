//! Maps with keys and values of Rust types.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use paceline_spec::Errno;
use thiserror::Error;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::batch::BatchError;
use crate::map::Map;
use crate::mode::UpdateMode;

/// A type whose bytes are all it is, so that any bytes are a value of it: integers, arrays of them, the types of
/// [`zerocopy::byteorder`], and structures of all these without padding, which `#[derive(FromBytes, IntoBytes, Immutable)]` with
/// `#[repr(C)]` asks the compiler about. `()` is the key of a queue, stack or Bloom filter.
pub trait Plain: FromBytes + IntoBytes + Immutable {}

impl<T: FromBytes + IntoBytes + Immutable> Plain for T {}

/// A type of values of a [`TypedMap`]: a [`Plain`] type, or [`PerCpu`] of one in the per-CPU kinds.
pub trait MapValue: Sized {
    /// The type of one value.
    type One: Plain;
    /// Whether there is one for each CPU.
    const PER_CPU: bool;

    /// The value of the bytes of [`Map::lookup`]; `None` for another number of bytes.
    fn from_user(bytes: &[u8]) -> Option<Self>;

    /// As [`Map::insert`] takes it.
    fn to_user(&self) -> Vec<u8>;
}

impl<T: Plain> MapValue for T {
    type One = T;
    const PER_CPU: bool = false;

    fn from_user(bytes: &[u8]) -> Option<Self> {
        T::read_from_bytes(bytes).ok()
    }

    fn to_user(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

/// The values of an element for each CPU (worker), by its number. As many are taken as are given: [`Limits::cpus`](crate::Limits::cpus).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerCpu<T>(pub Vec<T>);

/// Bytes from the value of one CPU to that of the next.
fn stride<T>() -> usize {
    size_of::<T>().next_multiple_of(8)
}

impl<T: Plain> MapValue for PerCpu<T> {
    type One = T;
    const PER_CPU: bool = true;

    fn from_user(bytes: &[u8]) -> Option<Self> {
        let values = bytes.chunks(stride::<T>().max(1));
        values
            .map(|bytes| T::read_from_prefix(bytes).ok().map(|(value, _)| value))
            .collect::<Option<_>>()
            .map(Self)
    }

    fn to_user(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.0.len() * stride::<T>()];
        for (bytes, value) in bytes.chunks_mut(stride::<T>().max(1)).zip(&self.0) {
            // As long as the stride or shorter.
            let _ = value.write_to_prefix(bytes);
        }
        bytes
    }
}

impl<T> Deref for PerCpu<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for PerCpu<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

/// A map whose keys or values are not of a type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TypeError {
    /// Keys of another size.
    #[error("map {map:?}: its keys have {size} bytes, `{ty}` has {found}")]
    Key {
        /// Name of the map.
        map: String,
        /// Key size of the map.
        size: u32,
        /// The type.
        ty: &'static str,
        /// Bytes that the type has.
        found: usize,
    },
    /// Values of another size.
    #[error("map {map:?}: its values have {size} bytes, `{ty}` has {found}")]
    Value {
        /// Name of the map.
        map: String,
        /// Value size of the map.
        size: u32,
        /// The type.
        ty: &'static str,
        /// Bytes that the type has.
        found: usize,
    },
    /// One value was asked for, and there is one for each CPU.
    #[error("map {map:?}: it has a value for each CPU, `PerCpu<{ty}>`")]
    PerCpu {
        /// Name of the map.
        map: String,
        /// The type asked for.
        ty: &'static str,
    },
    /// Values of all CPUs were asked for, and there is one.
    #[error("map {map:?}: it has one value for all CPUs, `{ty}`")]
    NotPerCpu {
        /// Name of the map.
        map: String,
        /// The type asked for.
        ty: &'static str,
    },
    /// The map has nothing that user space reads and writes by keys: a ring buffer.
    #[error("map {map:?}: it has neither keys nor values")]
    NoElements {
        /// Name of the map.
        map: String,
    },
}

/// User space's side of a map with keys and values of Rust types, from [`Map::typed`]. Errors are those of the operations of
/// [`Map`].
pub struct TypedMap<K, V> {
    map: Arc<Map>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for TypedMap<K, V> {
    fn clone(&self) -> Self {
        Self { map: Arc::clone(&self.map), types: PhantomData }
    }
}

impl<K, V> std::fmt::Debug for TypedMap<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TypedMap").field(&self.map).finish()
    }
}

impl Map {
    /// The map with keys and values of types, whose sizes are compared here once. The values of per-CPU kinds are
    /// [`PerCpu`]; the keys of queues, stacks and Bloom filters are `()`.
    ///
    /// ```
    /// use paceline_maps::{Limits, Map, PerCpu};
    /// use paceline_spec::{MapKind, MapSpec};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let spec = |kind| MapSpec::new("seen", kind, 4, 16, 8);
    /// # let limits = Limits { cpus: 2, memory: 1 << 20 };
    /// # let map = Map::create(&spec(MapKind::Hash), &limits)?;
    /// let seen = map.typed::<u32, [u64; 2]>()?; // packets and bytes by address
    /// seen.insert(&7, &[1, 60])?;
    /// assert_eq!(seen.lookup(&7)?, Some([1, 60]));
    /// assert_eq!(seen.lookup(&8)?, None);
    /// let bytes: u64 = seen.iter()?.map(|(_, [_, bytes])| bytes).sum();
    /// assert_eq!(bytes, 60);
    ///
    /// let error = map.typed::<u32, u32>().unwrap_err();
    /// assert_eq!(error.to_string(), r#"map "seen": its values have 16 bytes, `u32` has 4"#);
    ///
    /// # let map = Map::create(&spec(MapKind::PerCpuHash), &limits)?;
    /// let seen = map.typed::<u32, PerCpu<[u64; 2]>>()?; // of a per-CPU map
    /// seen.insert(&7, &PerCpu(vec![[1, 60], [2, 120]]))?;
    /// let packets: u64 = seen.lookup(&7)?.unwrap_or_default().iter().map(|[packets, _]| packets).sum();
    /// assert_eq!(packets, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`TypeError`] names the map and the sizes.
    pub fn typed<K: Plain, V: MapValue>(self: &Arc<Self>) -> Result<TypedMap<K, V>, TypeError> {
        let spec = self.spec();
        let map = || spec.name.clone();
        let ty = std::any::type_name::<V::One>();
        if self.user_value_size() == 0 {
            return Err(TypeError::NoElements { map: map() });
        }
        if size_of::<K>() != spec.key_size as usize {
            let (ty, found) = (std::any::type_name::<K>(), size_of::<K>());
            return Err(TypeError::Key { map: map(), size: spec.key_size, ty, found });
        }
        match (spec.kind.is_per_cpu(), V::PER_CPU) {
            (true, false) => return Err(TypeError::PerCpu { map: map(), ty }),
            (false, true) => return Err(TypeError::NotPerCpu { map: map(), ty }),
            _ => {}
        }
        if size_of::<V::One>() != spec.value_size as usize {
            let found = size_of::<V::One>();
            return Err(TypeError::Value { map: map(), size: spec.value_size, ty, found });
        }
        Ok(TypedMap { map: Arc::clone(self), types: PhantomData })
    }
}

/// No element is no error where that is what was asked.
fn found<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

impl<K: Plain, V: MapValue> TypedMap<K, V> {
    /// The map itself.
    #[must_use]
    pub fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// The value under a key, if there is one ([`Map::lookup`]).
    ///
    /// # Errors
    /// `EPERM`: the map is write-only for user space. `EOPNOTSUPP`, `ENOTSUPP`: the kind has nothing to read.
    pub fn lookup(&self, key: &K) -> Result<Option<V>, Errno> {
        found(self.map.lookup(key.as_bytes()).and_then(|bytes| value(&bytes)))
    }

    /// Sets the value under a key ([`Map::insert`]); adds one to a queue, stack or Bloom filter.
    ///
    /// # Errors
    /// As [`Map::insert`]; `EINVAL` for [`PerCpu`] values of another number of CPUs.
    pub fn insert(&self, key: &K, value: &V) -> Result<(), Errno> {
        self.update_with(key, value, UpdateMode::Any)
    }

    /// Sets the value under a key if the mode allows it ([`Map::update_with`]).
    ///
    /// # Errors
    /// As [`Map::update_with`]; `EINVAL` for [`PerCpu`] values of another number of CPUs.
    pub fn update_with(&self, key: &K, value: &V, mode: UpdateMode) -> Result<(), Errno> {
        self.map.update_with(key.as_bytes(), &value.to_user(), mode)
    }

    /// Removes the element of a key ([`Map::delete`]); false where there was none.
    ///
    /// # Errors
    /// `EPERM`: the map is read-only for user space, or frozen. `EINVAL`: an array.
    pub fn delete(&self, key: &K) -> Result<bool, Errno> {
        Ok(found(self.map.delete(key.as_bytes()))?.is_some())
    }

    /// Removes the element of a key and gives its value ([`Map::lookup_and_delete`]).
    ///
    /// # Errors
    /// `EPERM`: user space may not read or not write. `ENOTSUPP`: no hash.
    pub fn lookup_and_delete(&self, key: &K) -> Result<Option<V>, Errno> {
        found(self.map.lookup_and_delete(key.as_bytes()).and_then(|bytes| value(&bytes)))
    }

    /// Takes the next value of a queue or stack ([`Map::pop`]).
    ///
    /// # Errors
    /// `EPERM`: user space may not read or not write. `ENOTSUPP`: another kind.
    pub fn pop(&self) -> Result<Option<V>, Errno> {
        found(self.map.pop().and_then(|bytes| value(&bytes)))
    }

    /// All keys ([`Map::keys`]).
    ///
    /// # Errors
    /// `EPERM`: the map is write-only for user space.
    pub fn keys(&self) -> Result<impl Iterator<Item = K> + '_, Errno> {
        Ok(self.map.keys()?.filter_map(|key| K::read_from_bytes(&key).ok()))
    }

    /// All elements that can be read, without those that go meanwhile.
    ///
    /// # Errors
    /// `EPERM`: the map is write-only for user space.
    pub fn iter(&self) -> Result<impl Iterator<Item = (K, V)> + '_, Errno> {
        Ok(self.keys()?.filter_map(|key| self.lookup(&key).ok().flatten().map(|value| (key, value))))
    }

    /// All elements, each removed as it is given ([`Map::drain`]).
    ///
    /// # Errors
    /// `EPERM`: user space may not read or not write. `ENOTSUPP`: the kind has no such batches.
    pub fn drain(&self) -> Result<impl Iterator<Item = (K, V)> + '_, Errno> {
        let typed =
            |(key, value): (Vec<u8>, Vec<u8>)| Some((K::read_from_bytes(&key).ok()?, V::from_user(&value)?));
        Ok(self.map.drain()?.filter_map(typed))
    }

    /// Sets one element after the other until one is refused ([`Map::update_batch`]), and says how many those are.
    ///
    /// # Errors
    /// As [`Map::update_batch`].
    pub fn update_batch<'a>(
        &self,
        elements: impl IntoIterator<Item = (&'a K, &'a V)>,
        flags: u64,
    ) -> Result<usize, BatchError>
    where
        K: 'a,
        V: 'a,
    {
        self.map
            .update_batch(elements.into_iter().map(|(key, value)| (key.as_bytes(), value.to_user())), flags)
    }

    /// Removes one element after the other until one is refused ([`Map::delete_batch`]), and says how many those are.
    ///
    /// # Errors
    /// As [`Map::delete_batch`].
    pub fn delete_batch<'a>(&self, keys: impl IntoIterator<Item = &'a K>) -> Result<usize, BatchError>
    where
        K: 'a,
    {
        self.map.delete_batch(keys.into_iter().map(K::as_bytes))
    }
}

/// The sizes were compared when the types were given.
fn value<V: MapValue>(bytes: &[u8]) -> Result<V, Errno> {
    V::from_user(bytes).ok_or(Errno::EINVAL)
}
