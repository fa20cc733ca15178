//! Program arrays, the tables of `bpf_tail_call`: the programs that an object gives to them, and changes while traffic
//! runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use paceline_engine::{InstallError, Program};
use paceline_epoch::defer_drops;
use paceline_isa::{Imm64, Insn};
use paceline_maps::{Map, MapUser};
use paceline_spec::{Errno, InitialValue, MapSpec, ProgramSpec};

use super::collection::Collection;
use super::error::NoProgram;

/// A program cannot be stored in an entry of a program array.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// There is no map of this name.
    #[error("no map {name}; there is: {}", .names.join(", "))]
    NoMap {
        /// The name.
        name: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// The program cannot be loaded.
    #[error(transparent)]
    Program(#[from] NoProgram),
    /// The map does not take it.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The entry cannot be removed.
    #[error("the entry cannot be removed: {0}")]
    Remove(Errno),
}

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
    pub error: Arc<NoProgram>,
}

/// Index of a map in its object, and of an entry in the map.
type Entry = (usize, u32);

/// A program by its number in the process and its name.
type Named = (u32, String);

/// The program arrays of a collection.
#[derive(Clone)]
pub(crate) struct Tables {
    /// Entries that the object names a program for, and nobody has filled or changed.
    pending: Arc<Mutex<BTreeMap<Entry, String>>>,
    /// The programs that were put into entries.
    installed: Arc<Mutex<BTreeMap<Entry, Named>>>,
    /// Whether entries stay empty whose programs need what is not supported.
    leaves_unsupported: bool,
    /// Those that do.
    unfilled: Arc<Mutex<Vec<UnfilledEntry>>>,
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
    fn waiting(&self, map: usize) -> Vec<(u32, String)> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.range((map, 0)..=(map, u32::MAX)).map(|(&(_, index), name)| (index, name.clone())).collect()
    }

    fn put(&self, (position, map): (usize, &Map), index: u32, program: &Program) -> Result<(), InstallError> {
        program.install(map, index)?;
        let mut installed = self.installed.lock().unwrap_or_else(PoisonError::into_inner);
        installed.insert((position, index), (program.id(), program.spec().name.clone()));
        Ok(())
    }

    /// Changes an entry, which is no longer what the object says then. `change` is told whether it was until now.
    fn change<T, E>(
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

/// Whether a program needs what no engine has: an engine that another one could replace is no reason to leave an entry empty.
fn lacks_support(error: &NoProgram) -> bool {
    error.is_unsupported() && !matches!(error, NoProgram::Engine { .. })
}

impl Collection {
    /// Puts a program into an entry of a program array, from where programs that run now tail call it from the next call
    /// on. It may be of another collection, and on another engine.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use paceline::{Burst, FrameMeta, Host, LoadOptions, Object, Verdict};
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/protocols.o");
    /// let collection = Object::open(path)?.load(&LoadOptions::default())?;
    /// let dispatch = collection.program(Some("dispatch"))?;
    /// let drop = collection.program(Some("drop"))?;
    /// collection.install("protocols", 17, drop.program())?; // UDP is dropped from now on
    /// # let mut udp = [0; 60];
    /// # udp[12..14].copy_from_slice(&[8, 0]);
    /// # udp[14] = 0x45;
    /// # udp[23] = 17;
    /// # let mut burst = Burst::default();
    /// # burst.push(&udp, FrameMeta::default())?;
    /// # dispatch.run_burst(&mut burst, &mut Host::default())?;
    /// # assert_eq!(burst.frame(0).verdict(), Verdict::Drop);
    /// assert!(collection.uninstall("protocols", 17)?); // and no more
    /// # dispatch.run_burst(&mut burst, &mut Host::default())?;
    /// # assert_eq!(burst.frame(0).verdict(), Verdict::Pass);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`EntryError::NoMap`], or [`EntryError::Install`]: the map is no program array or used by programs of another
    /// type, or the index is past its end.
    pub fn install(&self, map: &str, index: u32, program: &Program) -> Result<(), EntryError> {
        let (position, map) = self.table(map)?;
        self.tables.change(position, index, |_| Ok(self.tables.put((position, map), index, program)?))
    }

    /// Empties an entry of a program array, so that tail calls to it fail; false if it was empty.
    ///
    /// # Errors
    /// [`EntryError::NoMap`]; [`EntryError::Install`] for a map that is no program array, and an index past its end.
    pub fn uninstall(&self, map: &str, index: u32) -> Result<bool, EntryError> {
        let (position, map) = self.table(map)?;
        let entries = map.for_programs().prog_array().ok_or(InstallError::NoProgramArray)?.len();
        if index as usize >= entries {
            return Err(InstallError::Index { index, entries }.into());
        }
        self.tables.change(position, index, |is_waiting| match map.delete(&index.to_ne_bytes()) {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT) => Ok(is_waiting),
            Err(errno) => Err(EntryError::Remove(errno)),
        })
    }

    /// The name of the program in an entry of a program array, if it came there through this collection.
    #[must_use]
    pub fn installed(&self, map: &str, index: u32) -> Option<String> {
        let (position, map) = self.table(map).ok()?;
        let id = map.for_programs().prog_array()?.program(index)?;
        let installed = self.tables.installed.lock().unwrap_or_else(PoisonError::into_inner);
        installed.get(&(position, index)).filter(|(known, _)| *known == id).map(|(_, name)| name.clone())
    }

    fn table(&self, name: &str) -> Result<(usize, &Arc<Map>), EntryError> {
        let found = self.maps().iter().enumerate().find(|(_, map)| map.spec().name == name);
        found.ok_or_else(|| EntryError::NoMap {
            name: name.to_owned(),
            names: self.maps().iter().map(|map| map.spec().name.clone()).collect(),
        })
    }

    /// Loads the programs that the object gives to the arrays that a program uses, and those that they use, and puts
    /// them there.
    pub(crate) fn fill_tables(
        &self,
        program: &Program,
        load: &dyn Fn(&ProgramSpec) -> Result<Program, NoProgram>,
    ) -> Result<(), NoProgram> {
        let mut loaded = BTreeMap::from([(program.spec().name.clone(), program.clone())]);
        let mut todo: Vec<usize> = self.used_by(program.spec()).collect();
        let mut done = BTreeSet::new();
        while let Some(map) = todo.pop() {
            if !done.insert(map) {
                continue;
            }
            for (index, name) in self.tables.waiting(map) {
                let target = match loaded.get(&name) {
                    Some(target) => Ok(target.clone()),
                    None => self.program_spec(Some(&name)).and_then(load),
                };
                let target = match target {
                    Ok(target) => target,
                    Err(error) if self.tables.leaves_unsupported && lacks_support(&error) => {
                        self.leave_empty(map, index, name, error)?;
                        continue;
                    }
                    Err(error) => return Err(self.entry_error(map, index, error.into())),
                };
                todo.extend(self.used_by(target.spec()));
                self.fill_entry(map, index, &target)?;
                loaded.insert(name, target);
            }
        }
        Ok(())
    }

    fn leave_empty(
        &self,
        map: usize,
        index: u32,
        program: String,
        error: NoProgram,
    ) -> Result<(), NoProgram> {
        let left = self.tables.change(map, index, |_| Ok::<_, NoProgram>(()));
        let name = self.maps().get(map).map(|map| map.spec().name.clone()).unwrap_or_default();
        let entry = UnfilledEntry { map: name, index, program, error: Arc::new(error) };
        self.tables.unfilled.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        left
    }

    /// The entries of program arrays that stay empty, in the order in which programs asked for them
    /// ([`LoadOptions::leaving_unsupported`](crate::LoadOptions::leaving_unsupported)).
    #[must_use]
    pub fn unfilled(&self) -> Vec<UnfilledEntry> {
        self.tables.unfilled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fill_entry(&self, map: usize, index: u32, program: &Program) -> Result<(), NoProgram> {
        let Some(array) = self.maps().get(map) else { return Ok(()) };
        self.tables
            // Somebody may have changed the entry meanwhile.
            .change(map, index, |is_waiting| {
                if is_waiting { self.tables.put((map, array), index, program) } else { Ok(()) }
            })
            .map_err(|error| self.entry_error(map, index, error.into()))
    }

    fn entry_error(&self, map: usize, index: u32, source: EntryError) -> NoProgram {
        let map = self.maps().get(map).map(|map| map.spec().name.clone()).unwrap_or_default();
        NoProgram::Entry { map, index, source: Box::new(source) }
    }

    /// The program arrays that a program names.
    fn used_by(&self, spec: &ProgramSpec) -> impl Iterator<Item = usize> {
        let code = paceline_isa::decode(&spec.insns).ok();
        let named = code.iter().flat_map(|code| code.iter()).filter_map(|(_, insn)| match insn {
            Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => usize::try_from(*index).ok(),
            _ => None,
        });
        let is_table = |map: &usize| self.maps().get(*map).is_some_and(|m| m.spec().kind.holds_programs());
        named.filter(is_table).collect::<BTreeSet<_>>().into_iter()
    }
}
