//! Arenas: vectors that are indexed by a type of their own, so that a value is not taken for a block.

use std::marker::PhantomData;
use std::ops;

/// An index into arenas of one kind.
pub trait Key: Copy + Eq {
    /// The key of a position.
    fn new(index: usize) -> Self;
    /// Its position.
    fn index(self) -> usize;
}

/// Defines a key: a number of 32 bits, shown with a prefix.
macro_rules! key {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $crate::ir::arena::Key for $name {
            #[inline]
            fn new(index: usize) -> Self {
                // An arena of 2^32 items is beyond any program: the verifier takes a million instructions.
                Self(index as u32)
            }

            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

pub(crate) use key;

/// The items of one kind. Keys come from [`push`](Self::push) only and stay valid.
///
/// # Panics
/// Indexing panics for a key of another arena, which only a wrong pass can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arena<K, V> {
    items: Vec<V>,
    key: PhantomData<K>,
}

impl<K, V> Default for Arena<K, V> {
    fn default() -> Self {
        Self { items: Vec::new(), key: PhantomData }
    }
}

impl<K: Key, V> Arena<K, V> {
    /// Adds an item.
    pub fn push(&mut self, item: V) -> K {
        self.items.push(item);
        K::new(self.items.len() - 1)
    }

    /// Makes room for so many more items.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.items.reserve(count);
    }

    /// The item of a key; `None` if the arena has none.
    #[must_use]
    pub fn get(&self, key: K) -> Option<&V> {
        self.items.get(key.index())
    }

    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The keys in the order of the items.
    pub fn keys(&self) -> impl Iterator<Item = K> + use<K, V> {
        (0..self.items.len()).map(K::new)
    }

    /// The items with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.items.iter().enumerate().map(|(index, item)| (K::new(index), item))
    }

    /// The items, in their order.
    pub(crate) fn into_values(self) -> impl Iterator<Item = V> {
        self.items.into_iter()
    }

    /// The items, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.items.iter_mut()
    }
}

impl<K: Key, V> ops::Index<K> for Arena<K, V> {
    type Output = V;

    #[inline]
    fn index(&self, key: K) -> &V {
        &self.items[key.index()]
    }
}

impl<K: Key, V> ops::IndexMut<K> for Arena<K, V> {
    #[inline]
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.items[key.index()]
    }
}

/// Additional data by key, with a default for keys that have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side<K, V> {
    items: Vec<V>,
    default: V,
    key: PhantomData<K>,
}

impl<K: Key, V: Clone + Default> Default for Side<K, V> {
    fn default() -> Self {
        Self::with_default(V::default())
    }
}

impl<K: Key, V: Clone + Default> Side<K, V> {
    /// A table with room for keys below a bound.
    #[must_use]
    pub fn sized(bound: usize) -> Self {
        Self { items: vec![V::default(); bound], default: V::default(), key: PhantomData }
    }
}

impl<K: Key, V: Clone> Side<K, V> {
    /// Makes room for keys below a bound.
    pub(crate) fn reserve(&mut self, bound: usize) {
        self.items.reserve(bound.saturating_sub(self.items.len()));
    }

    /// An empty table with this default.
    #[must_use]
    pub fn with_default(default: V) -> Self {
        Self { items: Vec::new(), default, key: PhantomData }
    }
}

impl<K: Key, V: Clone> Side<K, V> {
    /// Has an item for each key below a bound.
    pub(crate) fn cover(&mut self, bound: usize) {
        if self.items.len() < bound {
            self.grow(bound);
        }
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        // Items for as many keys as there is room for: the next keys are likely to come next.
        self.items.reserve(count - self.items.len());
        self.items.resize(self.items.capacity(), self.default.clone());
    }
}

impl<K: Key, V> ops::Index<K> for Side<K, V> {
    type Output = V;

    #[inline]
    fn index(&self, key: K) -> &V {
        // default: what is not set has the default of the table, by design.
        self.items.get(key.index()).unwrap_or(&self.default)
    }
}

impl<K: Key, V: Clone> ops::IndexMut<K> for Side<K, V> {
    #[inline]
    fn index_mut(&mut self, key: K) -> &mut V {
        if self.items.len() <= key.index() {
            self.grow(key.index() + 1);
        }
        &mut self.items[key.index()]
    }
}

/// Additional data of few keys, with a default for all others.
#[derive(Clone, Debug)]
pub struct Few<K, V> {
    /// One more than the position of the data; 0 for the default.
    places: Side<K, u32>,
    items: Vec<V>,
    default: V,
}

impl<K: Key, V: Default> Default for Few<K, V> {
    fn default() -> Self {
        Self { places: Side::default(), items: Vec::new(), default: V::default() }
    }
}

impl<K: Key, V> ops::Index<K> for Few<K, V> {
    type Output = V;

    #[inline]
    fn index(&self, key: K) -> &V {
        // default: as above.
        self.items.get((self.places[key] as usize).wrapping_sub(1)).unwrap_or(&self.default)
    }
}

impl<K: Key, V: Clone> ops::IndexMut<K> for Few<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        let place = &mut self.places[key];
        if *place == 0 {
            self.items.push(self.default.clone());
            *place = self.items.len() as u32;
        }
        &mut self.items[*place as usize - 1]
    }
}
