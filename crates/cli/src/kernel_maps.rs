//! Contents of maps, copied into the kernel and back. Whatever has no copy there is an error that names its map.

use paceline::{Collection, ElementKind, Errno, Map, MapKind, MapSpec};
use paceline_kernel::{Contents, KernelError, KernelObject, LoadError, Map as KernelMap};

use crate::common::failure::CommandError;

/// A map has contents that the kernel's does not get, or the reverse.
#[derive(Debug, thiserror::Error)]
#[error("--kernel: map {map}: {problem}")]
pub(crate) struct CopyError {
    map: String,
    problem: Problem,
}

impl CommandError for CopyError {}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("{0}")]
    Kernel(KernelError),
    #[error("a map for an entry: {0}")]
    Inner(LoadError),
    #[error(
        "entry {0:?} is not taken by the kernel, which has another interface or CPU of this number, or none: {1}"
    )]
    Target(Vec<u8>, KernelError),
    #[error("its entries have programs, which are not in the kernel")]
    EntryPrograms,
    #[error("its sockets are not in the kernel")]
    Sockets,
    #[error("what was put into a bloom filter cannot be listed")]
    Bloom,
    #[error("user space may not read it")]
    Unreadable(Errno),
    #[error("what the kernel's has is refused by its copy: {0}")]
    Back(Errno),
}

impl From<KernelError> for Problem {
    fn from(error: KernelError) -> Self {
        Self::Kernel(error)
    }
}

/// Copies of the maps of a collection, with those that are in maps of maps.
#[derive(Debug, Default)]
pub(crate) struct KernelMaps {
    /// Numbers of ours, which have no name, and the kernel's.
    inner: Vec<(u32, KernelMap)>,
}

impl KernelMaps {
    /// Gives the kernel's maps the contents of ours, but for programs.
    pub(crate) fn fill(
        collection: &Collection,
        object: &mut KernelObject,
        cpu: usize,
    ) -> Result<Self, CopyError> {
        let mut maps = Self::default();
        for (index, ours) in collection.maps().iter().enumerate() {
            let filled = match ours.spec().inner.as_deref() {
                Some(template) => maps.fill_outer(collection, object, (index, ours, template), cpu),
                None => object.maps.get(index).map_or(Ok(()), |theirs| fill(ours, theirs, cpu)),
            };
            filled.map_err(|problem| CopyError { map: ours.spec().name.clone(), problem })?;
        }
        Ok(maps)
    }

    /// Puts maps into a map of maps: those of the object, and copies of others.
    fn fill_outer(
        &mut self,
        collection: &Collection,
        object: &mut KernelObject,
        (index, ours, template): (usize, &Map, &MapSpec),
        cpu: usize,
    ) -> Result<(), Problem> {
        for key in ours.keys().map_err(Problem::Unreadable)? {
            let Ok(value) = ours.lookup(&key) else { continue };
            let id = value.try_into().map(u32::from_ne_bytes).map_err(|_| Problem::Back(Errno::EINVAL))?;
            let named = collection.maps().iter().position(|map| map.id() == id);
            if named.is_none() && self.inner.iter().all(|(known, _)| *known != id) {
                let map = Map::by_id(id).ok_or(Problem::Unreadable(Errno::ENOENT))?;
                // The types are those of the template; sizes may be the map's own.
                let spec = MapSpec { max_entries: map.spec().max_entries, ..template.clone() };
                let made = object.create_map(&spec).map_err(Problem::Inner)?;
                fill(&map, &made, cpu)?;
                self.inner.push((id, made));
            }
            let own = || self.inner.iter().find(|(known, _)| *known == id).map(|(_, map)| map);
            let inner = named.and_then(|named| object.maps.get(named)).or_else(own);
            if let Some((outer, inner)) = object.maps.get(index).zip(inner) {
                outer.put_map(&key, inner)?;
            }
        }
        Ok(())
    }

