//! Slots: reference-counted values by key, and an image built from all of them for workers.

use std::collections::BTreeMap;
use std::fmt;

use super::defer::defer_drops;
use super::domain::{Domain, Pin};

use crate::rcu::Rcu;
use crate::sync::lock;
use crate::sync::model::Mutex;

/// Reference-counted values by key, and an image of them that is rebuilt whenever a key is added or removed. Values are cloned
/// under a lock, and dropped under it only while another clone exists.
pub struct Slots<V, I> {
    slots: Mutex<BTreeMap<u64, Slot<V>>>,
    image: Rcu<I>,
}

#[derive(Clone)]
struct Slot<V> {
    value: V,
    users: usize,
}

/// The key to be released has no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no slot {0:#x}")]
pub struct NoSlot(pub u64);

impl<V: Clone + Send + 'static, I: Send + Sync + 'static> Slots<V, I> {
    /// Creates an empty set of slots with its image.
    #[must_use]
    pub fn new(image: I, domain: Domain) -> Self {
        Self { slots: Mutex::new(BTreeMap::new()), image: Rcu::new(image, domain) }
    }

    /// Releases one reference to a slot and adds one to another, atomically: workers find the image from before or after.
    ///
    /// A slot is removed with its last reference. An existing slot keeps its value. `build` creates the image of the values by
    /// increasing key; it is not called if the set of slots stays the same. Returns whether there is a new image.
    ///
    /// # Errors
    /// [`NoSlot`], or the error of `build`. In both cases nothing has changed.
    pub fn update<E: From<NoSlot>>(
        &self,
        old: Option<u64>,
        new: Option<(u64, V)>,
        build: impl FnOnce(Vec<(u64, V)>) -> Result<I, E>,
    ) -> Result<bool, E> {
        self.change(build, |slots| {
            let left = old.map_or(Ok(false), |key| give_up(slots, key))?;
            let came = new.is_some_and(|(key, value)| take(slots, key, value));
            Ok(left || came)
        })
    }

    /// Sets or removes the value of a slot, whatever it was before, likewise atomically.
    ///
    /// # Errors
    /// The error of `build`. In this case nothing has changed.
    pub fn set<E>(
        &self,
        key: u64,
        value: Option<V>,
        build: impl FnOnce(Vec<(u64, V)>) -> Result<I, E>,
    ) -> Result<bool, E> {
        self.change(build, |slots| {
            let left = slots.remove(&key).is_some();
            let came = value.is_some_and(|value| take(slots, key, value));
            Ok(left || came)
        })
    }

    fn change<E>(
        &self,
        build: impl FnOnce(Vec<(u64, V)>) -> Result<I, E>,
        change: impl FnOnce(&mut BTreeMap<u64, Slot<V>>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        // Declared before the lock, and thus dropped after it: dropping a value may call back into this type. This includes values
        // that `build` collects to free memory.
        let _drops = defer_drops();
        let mut changed;
        let mut slots = lock(&self.slots);
        // A copy, so that errors need no rollback.
        changed = slots.clone();
        let other = change(&mut changed)?;
        let old_image = if other {
            let values = changed.iter().map(|(&key, slot)| (key, slot.value.clone())).collect();
            // Under the lock: images are published in the same order as changes of the slots.
            Some(self.image.swap(build(values)?))
        } else {
            None
        };
        std::mem::swap(&mut *slots, &mut changed);
        drop(slots);
        old_image.into_iter().for_each(|old| self.image.retire(old));
        Ok(other)
    }

    /// The image, which stays alive while the worker is pinned.
    ///
    /// # Panics
    /// If the worker belongs to another domain.
    #[inline]
    pub fn image<'a>(&'a self, pin: &'a Pin<'_>) -> &'a I {
        self.image.load(pin)
    }

    /// Calls `with` for each slot, with its key, value and reference count.
    pub fn each(&self, mut with: impl FnMut(u64, &V, usize)) {
        let slots = lock(&self.slots).clone();
        slots.iter().for_each(|(&key, slot)| with(key, &slot.value, slot.users));
    }

    /// Number of slots.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.slots).len()
    }

    /// Whether no slot exists.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The domain whose workers read the image.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        self.image.domain()
    }
}

/// Releases a reference; returns whether it was the last.
fn give_up<V>(slots: &mut BTreeMap<u64, Slot<V>>, key: u64) -> Result<bool, NoSlot> {
    let slot = slots.get_mut(&key).ok_or(NoSlot(key))?;
    slot.users -= 1;
    let last = slot.users == 0;
    if last {
        slots.remove(&key);
    }
    Ok(last)
}

/// Adds a reference; returns whether it is the first.
fn take<V>(slots: &mut BTreeMap<u64, Slot<V>>, key: u64, value: V) -> bool {
    let slot = slots.entry(key).or_insert(Slot { value, users: 0 });
    slot.users += 1;
    slot.users == 1
}

impl<V, I> fmt::Debug for Slots<V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
