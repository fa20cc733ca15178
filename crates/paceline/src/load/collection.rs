//! The programs and maps of an object, made and ready.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use paceline_engine::{Engine, LookAhead};
use paceline_maps::{CreateError, CreateErrorKind, FillError, Limits, Map};
use paceline_spec::{Errno, InitialValue, MapSpec, ProgramSpec};

use super::error::{ProgramError, SetupError};
use super::object::Object;
use super::options::LoadOptions;
use super::tables::Tables;
use super::verify::VerifiedProgram;

/// The maps of an object, made and filled, and its programs, to be bound to them.
#[derive(Clone)]
pub struct Collection {
    pub(super) object: Object,
    pub(super) maps: Vec<Arc<Map>>,
    pub(super) missing: Arc<[MissingMap]>,
    /// The names of all programs of the object, also those whose maps are missing.
    pub(super) names: Arc<[String]>,
    pub(super) tables: Tables,
    limits: Limits,
    pub(super) budget: u64,
    pub(super) engine: Engine,
    pub(super) look_ahead: LookAhead,
    /// Programs that were prepared, by name.
    prepared: Arc<Mutex<BTreeMap<String, Arc<Prepared>>>>,
}

/// A program that is verified and compiled once.
pub(crate) type Prepared = Mutex<Option<Arc<VerifiedProgram>>>;

impl std::fmt::Debug for Collection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collection").field("engine", &self.engine()).finish_non_exhaustive()
    }
}

/// A map that could not be made.
#[derive(Debug)]
pub struct MissingMap {
    /// Name of the map.
    pub name: String,
    /// Cause.
    pub error: Arc<SetupError>,
    /// The programs that name it: these cannot be had.
    pub programs: Vec<String>,
}

impl Object {
    /// Makes the object's maps and fills them with the values that the object gives. The programs that it gives to
    /// program arrays come with the first program that uses the array.
    ///
    /// A map that cannot be made is missing from the collection, with the programs that name it
    /// ([`Collection::missing`]); [`Collection::program`] fails for these, and returns the others.
    ///
    /// # Errors
    /// [`SetupError`] names a map that no kernel would make and no program names, also none that was skipped; one of a kind that only
    /// Paceline lacks is missing then.
    pub fn load(&self, options: &LoadOptions) -> Result<Collection, SetupError> {
        self.load_with(options, |_| None)
    }

    /// Like [`Object::load`](crate::Object::load), with existing maps in place of the object's own.
    pub(crate) fn load_with(
        &self,
        options: &LoadOptions,
        existing: impl Fn(&MapSpec) -> Option<Arc<Map>>,
    ) -> Result<Collection, SetupError> {
        let mut maps = Made(Vec::with_capacity(self.maps().len()));
        let mut own = Vec::new();
        for (index, spec) in self.maps().iter().enumerate() {
            let map = match existing(spec) {
                Some(map) => Ok(map),
                None => {
                    own.push((index, spec));
                    Map::create(spec, &options.limits).map_err(|error| Arc::new(error.into()))
                }
            };
            maps.0.push(map);
        }
        // Maps of maps come last: their inner maps may be missing.
        own.sort_by_key(|(_, spec)| spec.inner.is_some());
        own.into_iter().for_each(|(index, spec)| maps.fill(index, spec));
        self.collected(options, maps)
    }

    /// The programs that a name stands for: the one of that name, or all of them.
    ///
    /// # Errors
    /// [`ProgramError`] if the object has no such program.
    pub fn programs_named(&self, name: Option<&str>) -> Result<Vec<&ProgramSpec>, ProgramError> {
        let Some(name) = name else {
            let all: Vec<_> = self.programs().iter().collect();
            return if all.is_empty() { Err(self.without_programs()) } else { Ok(all) };
        };
        let names = || self.programs().iter().map(|program| program.name.clone()).collect();
        self.program(name).map(|program| vec![program]).ok_or_else(|| self.no_program(name, names()))
    }

    /// Causes why no program exists.
    pub(super) fn without_programs(&self) -> ProgramError {
        match self.skipped() {
            [] => ProgramError::None,
            skipped => ProgramError::OtherTypes(skipped.to_vec()),
        }
    }

    /// The error for a missing name, given the names that exist.
    pub(super) fn no_program(&self, name: &str, names: Vec<String>) -> ProgramError {
        match self.skipped().iter().find(|skipped| skipped.name == name) {
            Some(skipped) => ProgramError::Skipped(skipped.clone()),
            None if names.is_empty() => self.without_programs(),
            None => ProgramError::Unknown { name: name.to_owned(), names },
        }
    }

