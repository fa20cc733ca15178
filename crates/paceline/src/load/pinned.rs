//! Maps that outlive a program or serve several: shared between objects, and kept when an object is replaced.
//!
//! A map is kept across a replacement if everything that a program can observe of it agrees.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paceline_btf::{Btf, Type};
use paceline_epoch::defer_drops;
use paceline_maps::Map;
use paceline_spec::{MapSpec, Pinning};

use super::collection::Collection;
use super::difference::{Difference, difference, shape_difference};
use super::error::SetupError;
use super::object::Object;
use super::options::LoadOptions;

/// Names, places and types of the global variables in a map; `None` for other maps.
fn variables(object: &Object, spec: &MapSpec) -> Option<Vec<(String, u32, u32, String)>> {
    let btf: &Btf = object.btf()?;
    let Type::DataSection(section) = btf.get(spec.value_type)? else { return None };
    let variable = |var: &paceline_btf::SectionVar| {
        let ty = match btf.get(var.ty) {
            Some(Type::Var { ty, .. }) => btf.c_name(*ty),
            _ => String::new(),
        };
        (btf.type_name(var.ty).to_owned(), var.offset, var.size, ty)
    };
    Some(section.vars.iter().map(variable).collect())
}

/// Whether a map is a section of global data, whose meaning is known by the types of its variables alone.
fn is_section(spec: &MapSpec) -> bool {
    spec.name.starts_with('.')
}

impl Object {
    /// Loads the object with maps of others in the place of its own, by their names in this object. What the object
    /// itself would put into them is left out.
    ///
    /// # Errors
    /// [`SetupError`]; maps that are used in the place of others must be like them in all that a program can see.
    pub fn load_sharing(
        &self,
        options: &LoadOptions,
        shared: &BTreeMap<String, Arc<Map>>,
    ) -> Result<Collection, SetupError> {
        PinnedMaps::new().load_with(self, options, shared, None).map(|(collection, _)| collection)
    }

    /// Loads the object in the place of another, with the other's maps where name and shape agree, so that their contents
    /// survive. Also gives the names of the maps that were kept.
    ///
    /// Constants, and the programs in program arrays, are part of the programs and come from this object. Global
    /// variables are kept if all variables of their section are where they were and of the same types.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn load_after(
        &self,
        options: &LoadOptions,
        before: &Collection,
    ) -> Result<(Collection, Vec<String>), SetupError> {
        PinnedMaps::new().load_with(self, options, &BTreeMap::new(), Some(before))
    }
}

/// Checks that maps can be used in the place of those of their names.
fn check_shared(object: &Object, shared: &BTreeMap<String, Arc<Map>>) -> Result<(), SetupError> {
    for (name, map) in shared {
        let spec = object.map(name).ok_or_else(|| SetupError::NoMap {
            map: name.clone(),
            names: object.maps().iter().map(|spec| spec.name.clone()).collect(),
        })?;
        let section = is_section(spec).then_some(Difference::Variables);
        if let Some(difference) = difference(spec, map.spec()).or(section) {
            return Err(SetupError::Differs { map: name.clone(), difference });
        }
    }
    Ok(())
}

/// The map of an earlier collection that can be kept as the one of an object that takes its place.
fn kept(object: &Object, spec: &MapSpec, before: &Collection) -> Option<Arc<Map>> {
    let map = before.map(&spec.name)?;
    let agrees = difference(spec, map.spec()).is_none();
    let theirs = before.object().map(&spec.name)?;
    let is_same = !is_section(spec)
        || variables(object, spec).is_some_and(|ours| Some(ours) == variables(before.object(), theirs));
    (agrees && is_same).then(|| Arc::clone(map))
}

