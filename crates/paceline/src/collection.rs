//! The programs and maps of an object, made and ready.

use std::sync::Arc;

use paceline_maps::{CreateError, FillError, Limits, Map, Mismatch};
use paceline_spec::{Errno, InitialValue, MapSpec, ProgramSpec};
use paceline_vm::{DEFAULT_BUDGET, Engine, LoadError as EngineError, Program, ProgramError};

use crate::tables::{EntryError, Tables};
use crate::{Difference, Object, Refused, VerifiedProgram};

/// How an object is loaded.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// What maps may take.
    pub limits: Limits,
    /// Instructions a program may run for one packet, on engines that count.
    pub budget: u64,
    /// What runs verified programs; those that are not run on the plain interpreter.
    pub engine: Engine,
}

impl Default for LoadOptions {
    /// One CPU, maps of up to 4 GiB each, [`DEFAULT_BUDGET`], and the fastest engine of this machine.
    fn default() -> Self {
        Self { limits: Limits { cpus: 1, memory: 4 << 30 }, budget: DEFAULT_BUDGET, engine: Engine::best() }
    }
}

/// Why an object cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A map cannot be made.
    #[error(transparent)]
    Map(#[from] CreateError),
    /// A map does not take a value that the object gives it.
    #[error("map {map}: {source}")]
    Fill {
        /// Name of the map.
        map: String,
        /// Which value and why.
        source: FillError,
    },
    /// A map does not take a map that the object gives it.
    #[error("map {map} cannot hold map {inner}: {source}")]
    Inner {
        /// Name of the map of maps.
        map: String,
        /// Name of the other.
        inner: String,
        /// Why.
        source: Mismatch,
    },
    /// A map is to be shared, and the object has none of the name.
    #[error("no map {map} to share; there is: {}", .names.join(", "))]
    NoMap {
        /// The name.
        map: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// A map is pinned under the name of one that is to be pinned, and is of another shape.
    #[error("map {map} cannot be the one that is pinned under its name: {difference}")]
    Pinned {
        /// Name of the map.
        map: String,
        /// How it is another.
        difference: Difference,
    },
    /// A map is to be shared, and is another than the program was made for.
    #[error("map {map} cannot be shared: {difference}")]
    Differs {
        /// Name of the map.
        map: String,
        /// How it is another.
        difference: Difference,
    },
}

/// There is no program of that name, or none was named and there are several.
#[derive(Debug, thiserror::Error)]
pub enum NoProgram {
    /// The object has no XDP program.
    #[error("no XDP program in the object")]
    None,
    /// No program was named.
    #[error("several programs in the object, name one of: {}", .0.join(", "))]
    Several(Vec<String>),
    /// There is no program of this name.
    #[error("no program {name}; there is: {}", .names.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// The program is no program that an engine could run.
    #[error("program {name}: {source}")]
    Malformed {
        /// Name of the program.
        name: String,
        /// Why.
        source: ProgramError,
    },
    /// The engine cannot run the program.
    #[error("program {name} on engine {engine}: {source}")]
    Engine {
        /// Name of the program.
        name: String,
        /// The engine.
        engine: Engine,
        /// Why.
        source: EngineError,
    },
    /// The verifier does not accept the program.
    #[error(transparent)]
    Refused(Box<Refused>),
    /// A program that it may tail call cannot be put into its program array.
    #[error("map {map}, index {index}: {source}")]
    Entry {
        /// Name of the program array.
        map: String,
        /// Index in it.
        index: u32,
        /// Why.
        source: Box<EntryError>,
    },
}

/// The maps of an object, made and filled, and its programs, to be bound to them.
#[derive(Clone)]
pub struct Collection {
    pub(crate) object: Object,
    maps: Vec<Arc<Map>>,
    pub(crate) tables: Tables,
    budget: u64,
    engine: Engine,
}

impl Object {
    /// Makes the object's maps and fills them with the values that the object gives. The programs that it gives to
    /// program arrays come with the first program that uses the array.
    ///
    /// # Errors
    /// [`SetupError`] names the map.
    pub fn load(&self, options: &LoadOptions) -> Result<Collection, SetupError> {
        self.load_with(options, |_| None)
    }

    /// The same with maps that are there already in the place of the object's own.
    pub(crate) fn load_with(
        &self,
        options: &LoadOptions,
        existing: impl Fn(&MapSpec) -> Option<Arc<Map>>,
    ) -> Result<Collection, SetupError> {
        let existing: Vec<_> = self.maps.iter().map(existing).collect();
        let map = |(spec, existing): (&MapSpec, &Option<Arc<Map>>)| match existing {
            Some(map) => Ok(Arc::clone(map)),
            None => Map::create(spec, &options.limits),
        };
        let maps = self.maps.iter().zip(&existing).map(map).collect::<Result<Vec<_>, _>>()?;
        for ((map, spec), existing) in maps.iter().zip(&self.maps).zip(existing) {
            if existing.is_none() {
                fill(map, spec, &maps)?;
            }
        }
        let tables = Tables::new(&self.maps, &maps);
        Ok(Collection { object: self.clone(), maps, tables, budget: options.budget, engine: options.engine })
    }
}

/// Gives a map what the object says; its maps before its bytes, which may freeze it.
fn fill(map: &Map, spec: &MapSpec, maps: &[Arc<Map>]) -> Result<(), SetupError> {
    let refused = |source| SetupError::Fill { map: spec.name.clone(), source };
    for (index, (key, value)) in spec.contents.iter().enumerate() {
        let InitialValue::Map(inner) = value else { continue };
        let inner = maps.get(*inner).ok_or_else(|| refused(FillError { index, errno: Errno::EBADF }))?;
        map.check_inner(inner).map_err(|source| SetupError::Inner {
            map: spec.name.clone(),
            inner: inner.spec().name.clone(),
            source,
        })?;
        map.set(key, &inner.id().to_ne_bytes(), 0).map_err(|errno| refused(FillError { index, errno }))?;
    }
    map.fill(&spec.contents).map_err(refused)
}

impl Collection {
    /// The object it was made from.
    #[must_use]
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// All maps, in the object's order.
    #[must_use]
    pub fn maps(&self) -> &[Arc<Map>] {
        &self.maps
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
        let program = self.load(self.spec(name)?)?;
        self.fill_tables(&program, &|spec| self.load(spec).map(VerifiedProgram::into_program))?;
        Ok(program)
    }

    /// The same without a proof: the plain interpreter checks all that the program does as it does it. So it is with the
    /// programs that it may tail call.
    ///
    /// # Errors
    /// [`NoProgram`] says which there are, or what no engine can run.
    pub fn program_unverified(&self, name: Option<&str>) -> Result<Program, NoProgram> {
        let program = self.bind(self.spec(name)?)?;
        self.fill_tables(&program, &|spec| self.bind(spec))?;
        Ok(program)
    }

    fn load(&self, spec: &ProgramSpec) -> Result<VerifiedProgram, NoProgram> {
        let verified = self.object.verify(spec).map_err(|refused| NoProgram::Refused(Box::new(refused)))?;
        let program = Program::load(&verified, self.maps.clone(), self.engine).map_err(|error| {
            let name = spec.name.clone();
            match error {
                EngineError::Program(source) => NoProgram::Malformed { name, source },
                source => NoProgram::Engine { name, engine: self.engine, source },
            }
        })?;
        Ok(VerifiedProgram::new(program.with_budget(self.budget), verified))
    }

    pub(crate) fn spec(&self, name: Option<&str>) -> Result<&ProgramSpec, NoProgram> {
        let programs = &self.object.programs;
        let names = || programs.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        match (name, programs.as_slice()) {
            (_, []) => Err(NoProgram::None),
            (None, [only]) => Ok(only),
            (None, _) => Err(NoProgram::Several(names())),
            (Some(name), _) => programs
                .iter()
                .find(|p| p.name == name)
                .ok_or_else(|| NoProgram::Unknown { name: name.to_owned(), names: names() }),
        }
    }

    fn bind(&self, spec: &ProgramSpec) -> Result<Program, NoProgram> {
        Program::new(Arc::new(spec.clone()), self.maps.clone())
            .map(|program| program.with_budget(self.budget))
            .map_err(|source| NoProgram::Malformed { name: spec.name.clone(), source })
    }
}
