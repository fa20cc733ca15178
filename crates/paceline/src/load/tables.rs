//! Program arrays, the tables of `bpf_tail_call`: which entries wait for a program, and which have one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use paceline_engine::{InstallError, Program};
use paceline_epoch::defer_drops;
use paceline_maps::{Map, MapUser};
use paceline_spec::{InitialValue, MapSpec};

use super::error::ProgramError;

/// An entry of a program array that stays empty, because its program needs what Paceline does not have.
#[derive(Clone, Debug)]
pub struct UnfilledEntry {
    /// Name of the program array.
    pub map: String,
    /// Index in it.
    pub index: u32,
    /// Name of the program.
    pub program: String,
    /// What it needs.
    pub error: Arc<ProgramError>,
}

/// Index of a map in its object, and of an entry in the map.
type Entry = (usize, u32);

/// A program by its number in the process and its name.
type Named = (u32, String);

/// The program arrays of a collection.
#[derive(Clone)]
pub(crate) struct Tables {
    /// Entries that the object names a program for, and nobody has filled or changed.
    pub(super) pending: Arc<Mutex<BTreeMap<Entry, String>>>,
    /// The programs that were put into entries.
    pub(super) installed: Arc<Mutex<BTreeMap<Entry, Named>>>,
    /// Whether entries stay empty whose programs need what is not supported.
    pub(super) leaves_unsupported: bool,
    /// Those that do.
    pub(super) unfilled: Arc<Mutex<Vec<UnfilledEntry>>>,
    /// Keep the entries as long as there is the collection, even without a program.
    _users: Arc<[MapUser]>,
}

impl Tables {
    pub(crate) fn new(specs: &[MapSpec], maps: &[Arc<Map>], leaves_unsupported: bool) -> Self {
        let named = specs.iter().enumerate().flat_map(|(map, spec)| {
            spec.contents.iter().filter_map(move |(key, value)| match value {
                InitialValue::Program(name) => {
                    Some(((map, u32::from_ne_bytes(key.as_slice().try_into().ok()?)), name.clone()))
                }
                InitialValue::Bytes(_) | InitialValue::Map(_) => None,
            })
        });
        Self {
            pending: Arc::new(Mutex::new(named.collect())),
            installed: Arc::default(),
            leaves_unsupported,
            unfilled: Arc::default(),
            _users: maps.iter().filter_map(MapUser::new).collect(),
        }
    }

    /// The entries of a map that wait for their program.
    pub(super) fn waiting(&self, map: usize) -> Vec<(u32, String)> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.range((map, 0)..=(map, u32::MAX)).map(|(&(_, index), name)| (index, name.clone())).collect()
    }

    pub(super) fn put(
        &self,
        (position, map): (usize, &Map),
        index: u32,
        program: &Program,
    ) -> Result<(), InstallError> {
        program.install(map, index)?;
        let mut installed = self.installed.lock().unwrap_or_else(PoisonError::into_inner);
        installed.insert((position, index), (program.id(), program.spec().name.clone()));
        Ok(())
    }

    /// Changes an entry, which is no longer what the object says then. `change` is told whether it was until now.
    pub(super) fn change<T, E>(
        &self,
        map: usize,
        index: u32,
        change: impl FnOnce(bool) -> Result<T, E>,
    ) -> Result<T, E> {
        // Declared before the lock, and dropped after it: what goes may come back here.
        let _drops = defer_drops();
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(pending.contains_key(&(map, index)))?;
        pending.remove(&(map, index));
        Ok(changed)
    }
}
