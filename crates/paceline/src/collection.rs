//! The programs and maps of an object, made and ready.

use std::sync::Arc;
use std::time::Instant;

use paceline_engine::{DEFAULT_BUDGET, Engine, LoadError as EngineError, LookAhead, Program};
use paceline_maps::{CreateError, CreateErrorKind, FillError, Limits, Map};
use paceline_spec::{Errno, InitialValue, MapSpec, ProgramSpec};

use super::error::{NoProgram, SetupError};
use super::object::Object;
use super::verify::VerifiedProgram;
use crate::tables::Tables;

/// Options of [`Object::load`], set one after the other.
///
/// ```
/// use paceline::{Engine, LoadOptions};
///
/// let options = LoadOptions::default().engine(Engine::Plain).cpus(4).map_memory(1 << 30);
/// assert_eq!(options.limits.cpus, 4);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Limits of maps.
    pub limits: Limits,
    /// Maximum number of instructions that a program may run for one packet, on engines that count them.
    pub budget: u64,
    /// Engine of verified programs; unverified ones run on the plain interpreter.
    pub engine: Engine,
    /// Whether bursts of native code run in stages, with the first look-ups ahead.
    pub look_ahead: LookAhead,
    /// Whether entries of program arrays stay empty if their programs need what Paceline does not have.
    pub leaves_unsupported: bool,
}

impl LoadOptions {
    /// Lets entries of program arrays stay empty if their programs need what Paceline does not have, instead of refusing the programs that
    /// may call them: tail calls to them fail, and [`Collection::unfilled`] lists them.
    #[must_use]
    pub const fn leaving_unsupported(mut self) -> Self {
        self.leaves_unsupported = true;
        self
    }

    /// Sets the engine of verified programs.
    #[must_use]
    pub const fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// Sets whether bursts of native code run in stages, with the first look-ups ahead.
    #[must_use]
    pub const fn look_ahead(mut self, look_ahead: LookAhead) -> Self {
        self.look_ahead = look_ahead;
        self
    }

    /// Sets the instructions that a program may run for one packet, on engines that count them.
    #[must_use]
    pub const fn budget(mut self, instructions: u64) -> Self {
        self.budget = instructions;
        self
    }

    /// Sets the limits of maps.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the number of CPUs (workers) that have values of their own in per-CPU maps.
    #[must_use]
    pub const fn cpus(mut self, cpus: usize) -> Self {
        self.limits.cpus = cpus;
        self
    }

    /// Sets the maximum number of bytes of one map.
    #[must_use]
    pub const fn map_memory(mut self, bytes: u64) -> Self {
        self.limits.memory = bytes;
        self
    }
}

impl Default for LoadOptions {
    /// One CPU, maps of up to 4 GiB each, [`DEFAULT_BUDGET`], and the fastest engine of this machine.
    fn default() -> Self {
        Self {
            limits: Limits { cpus: 1, memory: 4 << 30 },
            budget: DEFAULT_BUDGET,
            engine: Engine::best(),
            look_ahead: LookAhead::default(),
            leaves_unsupported: false,
        }
    }
}

/// The maps of an object, made and filled, and its programs, to be bound to them.
#[derive(Clone)]
pub struct Collection {
    pub(crate) object: Object,
    maps: Vec<Arc<Map>>,
    missing: Arc<[MissingMap]>,
    /// The names of all programs of the object, also those whose maps are missing.
    names: Arc<[String]>,
    pub(crate) tables: Tables,
    limits: Limits,
    budget: u64,
    engine: Engine,
    look_ahead: LookAhead,
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
    /// [`NoProgram`] if the object has no such program.
    pub fn programs_named(&self, name: Option<&str>) -> Result<Vec<&ProgramSpec>, NoProgram> {
        let Some(name) = name else {
            let all: Vec<_> = self.programs().iter().collect();
            return if all.is_empty() { Err(self.without_programs()) } else { Ok(all) };
        };
        let names = || self.programs().iter().map(|program| program.name.clone()).collect();
        self.program(name).map(|program| vec![program]).ok_or_else(|| self.no_program(name, names()))
    }