    fn collected(&self, options: &LoadOptions, maps: Made) -> Result<Collection, SetupError> {
        let (object, without) = self.without_maps(|index| matches!(maps.0.get(index), Some(Err(_))));
        let missing = |(index, map): (usize, &Result<_, Arc<SetupError>>)| {
            let programs = without.iter().filter(|(_, maps)| maps.contains(&index));
            Some(MissingMap {
                name: self.maps().get(index)?.name.clone(),
                error: Arc::clone(map.as_ref().err()?),
                programs: programs.map(|(program, _)| program.name.clone()).collect(),
            })
        };
        let missing: Vec<_> = maps.0.iter().enumerate().filter_map(missing).collect();
        // Programs of other types may refer to it: they are not checked.
        let named = |missing: &MissingMap| {
            !missing.programs.is_empty() || !self.skipped().is_empty() || self.is_held(&missing.name)
        };
        let wrong = missing.iter().find(|missing| !named(missing) && !missing.error.is_unsupported());
        if let Some(MissingMap { error, .. }) = wrong {
            return Err(SetupError::Unnamed(Arc::clone(error)));
        }
        let missing = missing.into();
        let maps: Vec<_> = maps.0.into_iter().filter_map(Result::ok).collect();
        let LoadOptions { limits, budget, engine, look_ahead, leaves_unsupported } = *options;
        let tables = Tables::new(object.maps(), &maps, leaves_unsupported);
        let names = self.programs().iter().map(|program| program.name.clone()).collect();
        let prepared = Arc::default();
        Ok(Collection { object, maps, missing, names, tables, limits, budget, engine, look_ahead, prepared })
    }

    /// Whether the object puts a map into another.
    fn is_held(&self, map: &str) -> bool {
        let mut contents = self.maps().iter().flat_map(|spec| &spec.contents);
        contents.any(|(_, value)| match value {
            InitialValue::Map(index) => self.maps().get(*index).is_some_and(|spec| spec.name == map),
            InitialValue::Bytes(_) | InitialValue::Program(_) => false,
        })
    }
}

/// The maps of an object, or why they could not be made.
struct Made(Vec<Result<Arc<Map>, Arc<SetupError>>>);

impl Made {
    /// Fills a map with the object's initial values.
    fn fill(&mut self, index: usize, spec: &MapSpec) {
        let Some(Ok(map)) = self.0.get(index) else { return };
        if let Err(error) = self.filled(map, spec)
            && let Some(map) = self.0.get_mut(index)
        {
            *map = Err(error);
        }
    }

    /// Its maps before its bytes, which may freeze it.
    fn filled(&self, map: &Map, spec: &MapSpec) -> Result<(), Arc<SetupError>> {
        let refused = |source| SetupError::Fill { map: spec.name.clone(), source };
        for (index, (key, value)) in spec.contents.iter().enumerate() {
            let InitialValue::Map(inner) = value else { continue };
            let inner = match self.0.get(*inner) {
                Some(Ok(inner)) => inner,
                Some(Err(error)) => return Err(Arc::clone(error)),
                None => return Err(Arc::new(refused(FillError { index, errno: Errno::EBADF }))),
            };
            map.check_inner(inner).map_err(|source| SetupError::Inner {
                map: spec.name.clone(),
                inner: inner.spec().name.clone(),
                source,
            })?;
            map.insert(key, &inner.id().to_ne_bytes())
                .map_err(|errno| refused(FillError { index, errno }))?;
        }
        Ok(map.fill(&spec.contents).map_err(refused)?)
    }
}

impl Collection {
    /// The object it was made from, without the maps that are [`missing`](Self::missing) and the programs that name them.
    #[must_use]
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// All maps, in the object's order.
    #[must_use]
    pub fn maps(&self) -> &[Arc<Map>] {
        &self.maps
    }

    /// Makes a map such as a map of maps holds, to be put there by its number ([`Map::id`]), which keeps it.
    ///
    /// # Errors
    /// [`CreateErrorKind::NoInner`] for another map, and why there cannot be one more.
    pub fn make_inner(&self, outer: &Map) -> Result<Arc<Map>, CreateError> {
        let spec = outer.spec();
        match &spec.inner {
            Some(inner) => Map::create(inner, &self.limits),
            None => {
                Err(CreateError { name: spec.name.clone(), kind: spec.kind, cause: CreateErrorKind::NoInner })
            }
        }
    }

    /// The maps that could not be made.
    #[must_use]
    pub fn missing(&self) -> &[MissingMap] {
        &self.missing
    }

    /// The engine that its verified programs run on.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// The place of a prepared program, empty until it is made. Whoever holds its lock makes it; others wait.
    pub(crate) fn prepared(&self, name: &str) -> Arc<Prepared> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(prepared.entry(name.to_owned()).or_default())
    }

    /// The map of a name.
    #[must_use]
    pub fn map(&self, name: &str) -> Option<&Arc<Map>> {
        self.maps.iter().find(|map| map.spec().name == name)
    }
}