/// Objects that are loaded together: a map that several of them pin by name (`LIBBPF_PIN_BY_NAME`) is one, as in a directory of
/// the kernel's BPF file system. It stays as long as the instance, whether an object has it or not. Clones are the same
/// instance.
///
/// ```
/// use paceline::{PinnedMaps, LoadOptions, Object, Pinning};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
/// # let mut counter = Object::open(path)?;
/// # counter.specs_mut().maps.iter_mut().for_each(|map| map.pinning = Pinning::ByName);
/// # let name = counter.maps()[0].name.clone();
/// let instance = PinnedMaps::new();
/// let first = instance.load(&counter, &LoadOptions::default())?;
/// let second = instance.load(&counter, &LoadOptions::default())?;
/// assert_eq!(first.maps()[0].id(), second.maps()[0].id());
/// assert_eq!(instance.pinned(&name).map(|map| map.id()), Some(first.maps()[0].id()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct PinnedMaps {
    pinned: Arc<Mutex<BTreeMap<String, Arc<Map>>>>,
}

impl PinnedMaps {
    /// One in which nothing is pinned.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads an object with the maps that are pinned under the names of those it pins, and pins the others. What the object
    /// itself would put into a map that was pinned is left out.
    ///
    /// # Errors
    /// [`SetupError`]: [`Pinned`](SetupError::Pinned) for a map that is pinned and of another shape, as libbpf refuses it.
    /// Nothing is pinned then.
    pub fn load(&self, object: &Object, options: &LoadOptions) -> Result<Collection, SetupError> {
        self.load_with(object, options, &BTreeMap::new(), None).map(|(collection, _)| collection)
    }

    /// Loads an object with maps of others instead of its own, as [`Object::load_sharing`] does, and with maps of another collection
    /// that it replaces, as [`Object::load_after`] does. Also returns the names of the maps that were kept.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn load_with(
        &self,
        object: &Object,
        options: &LoadOptions,
        shared: &BTreeMap<String, Arc<Map>>,
        before: Option<&Collection>,
    ) -> Result<(Collection, Vec<String>), SetupError> {
        check_shared(object, shared)?;
        // Declared before the lock, and dropped after it: what is freed to make room may come back here.
        let _drops = defer_drops();
        let mut pins = self.lock();
        let is_pinned = |spec: &MapSpec| spec.pinning == Pinning::ByName && !shared.contains_key(&spec.name);
        for spec in object.maps().iter().filter(|spec| is_pinned(spec)) {
            let found = pins.get(&spec.name).and_then(|map| shape_difference(spec, map.spec()));
            if let Some(difference) = found {
                return Err(SetupError::Pinned { map: spec.name.clone(), difference });
            }
        }
        let existing = |spec: &MapSpec| {
            let pinned = || pins.get(&spec.name).filter(|_| is_pinned(spec)).cloned();
            let kept = || before.and_then(|before| kept(object, spec, before));
            shared.get(&spec.name).cloned().or_else(pinned).or_else(kept)
        };
        let collection = object.load_with(options, existing)?;
        let maps = || collection.object().maps().iter().zip(collection.maps());
        let pin = maps().filter(|(spec, _)| is_pinned(spec));
        pins.extend(pin.map(|(spec, map)| (spec.name.clone(), Arc::clone(map))));
        let is_kept = |spec: &MapSpec, map: &Arc<Map>| {
            before.and_then(|before| before.map(&spec.name)).is_some_and(|old| Arc::ptr_eq(old, map))
        };
        let names = maps().filter(|(spec, map)| is_kept(spec, map)).map(|(spec, _)| spec.name.clone());
        let names = names.collect();
        Ok((collection, names))
    }

    /// The map that is pinned under a name.
    #[must_use]
    pub fn pinned(&self, name: &str) -> Option<Arc<Map>> {
        self.lock().get(name).cloned()
    }

    /// The names that maps are pinned under.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Takes a name away: objects that have the map keep it, and those that are loaded from now on get another. Gives the map.
    pub fn unpin(&self, name: &str) -> Option<Arc<Map>> {
        self.lock().remove(name)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Map>>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