    /// Causes why no program exists.
    fn without_programs(&self) -> NoProgram {
        match self.skipped() {
            [] => NoProgram::None,
            skipped => NoProgram::OtherTypes(skipped.to_vec()),
        }
    }

    /// The error for a missing name, given the names that exist.
    fn no_program(&self, name: &str, names: Vec<String>) -> NoProgram {
        match self.skipped().iter().find(|skipped| skipped.name == name) {
            Some(skipped) => NoProgram::Skipped(skipped.clone()),
            None if names.is_empty() => self.without_programs(),
            None => NoProgram::Unknown { name: name.to_owned(), names },
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
        Ok(Collection { object, maps, missing, names, tables, limits, budget, engine, look_ahead })
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
            map.update(key, &inner.id().to_ne_bytes(), 0)
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

    /// The map of a name.
    #[must_use]
    pub fn map(&self, name: &str) -> Option<&Arc<Map>> {
        self.maps.iter().find(|map| map.spec().name == name)
    }

    /// A program, verified and bound to the maps; the only one if no name is given. Programs of one collection share
    /// its maps.
    ///
    /// The programs that the object gives to the program arrays it uses are loaded and put there, unless they are
    /// already or the entry was changed.
    ///
    /// # Errors
    /// [`NoProgram`] says which there are, or why the program, or one that it may tail call, may not run.
    pub fn program(&self, name: Option<&str>) -> Result<VerifiedProgram, NoProgram> {
        let program = self.load(self.program_spec(name)?, self.look_ahead)?;
        // Programs that are tail called run no bursts.
        let target = |spec: &ProgramSpec| Ok(self.load(spec, LookAhead::Never)?.into_program());
        self.fill_tables(program.program(), &target)?;
        Ok(program)
    }

    /// A program without a proof: the plain interpreter checks every operation at run time, also of the
    /// programs that it tail calls.
    ///
    /// # Errors
    /// [`NoProgram`] says which there are, or what no engine can run.
    pub fn program_unverified(&self, name: Option<&str>) -> Result<Program, NoProgram> {
        let program = self.bind(self.program_spec(name)?)?;
        self.fill_tables(&program, &|spec| self.bind(spec))?;
        Ok(program)
    }

    fn load(&self, spec: &ProgramSpec, look_ahead: LookAhead) -> Result<VerifiedProgram, NoProgram> {
        let start = Instant::now();
        let verified = self.object.verify(spec).map_err(|refused| NoProgram::Refused(Box::new(refused)))?;
        let time = start.elapsed();
        let program = Program::load_with(&verified, self.maps.clone(), self.engine, look_ahead);
        let program = program.map_err(|error| {
            let name = spec.name.clone();
            match error {
                EngineError::Program(source) => NoProgram::Malformed { name, source },
                source => NoProgram::Engine { name, engine: self.engine, source },
            }
        })?;
        Ok(VerifiedProgram::new(program.with_budget(self.budget), verified, time))
    }

    /// The spec of a program, which need not be safe; the only one if no name is given.
    ///
    /// # Errors
    /// [`NoProgram`] says which there are, or which maps it lacks.
    pub fn program_spec(&self, name: Option<&str>) -> Result<&ProgramSpec, NoProgram> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.only_name()?,
        };
        if let Some(program) = self.object.program(&name) {
            return Ok(program);
        }
        let missing = self.missing.iter().filter(|missing| missing.programs.contains(&name));
        let sources: Vec<_> = missing.map(|missing| Arc::clone(&missing.error)).collect();
        if !sources.is_empty() {
            return Err(NoProgram::Maps { name, sources });
        }
        Err(self.object.no_program(&name, self.names.to_vec()))
    }

    /// The name of the program where there is only one.
    fn only_name(&self) -> Result<String, NoProgram> {
        match &*self.names {
            [] => Err(self.object.without_programs()),
            [only] => Ok(only.clone()),
            names => Err(NoProgram::Several(names.to_vec())),
        }
    }

    fn bind(&self, spec: &ProgramSpec) -> Result<Program, NoProgram> {
        Program::new(Arc::new(spec.clone()), self.maps.clone())
            .map(|program| program.with_budget(self.budget))
            .map_err(|source| NoProgram::Malformed { name: spec.name.clone(), source })
    }
}
