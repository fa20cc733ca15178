//! Slots: what several users share, one for each key, counted; and what is made of all of them, for workers to find.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Domain, Pin, defer_drops};

use crate::rcu::Rcu;
use crate::sync::lock;
use crate::sync::model::Mutex;

/// Counted values by key, and an image of them that is replaced whenever a key comes or goes. Values are cloned under a lock, and
/// dropped there only while another clone is left.
pub struct Slots<V, I> {
    slots: Mutex<BTreeMap<u64, Slot<V>>>,
    image: Rcu<I>,
}

#[derive(Clone)]
struct Slot<V> {
    value: V,
    users: usize,
}

/// A key to be given up has no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no slot {0:#x}")]
pub struct NoSlot(pub u64);

impl<V: Clone + Send + 'static, I: Send + Sync + 'static> Slots<V, I> {
    /// No slots, and their image.
    #[must_use]
    pub fn new(image: I, domain: Domain) -> Self {
        Self { slots: Mutex::new(BTreeMap::new()), image: Rcu::new(image, domain) }
    }

    /// One user less of a slot and one more of another, in one step: workers find the image of before or that of after.
    ///
    /// The last user takes the slot along. A slot that there is already keeps its value. `build` makes the image of the values
    /// by ascending key; it is not asked where the slots stay the same. Tells whether there is a new image.
    ///
    /// # Errors
    /// [`NoSlot`], or what `build` says. Nothing has changed then.
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

    /// Puts a value into a slot, whatever was there, or empties it, likewise in one step.
    ///
    /// # Errors
    /// What `build` says. Nothing has changed then.
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
        // Declared before the lock, and dropped after it: whoever drops a value may come back here. That goes for what `build`
        // collects to find room.
        let _drops = defer_drops();
        let mut changed;
        let mut slots = lock(&self.slots);
        // A copy, so that nothing has to be undone.
        changed = slots.clone();
        let other = change(&mut changed)?;
        let old_image = if other {
            let values = changed.iter().map(|(&key, slot)| (key, slot.value.clone())).collect();
            // Under the lock: images follow each other as the slots do.
            Some(self.image.swap(build(values)?))
        } else {
            None
        };
        std::mem::swap(&mut *slots, &mut changed);
        drop(slots);
        old_image.into_iter().for_each(|old| self.image.retire(old));
        Ok(other)
    }

    /// The image, which stays as long as the worker is pinned.
    ///
    /// # Panics
    /// If the worker belongs to another domain.
    #[inline]
    pub fn image<'a>(&'a self, pin: &'a Pin<'_>) -> &'a I {
        self.image.load(pin)
    }

    /// Calls `with` for each slot, with its key, its value and its users.
    pub fn each(&self, mut with: impl FnMut(u64, &V, usize)) {
        let slots = lock(&self.slots).clone();
        slots.iter().for_each(|(&key, slot)| with(key, &slot.value, slot.users));
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.slots).len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The domain whose workers find the image.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        self.image.domain()
    }
}

/// One user less; whether it was the last.
fn give_up<V>(slots: &mut BTreeMap<u64, Slot<V>>, key: u64) -> Result<bool, NoSlot> {
    let slot = slots.get_mut(&key).ok_or(NoSlot(key))?;
    slot.users -= 1;
    let last = slot.users == 0;
    if last {
        slots.remove(&key);
    }
    Ok(last)
}

/// One user more; whether it is the first.
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
