//! The programs and maps of an object, made and ready.

use std::sync::Arc;

use paceline_maps::{CreateError, FillError, Limits, Map};
use paceline_spec::{InitialValue, ProgramSpec};
use paceline_vm::{DEFAULT_BUDGET, Engine, LoadError as EngineError, Program, ProgramError};

use crate::{Object, Refused, VerifiedProgram};

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
    /// One CPU, maps of up to 4 GiB each, and [`DEFAULT_BUDGET`].
    fn default() -> Self {
        Self { limits: Limits { cpus: 1, memory: 4 << 30 }, budget: DEFAULT_BUDGET, engine: Engine::Plain }
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
    /// A map has other maps or programs as initial values.
    #[error("map {map}: initial {what} in maps are not supported")]
    InitialReference {
        /// Name of the map.
        map: String,
        /// `maps` or `programs`.
        what: &'static str,
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
}

/// The maps of an object, made and filled, and its programs, to be bound to them.
#[derive(Clone)]
pub struct Collection {
    object: Object,
    maps: Vec<Arc<Map>>,
    budget: u64,
    engine: Engine,
}

impl Object {
    /// Makes the object's maps and fills them with the values that the object gives.
    ///
    /// # Errors
    /// [`SetupError`] names the map.
    pub fn load(&self, options: &LoadOptions) -> Result<Collection, SetupError> {
        let maps =
            self.maps.iter().map(|spec| Map::create(spec, &options.limits)).collect::<Result<Vec<_>, _>>()?;
        for (map, spec) in maps.iter().zip(&self.maps) {
            let what = spec.contents.iter().find_map(|(_, value)| match value {
                InitialValue::Bytes(_) => None,
                InitialValue::Map(_) => Some("maps"),
                InitialValue::Program(_) => Some("programs"),
            });
            if let Some(what) = what {
                return Err(SetupError::InitialReference { map: spec.name.clone(), what });
            }
            map.fill(&spec.contents).map_err(|source| SetupError::Fill { map: spec.name.clone(), source })?;
        }
        Ok(Collection { object: self.clone(), maps, budget: options.budget, engine: options.engine })
    }
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

    /// The map of a name.
    #[must_use]
    pub fn map(&self, name: &str) -> Option<&Arc<Map>> {
        self.maps.iter().find(|map| map.spec().name == name)
    }

    /// A program, verified and bound to the maps; the only one if no name is given. Programs of one collection share
    /// its maps.
    ///
    /// # Errors
    /// [`NoProgram`] says which there are, or why the program may not run.
    pub fn program(&self, name: Option<&str>) -> Result<VerifiedProgram, NoProgram> {
        let spec = self.spec(name)?;
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

    /// The same without a proof: the plain interpreter checks all that the program does as it does it.
    ///
    /// # Errors
    /// [`NoProgram`] says which there are, or what no engine can run.
    pub fn program_unverified(&self, name: Option<&str>) -> Result<Program, NoProgram> {
        self.bind(self.spec(name)?)
    }

    fn spec(&self, name: Option<&str>) -> Result<&ProgramSpec, NoProgram> {
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
