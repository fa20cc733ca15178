//! A map and its model.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fastrand::Rng;
use paceline::{Errno, Map, MapKind};

use super::finding::Finding;

/// A map and its model.
pub(super) struct Table {
    pub(super) map: Arc<Map>,
    pub(super) contents: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) queue: VecDeque<Vec<u8>>,
    pub(super) frozen: bool,
}

/// Key size of all tables in bytes: prefix length and address in tries, otherwise an index.
pub(super) const KEY: usize = 8;

/// The bits of a prefix, zero after its length.
pub(super) fn prefix(len: u32, address: u32) -> Vec<u8> {
    let kept = if len == 0 { 0 } else { address >> (32 - len) << (32 - len) };
    [len.to_ne_bytes(), kept.to_be_bytes()].concat()
}

impl Table {
    pub(super) fn kind(&self) -> MapKind {
        self.map.spec().kind
    }

    pub(super) fn entries(&self) -> usize {
        self.map.spec().max_entries as usize
    }

    pub(super) fn is_array(&self) -> bool {
        matches!(self.kind(), MapKind::Array | MapKind::PerCpuArray)
    }

    pub(super) fn is_queue(&self) -> bool {
        matches!(self.kind(), MapKind::Queue | MapKind::Stack)
    }

    pub(super) fn key(&self, rng: &mut Rng) -> Vec<u8> {
        match self.kind() {
            MapKind::Array | MapKind::PerCpuArray => {
                rng.u32(..=self.map.spec().max_entries).to_ne_bytes().to_vec()
            }
            MapKind::LpmTrie => prefix(rng.u32(0..=32), rng.u32(..) & 0x0f0f_00ff),
            MapKind::Queue | MapKind::Stack => Vec::new(),
            _ => rng.u64(..2 * u64::from(self.map.spec().max_entries)).to_ne_bytes().to_vec(),
        }
    }

    pub(super) fn value(&self, rng: &mut Rng) -> Vec<u8> {
        let mut value = vec![0; self.map.user_value_size()];
        rng.fill(&mut value);
        value
    }

    pub(super) fn has_index(&self, key: &[u8]) -> bool {
        key.try_into().is_ok_and(|bytes| u32::from_ne_bytes(bytes) < self.map.spec().max_entries)
    }

    /// Expected result of `set`.
    pub(super) fn expected(&self, key: &[u8], flags: u64) -> Result<(), Errno> {
        let there = self.contents.contains_key(key);
        if self.frozen {
            return Err(Errno::EPERM);
        }
        if self.is_queue() {
            return if self.queue.len() < self.entries() { Ok(()) } else { Err(Errno::E2BIG) };
        }
        if self.is_array() {
            return match flags {
                _ if !self.has_index(key) => Err(Errno::E2BIG),
                1 => Err(Errno::EEXIST),
                _ => Ok(()),
            };
        }
        match (there, flags, self.contents.len() < self.entries()) {
            (true, 1, _) => Err(Errno::EEXIST),
            (false, 2, _) => Err(Errno::ENOENT),
            (false, _, false) if self.kind() == MapKind::LpmTrie => Err(Errno::ENOSPC),
            (false, _, false) if self.kind() != MapKind::LruHash => Err(Errno::E2BIG),
            _ => Ok(()),
        }
    }

    /// Sets one value; false if stalled workers prevent it.
    pub(super) fn set(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u64,
        may_refuse: bool,
    ) -> Result<bool, String> {
        let (got, expected) = (self.map.update_raw(key, value, flags), self.expected(key, flags));
        if got == Err(Errno::ENOMEM) && expected.is_ok() && may_refuse {
            return Ok(false);
        }
        if got != expected {
            return Err(format!("{:?} set {key:x?} gives {got:?}, not {expected:?}", self.kind()));
        }
        match got {
            Ok(()) if self.is_queue() => self.queue.push_back(value.to_vec()),
            Ok(()) => drop(self.contents.insert(key.to_vec(), value.to_vec())),
            Err(_) => {}
        }
        Ok(true)
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Finding {
        let expected = match self.contents.contains_key(key) {
            _ if self.frozen => Err(Errno::EPERM),
            _ if self.is_array() => Err(Errno::EINVAL),
            true => Ok(()),
            false => Err(Errno::ENOENT),
        };
        let got = self.map.delete(key);
        let evicted = self.kind() == MapKind::LruHash && got == Err(Errno::ENOENT);
        if got != expected && !evicted {
            return Err(format!("{:?} remove {key:x?} gives {got:?}, not {expected:?}", self.kind()));
        }
        if !self.is_array() && !self.frozen {
            self.contents.remove(key);
        }
        Ok(())
    }

    /// Expected result of a look-up.
    pub(super) fn find(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        if self.kind() == MapKind::LpmTrie
            && let Some((len, address)) = key.split_first_chunk()
        {
            let address = address.try_into().map_or(0, u32::from_be_bytes);
            let longest =
                (0..=u32::from_ne_bytes(*len)).rev().find_map(|len| self.contents.get(&prefix(len, address)));
            return longest.cloned().ok_or(Errno::ENOENT);
        }
        match self.contents.get(key) {
            Some(value) => Ok(value.clone()),
            None if self.is_array() && self.has_index(key) => Ok(vec![0; self.map.user_value_size()]),
            None => Err(Errno::ENOENT),
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> Finding {
        let (got, expected) = (self.map.lookup(key), self.find(key));
        let evicted = self.kind() == MapKind::LruHash && got == Err(Errno::ENOENT);
        if got == expected || evicted {
            return Ok(());
        }
        Err(format!("{:?} get {key:x?} gives {got:x?}, not {expected:x?}", self.kind()))
    }

    pub(super) fn pop(&mut self) -> Finding {
        let expected = match self.kind() {
            _ if self.frozen => Err(Errno::EPERM),
            MapKind::Queue => self.queue.pop_front().ok_or(Errno::ENOENT),
            _ => self.queue.pop_back().ok_or(Errno::ENOENT),
        };
        let got = self.map.pop();
        if got == expected {
            Ok(())
        } else {
            Err(format!("{:?} gives {got:x?}, not {expected:x?}", self.kind()))
        }
    }

    /// Checks all elements against the model.
    pub(super) fn compare(&self) -> Finding {
        if self.is_queue() {
            let (got, expected) = (self.map.values(), self.queue.iter().cloned().collect::<Vec<_>>());
            let same = got.as_ref().is_ok_and(|got| *got == expected);
            return if same {
                Ok(())
            } else {
                Err(format!("{:?} has {got:x?}, not {expected:x?}", self.kind()))
            };
        }
        let mut keys: Vec<Vec<u8>> = self.map.keys().map_err(|error| format!("keys: {error:?}"))?.collect();
        keys.sort_unstable();
        let expected: Vec<&Vec<u8>> = self.contents.keys().collect();
        if !self.is_array() && self.kind() != MapKind::LruHash && !keys.iter().eq(expected.iter().copied()) {
            return Err(format!("{:?} has {} keys, not {}", self.kind(), keys.len(), expected.len()));
        }
        keys.iter().try_for_each(|key| self.get(key))
    }
}
