//! Many elements in one call (`BPF_MAP_LOOKUP_BATCH` and its like, `kernel/bpf/syscall.c`).

use paceline_spec::Errno;
use thiserror::Error;

use crate::map::{Keys, Map};
use crate::map_ops::Batches;
use crate::mode::LOCK;

/// Error of a batch that ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("after {done} elements: {errno}")]
pub struct BatchError {
    /// Number of elements before the error.
    pub done: usize,
    /// Error of the next element, or of the whole batch.
    pub errno: Errno,
}

impl Map {
    /// All elements, as [`keys`](Self::keys) and [`lookup`](Self::lookup) give them, without those that go meanwhile. Take as many at
    /// a time as a batch is to have: `map.elements()?.by_ref().take(n)` (`BPF_MAP_LOOKUP_BATCH`).
    ///
    /// # Errors
    /// `EPERM`: the map is write-only for user space. `ENOTSUPP`: the kind has no such batches.
    pub fn elements(&self) -> Result<Elements<'_>, Errno> {
        let keys = self.keys()?;
        self.check_batches(Batches::Update)?;
        Ok(Elements { map: self, keys, take: false })
    }

    /// All elements, each removed as it is returned (`BPF_MAP_LOOKUP_AND_DELETE_BATCH`): look-up and delete are one step, so that no update
    /// of a program is lost between them.
    ///
    /// # Errors
    /// `EPERM`: user space may not read or not write. `ENOTSUPP`: the kind has no such batches.
    pub fn drain(&self) -> Result<Elements<'_>, Errno> {
        let keys = self.keys()?;
        self.check_user_may_write()?;
        self.check_batches(Batches::Take)?;
        Ok(Elements { map: self, keys, take: true })
    }

    /// Sets one element after the other until one is refused (`BPF_MAP_UPDATE_BATCH`), and says how many those are.
    ///
    /// # Errors
    /// The error of [`update_raw`](Self::update_raw), with the number of elements before it. `EINVAL`: flags other than `BPF_F_LOCK`.
    /// `ENOTSUPP`: the kind has no such batches.
    pub fn update_batch<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        elements: impl IntoIterator<Item = (K, V)>,
        flags: u64,
    ) -> Result<usize, BatchError> {
        let allowed = self.check_user_may_write().and_then(|()| self.check_batches(Batches::Update));
        let allowed = allowed.and(if flags & !LOCK == 0 { Ok(()) } else { Err(Errno::EINVAL) });
        allowed.map_err(|errno| BatchError { done: 0, errno })?;
        one_by_one(elements, |(key, value)| self.update_raw(key.as_ref(), value.as_ref(), flags))
    }

    /// Removes one element after the other until one is refused (`BPF_MAP_DELETE_BATCH`), and says how many those are.
    ///
    /// # Errors
    /// The error of [`delete`](Self::delete), with the number of elements before it: `ENOENT` for a missing key.
    /// `ENOTSUPP`: the kind has no such batches.
    pub fn delete_batch<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<usize, BatchError> {
        let allowed = self.check_user_may_write().and_then(|()| self.check_batches(Batches::Delete));
        allowed.map_err(|errno| BatchError { done: 0, errno })?;
        one_by_one(keys, |key| self.delete(key.as_ref()))
    }

    fn check_batches(&self, needed: Batches) -> Result<(), Errno> {
        if self.batches() >= needed { Ok(()) } else { Err(Errno::ENOTSUPP) }
    }
}

fn one_by_one<T>(
    items: impl IntoIterator<Item = T>,
    mut each: impl FnMut(T) -> Result<(), Errno>,
) -> Result<usize, BatchError> {
    let mut done = 0;
    for item in items {
        each(item).map_err(|errno| BatchError { done, errno })?;
        done += 1;
    }
    Ok(done)
}

/// Elements of a map, from [`Map::elements`] and [`Map::drain`].
pub struct Elements<'a> {
    map: &'a Map,
    keys: Keys<'a>,
    take: bool,
}

impl std::fmt::Debug for Elements<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elements").finish_non_exhaustive()
    }
}

impl Iterator for Elements<'_> {
    /// A key, and its value as [`Map::lookup`] gives it.
    type Item = (Vec<u8>, Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        let Self { map, keys, take } = self;
        keys.find_map(|key| {
            let value = if *take { map.lookup_and_delete(&key) } else { map.lookup(&key) };
            value.ok().map(|value| (key, value))
        })
    }
}
