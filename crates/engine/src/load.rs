//! From a verified program to one that an engine runs.

mod maps;

use std::sync::Arc;

use paceline_maps::Map;
use paceline_runtime::interpreter::threaded;
use paceline_verifier::Verified;

use crate::engine::Engine;
use crate::form::{Form, check};
use crate::load_error::EngineError;
use crate::look_ahead::LookAhead;
#[cfg(feature = "jit")]
use crate::native::{self, CompileError};
use crate::program::Program;

impl Program {
    /// Makes a verified program ready to run on an engine, with its maps in the order of its object.
    ///
    /// # Errors
    /// [`EngineError`]. Paceline never falls back to another engine silently: a program that has no native code becomes one of the
    /// threaded interpreter, which [`engine`](Self::engine) and [`unsupported`](Self::unsupported) tell.
    pub fn load(verified: &Verified, maps: Vec<Arc<Map>>, engine: Engine) -> Result<Self, EngineError> {
        Self::load_with(verified, maps, engine, LookAhead::default())
    }

    /// Like [`load`](Self::load); also says whether bursts run in stages, which engines without native code ignore.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    #[cfg_attr(not(feature = "jit"), expect(unused_variables, reason = "native code alone looks ahead"))]
    pub fn load_with(
        verified: &Verified,
        maps: Vec<Arc<Map>>,
        engine: Engine,
        look_ahead: LookAhead,
    ) -> Result<Self, EngineError> {
        check_load(verified, &maps, engine)?;
        match engine {
            Engine::Plain => {
                let spec = Arc::new(verified.program().clone());
                Ok(Self::checked(spec, maps, Form::Proven(verified))?)
            }
            #[cfg(feature = "jit")]
            Engine::Jit => match native::load(verified, maps.clone(), &native::settings()) {
                Err(EngineError::Compile(CompileError::Unsupported(what))) => {
                    let mut program = Self::threaded(verified, maps)?;
                    program.unsupported = Some(what);
                    Ok(program)
                }
                loaded => Ok(loaded?.with_look_ahead(look_ahead)),
            },
            #[cfg(not(feature = "jit"))]
            Engine::Jit => Err(EngineError::Unavailable(engine)),
            Engine::Threaded => Self::threaded(verified, maps),
        }
    }

    fn threaded(verified: &Verified, maps: Vec<Arc<Map>>) -> Result<Self, EngineError> {
        let spec = Arc::new(verified.program().clone());
        let code = check(&spec, &maps, Form::Proven(verified))?;
        let image = threaded::image(verified, spec, code, maps);
        let image = image.map_err(|error| EngineError::Translate(Box::new(error)))?;
        Ok(Self::with_image(image, Engine::Threaded)?)
    }
}

#[cfg(not(feature = "jit"))]
impl Program {
    /// Bursts run in stages as native code only, which this build does not have.
    #[must_use]
    pub fn with_look_ahead(self, _: LookAhead) -> Self {
        self
    }
}

/// Ways to compile, for measurements.
#[cfg(feature = "jit")]
impl Program {
    /// Makes a verified program ready to run as native code that is compiled otherwise than [`load`](Self::load) does:
    /// `change` changes the settings that are best on this machine. It cannot add instructions that the machine lacks.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_with_settings(
        verified: &Verified,
        maps: Vec<Arc<Map>>,
        change: impl FnOnce(&mut native::Settings),
    ) -> Result<Self, EngineError> {
        check_load(verified, &maps, Engine::Jit)?;
        let mut settings = native::settings();
        let machine = settings;
        change(&mut settings);
        native::restrict(&mut settings, &machine);
        Ok(native::load(verified, maps, &settings)?.with_look_ahead(LookAhead::default()))
    }
}

/// Checks that the engine can run the program with these maps.
pub(crate) fn check_load(verified: &Verified, maps: &[Arc<Map>], engine: Engine) -> Result<(), EngineError> {
    if !engine.is_available() {
        return Err(EngineError::Unavailable(engine));
    }
    maps::check(verified.maps(), maps)
}