    /// Gives our maps the contents of the kernel's, where programs can change these.
    pub(crate) fn read_back(
        &self,
        collection: &Collection,
        object: &KernelObject,
        cpu: usize,
    ) -> Result<(), CopyError> {
        let own =
            collection.maps().iter().zip(&object.maps).map(|(ours, theirs)| (Some(ours.clone()), theirs));
        let inner = self.inner.iter().map(|(id, theirs)| (Map::by_id(*id), theirs));
        for (ours, theirs) in own.chain(inner) {
            // A map that was taken out of the map of maps is gone.
            let Some(ours) = ours else { continue };
            let failed = |problem| CopyError { map: ours.spec().name.clone(), problem };
            read_back(&ours, theirs, cpu).map_err(failed)?;
        }
        Ok(())
    }
}

/// Whether a map holds bytes that programs can change.
fn is_changed(map: &Map) -> bool {
    map.spec().kind.rules().elements == ElementKind::Bytes && !map.is_frozen()
}

fn fill(ours: &Map, theirs: &KernelMap, cpu: usize) -> Result<(), Problem> {
    let (spec, side) = (ours.spec(), ours.for_programs());
    match spec.kind.rules().elements {
        // Frozen maps were given to the kernel with the object.
        ElementKind::Bytes if ours.is_frozen() => Ok(()),
        ElementKind::Bytes if spec.kind.is_queue() => {
            let values = ours.values().map_err(Problem::Unreadable)?;
            values.iter().try_for_each(|value| theirs.update(&[], value, cpu)).map_err(Problem::from)
        }
        ElementKind::Members => {
            if side.has_values() {
                Err(Problem::Bloom)
            } else {
                Ok(())
            }
        }
        ElementKind::Bytes => {
            if side.elements() == Some(0) {
                return Ok(());
            }
            for key in ours.keys().map_err(Problem::Unreadable)? {
                if let Some(value) = value_of(ours, &key) {
                    theirs.update(&key, &value, cpu)?;
                }
            }
            Ok(())
        }
        ElementKind::Devices | ElementKind::Cpus => {
            for key in ours.keys().map_err(Problem::Unreadable)? {
                let Some(value) = value_of(ours, &key) else { continue };
                // Behind the number there is that of a program.
                if value.iter().skip(4).any(|&byte| byte != 0) {
                    return Err(Problem::EntryPrograms);
                }
                let index = key.clone();
                theirs.update(&key, &value, cpu).map_err(|error| Problem::Target(index, error))?;
            }
            Ok(())
        }
        ElementKind::Sockets | ElementKind::XdpSockets => {
            if side.elements().is_some_and(|elements| elements > 0) { Err(Problem::Sockets) } else { Ok(()) }
        }
        // Programs are put there when they are loaded, maps by `fill_outer`; nobody gives records and events before a run.
        ElementKind::Programs | ElementKind::Maps | ElementKind::Events | ElementKind::Records => Ok(()),
    }
}

fn read_back(ours: &Map, theirs: &KernelMap, cpu: usize) -> Result<(), Problem> {
    let kind = ours.spec().kind;
    if !is_changed(ours) {
        return Ok(());
    }
    let Some(contents) = theirs.contents(cpu)? else { return Ok(()) };
    if kind.is_queue() {
        return take_back(ours, theirs, contents, cpu);
    }
    if !kind.is_array() {
        let gone = ours.keys().map_err(Problem::Unreadable)?.filter(|key| !contents.contains_key(key));
        for key in gone.collect::<Vec<_>>() {
            ours.delete(&key).map_err(Problem::Back)?;
        }
    }
    for (key, mut value) in contents {
        value.resize(ours.user_value_size(), 0);
        ours.insert(&key, &value).map_err(Problem::Back)?;
    }
    Ok(())
}

/// Values of a queue or stack can only be seen by taking them: they are put back into the kernel's map.
fn take_back(ours: &Map, theirs: &KernelMap, popped: Contents, cpu: usize) -> Result<(), Problem> {
    while !ours.values().map_err(Problem::Unreadable)?.is_empty() {
        ours.pop().map_err(Problem::Back)?;
    }
    let mut values: Vec<_> = popped.into_values().collect();
    if ours.spec().kind == MapKind::Stack {
        values.reverse();
    }
    for value in values {
        theirs.update(&[], &value, cpu)?;
        ours.push(&value, 0).map_err(Problem::Back)?;
    }
    Ok(())
}

/// The value of the only CPU; `None` for an entry that is not set.
fn value_of(map: &Map, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = map.lookup(key).ok()?;
    value.truncate(map.spec().value_size as usize);
    Some(value)
}
