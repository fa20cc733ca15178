//! User space's side: the commands of `bpf(2)` on elements, and freezing.

use paceline_spec::{Errno, InitialValue, MapFlags, MapUse};
use thiserror::Error;

use super::base::Map;
use crate::freeze::Writing;
use crate::map_ops::KeySpace;
use crate::mode::{LOCK, UpdateMode};

/// An initial element that the map did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("initial element {index}: {errno}")]
pub struct FillError {
    /// Position in the list.
    pub index: usize,
    /// Cause: `EINVAL` for a wrong size, otherwise the error of [`Map::insert`].
    pub errno: Errno,
}

impl Map {
    /// `BPF_MAP_LOOKUP_ELEM`: a copy of the value, [`user_value_size`](Self::user_value_size) bytes. Special fields, such
    /// as locks, are shown as zeros.
    ///
    /// # Errors
    /// `EPERM`: the map is write-only for user space. `EINVAL`: wrong length. `ENOENT`: no such key.
    /// `EOPNOTSUPP`, `ENOTSUPP`: the kind has nothing to read.
    pub fn lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.check_user_may_read()?;
        if key.len() != self.key_size {
            return Err(Errno::EINVAL);
        }
        let mut value = Vec::new();
        self.storage.get(key, &mut value)?;
        if !self.spec.special.is_empty() {
            self.hide_special(&mut value);
        }
        Ok(value)
    }

    /// [`lookup`](Self::lookup) with `BPF_F_LOCK`: under the element's lock, so that no program that holds the lock changes the value
    /// meanwhile.
    ///
    /// # Errors
    /// `EINVAL` besides: the values have no `bpf_spin_lock`.
    pub fn lookup_locked(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.check_user_may_read()?;
        let lock = self.spec.spin_lock().ok_or(Errno::EINVAL)?;
        if key.len() != self.key_size {
            return Err(Errno::EINVAL);
        }
        let mut value = Vec::new();
        self.storage.get_locked(key, &mut value, lock.offset as usize)?;
        self.hide_special(&mut value);
        Ok(value)
    }

    /// Sets the value under a key, whether there is one or not; adds one to a queue, stack or Bloom filter, whose keys have no bytes.
    ///
    /// # Errors
    /// As for [`update_raw`](Self::update_raw).
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), Errno> {
        self.update_with(key, value, UpdateMode::Any)
    }

    /// Sets the value under a key if the mode allows it.
    ///
    /// # Errors
    /// `EEXIST`: there is one, and the mode is [`UpdateMode::NoExist`]. `ENOENT`: there is none, and it is [`UpdateMode::Exist`].
    /// Others as for [`update_raw`](Self::update_raw).
    pub fn update_with(&self, key: &[u8], value: &[u8], mode: UpdateMode) -> Result<(), Errno> {
        self.update_raw(key, value, mode.flags())
    }

    /// `BPF_MAP_UPDATE_ELEM` with flags as numbers (`BPF_F_LOCK` among them), and [`user_value_size`](Self::user_value_size) bytes.
    /// Special fields, such as locks, are left out: they stay as they are in arrays, and are zero in a new element.
    ///
    /// # Errors
    /// `EPERM`: the map is read-only for user space, or frozen. `EINVAL`: unknown flags or wrong lengths.
    /// `EEXIST`, `ENOENT`, `E2BIG`, `ENOSPC` as for programs; `ENOMEM` after a fifth of a second of waiting for workers. Device, CPU and
    /// program maps refuse entries as the kernel does.
    pub fn update_raw(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        let _writing = self.user_write()?;
        if key.len() != self.key_size || value.len() != self.user_value_size() {
            return Err(Errno::EINVAL);
        }
        if self.key_size == 0 {
            return self.storage.push(value, flags);
        }
        match self.without_special(value) {
            Some(value) if flags & LOCK != 0 => match self.change_locked(key, &value, flags)? {
                true => Ok(()),
                false => self.storage.set_with(key, &value, flags & !LOCK),
            },
            Some(value) => self.storage.set_with(key, &value, flags),
            None => self.storage.set_with(key, value, flags),
        }
    }

    /// `BPF_MAP_DELETE_ELEM`.
    ///
    /// # Errors
    /// `EPERM`: the map is read-only for user space, or frozen. `EINVAL`: an array, or a wrong length. `ENOENT`:
    /// no such key.
    pub fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        let _writing = self.user_write()?;
        if key.len() != self.key_size {
            return Err(Errno::EINVAL);
        }
        self.storage.remove(key)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_ELEM` of a hash: the value, as [`lookup`](Self::lookup) gives it, of an element that is no longer
    /// there.
    ///
    /// # Errors
    /// `EPERM`: user space may not read or not write. `EINVAL`: wrong length. `ENOENT`: no such key. `ENOTSUPP`: another kind.
    pub fn lookup_and_delete(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.check_user_may_read()?;
        let _writing = self.user_write()?;
        if key.len() != self.key_size {
            return Err(Errno::EINVAL);
        }
        let mut value = Vec::new();
        self.storage.take(key, &mut value)?;
        self.hide_special(&mut value);
        Ok(value)
    }

    /// Adds a value to a queue, a stack or a Bloom filter (`BPF_MAP_UPDATE_ELEM` without a key).
    ///
    /// # Errors
    /// `E2BIG`: a full queue or stack, unless the flags have `BPF_EXIST`: then the oldest value goes. `EINVAL`: other flags, or a
    /// wrong length. `EPERM`: the map is read-only for user space, or frozen. `ENOTSUPP`: another kind.
    pub fn push(&self, value: &[u8], flags: u64) -> Result<(), Errno> {
        if !self.spec.kind.has_use(MapUse::Push) {
            return Err(Errno::ENOTSUPP);
        }
        self.update_raw(&[], value, flags)
    }

    /// The next value of a queue or stack, which stays there (`BPF_MAP_LOOKUP_ELEM` without a key).
    ///
    /// # Errors
    /// `ENOENT`: it is empty. `EPERM`: the map is write-only for user space. `ENOTSUPP`: another kind.
    pub fn peek(&self) -> Result<Vec<u8>, Errno> {
        if !self.spec.kind.is_queue() {
            return Err(Errno::ENOTSUPP);
        }
        self.lookup(&[])
    }

    /// Whether a Bloom filter may have a value (`BPF_MAP_LOOKUP_ELEM` without a key); false if the value was never pushed, with
    /// few exceptions.
    ///
    /// # Errors
    /// `EINVAL`: wrong length. `EPERM`: the map is write-only for user space. `ENOTSUPP`: another kind.
    pub fn may_contain(&self, value: &[u8]) -> Result<bool, Errno> {
        self.check_user_may_read()?;
        if !self.spec.kind.tests_membership() {
            return Err(Errno::ENOTSUPP);
        }
        if value.len() != self.value_size {
            return Err(Errno::EINVAL);
        }
        match self.storage.peek(&mut value.to_vec()) {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Removes and returns the next value of a queue or stack (`BPF_MAP_LOOKUP_AND_DELETE_ELEM` without a key).
    ///
    /// # Errors
    /// `ENOENT`: it is empty. `ENOTSUPP`: another kind. `EPERM`: user space may not read or not write.
    pub fn pop(&self) -> Result<Vec<u8>, Errno> {
        self.check_user_may_read()?;
        let _writing = self.user_write()?;
        if !self.spec.kind.has_use(MapUse::Pop) {
            return Err(Errno::ENOTSUPP);
        }
        let mut value = vec![0; self.value_size];
        self.storage.pop(&mut value)?;
        Ok(value)
    }

    /// The values of a queue or stack, the oldest first. They stay there.
    ///
    /// # Errors
    /// `EPERM`: the map is write-only for user space. `ENOTSUPP`: another kind.
    pub fn values(&self) -> Result<Vec<Vec<u8>>, Errno> {
        self.check_user_may_read()?;
        let mut values = Vec::new();
        self.storage.values(&mut values)?;
        Ok(values)
    }

    /// All keys, arrays by rising index. A key that is there from the first step to the last comes exactly once,
    /// whatever happens to others meanwhile.
    ///
    /// # Errors
    /// `EPERM`: the map is write-only for user space.
    pub fn keys(&self) -> Result<Keys<'_>, Errno> {
        self.check_user_may_read()?;
        Ok(Keys::new(self))
    }

    /// `BPF_MAP_GET_NEXT_KEY`: the key after this one in the map's order, the first one for `None` and for a key
    /// that does not exist. [`keys`](Self::keys) does not start over when its key is deleted.
    ///
    /// # Errors
    /// `EPERM`: the map is write-only for user space. `EINVAL`: wrong length. `ENOENT`: it was the last.
    pub fn next_key(&self, after: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.check_user_may_read()?;
        if let KeySpace::None(errno) = self.storage.key_space() {
            return Err(errno);
        }
        if after.is_some_and(|key| key.len() != self.key_size) {
            return Err(Errno::EINVAL);
        }
        self.storage.next_key(after).ok_or(Errno::ENOENT)
    }

    /// Sets the initial elements that are plain bytes, zero-filled up to the value size, and freezes the map if its specification
    /// says so. Elements that are maps or programs are left to the caller, which can resolve them.
    ///
    /// # Errors
    /// The first element that the map refuses; earlier ones stay. `EPERM`: the map is already frozen. `EBUSY` after the last element:
    /// another thread is writing to the map that is to be frozen.
    pub fn fill(&self, contents: &[(Vec<u8>, InitialValue)]) -> Result<(), FillError> {
        for (index, (key, value)) in contents.iter().enumerate() {
            let InitialValue::Bytes(bytes) = value else { continue };
            self.fill_one(key, bytes).map_err(|errno| FillError { index, errno })?;
        }
        if self.spec.frozen {
            self.freeze.freeze().map_err(|errno| FillError { index: contents.len(), errno })?;
        }
        Ok(())
    }

    fn fill_one(&self, key: &[u8], bytes: &[u8]) -> Result<(), Errno> {
        let _writing = self.freeze.write()?;
        if key.len() != self.key_size || bytes.len() > self.user_value_size() {
            return Err(Errno::EINVAL);
        }
        let mut value = bytes.to_vec();
        value.resize(self.user_value_size(), 0);
        self.hide_special(&mut value);
        self.storage.set(key, &value, UpdateMode::Any)
    }

    /// `BPF_MAP_FREEZE`: user space can no longer change the map; programs still can. Concurrent writes are in the map when this
    /// returns, or refused.
    ///
    /// # Errors
    /// `EPERM`: the map is read-only for user space, or frozen. `EBUSY`: another thread is writing to it.
    pub fn freeze(&self) -> Result<(), Errno> {
        self.check_user_access()?;
        self.freeze.freeze()
    }

    /// Whether [`freeze`](Self::freeze) has been called.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.freeze.is_frozen()
    }

    fn check_user_may_read(&self) -> Result<(), Errno> {
        if self.spec.flags.contains(MapFlags::WRONLY) { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Whether user space may write as far as the flags go.
    fn check_user_access(&self) -> Result<(), Errno> {
        if self.spec.flags.contains(MapFlags::RDONLY) { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// Lets user space write, and keeps others from freezing the map until it is done.
    pub(crate) fn user_write(&self) -> Result<Writing<'_>, Errno> {
        self.check_user_access()?;
        self.freeze.write()
    }

    pub(crate) fn check_user_may_write(&self) -> Result<(), Errno> {
        self.user_write().map(drop)
    }
}

/// The keys of a map, from [`Map::keys`].
pub struct Keys<'a> {
    map: &'a Map,
    cursor: KeyCursor,
}

impl std::fmt::Debug for Keys<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl<'a> Keys<'a> {
    pub(super) fn new(map: &'a Map) -> Self {
        Self { map, cursor: KeyCursor::default() }
    }
}

impl Iterator for Keys<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.cursor.next(self.map).map(<[u8]>::to_vec)
    }
}

/// A place in the keys of a map, which are copied in parts of a few thousand, however large the map is.
#[derive(Default)]
pub struct KeyCursor {
    part: usize,
    keys: Vec<u8>,
    next: usize,
}

impl std::fmt::Debug for KeyCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyCursor").finish_non_exhaustive()
    }
}

impl KeyCursor {
    /// The next key of the map, which must be the same each time for the keys to be those of one.
    pub fn next(&mut self, map: &Map) -> Option<&[u8]> {
        while self.next >= self.keys.len() {
            self.keys.clear();
            self.next = 0;
            if !map.storage.keys(self.part, &mut self.keys) {
                return None;
            }
            self.part += 1;
        }
        let start = self.next;
        self.next = start.checked_add(map.key_size)?;
        self.keys.get(start..self.next)
    }
}
