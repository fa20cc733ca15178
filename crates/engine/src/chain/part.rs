//! Programs that are compiled into chains.

use std::sync::Arc;

use paceline_compiler::native::Part;
use paceline_maps::{Map, MapUser};
use paceline_runtime::interpreter::image::per_cpu_maps;
use paceline_runtime::per_cpu::PerCpuMaps;
use paceline_verifier::Verified;

use crate::engine::Engine;
use crate::form::{Form, check_code};
use crate::load::check_load;
use crate::load_error::EngineError;
use crate::native;
use crate::uses::Uses;

/// A verified program with its maps, to be compiled into chains: what is the same in all of them is done once, so that a chain in which
/// one program is another one is compiled in less time than a new one. Clones are the same part.
#[derive(Clone)]
pub struct ChainPart {
    state: Arc<State>,
}

impl std::fmt::Debug for ChainPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChainPart").finish_non_exhaustive()
    }
}

struct State {
    verified: Arc<Verified>,
    /// At a fixed address, which code refers to.
    maps: Arc<[Arc<Map>]>,
    part: Part,
    settings: native::Settings,
    /// Whether runs are pinned.
    pins: bool,
    per_cpu: PerCpuMaps,
    /// Keeps the programs in the maps that the program uses.
    _tables: Vec<MapUser>,
}

impl ChainPart {
    /// A verified program with its maps in the order of its object.
    ///
    /// # Errors
    /// As [`Program::load`](crate::Program::load); [`CompileError::Unsupported`](crate::CompileError::Unsupported) for a program that has no native code.
    pub fn new(verified: Arc<Verified>, maps: Vec<Arc<Map>>) -> Result<Self, EngineError> {
        Self::with_settings(verified, maps, &native::settings())
    }

    pub(super) fn with_settings(
        verified: Arc<Verified>,
        maps: Vec<Arc<Map>>,
        settings: &native::Settings,
    ) -> Result<Self, EngineError> {
        check_load(&verified, &maps, Engine::Jit)?;
        let code = verified.code();
        check_code(verified.program(), code, &maps, Form::Proven(&verified))?;
        let Uses { tables, pins } = Uses::of(code, &maps, u64::from(verified.program().kind.rules().number))?;
        let per_cpu = per_cpu_maps(code, &maps);
        let maps: Arc<[Arc<Map>]> = maps.into();
        let part = native::part(&verified, &maps, settings)?;
        Ok(Self {
            state: Arc::new(State {
                verified,
                maps,
                part,
                settings: *settings,
                pins,
                per_cpu,
                _tables: tables,
            }),
        })
    }

    /// The program's proof.
    #[must_use]
    pub fn verified(&self) -> &Arc<Verified> {
        &self.state.verified
    }

    /// Its maps.
    #[must_use]
    pub fn maps(&self) -> &[Arc<Map>] {
        &self.state.maps
    }

    pub(super) fn part(&self) -> &Part {
        &self.state.part
    }

    pub(super) fn settings(&self) -> &native::Settings {
        &self.state.settings
    }

    pub(super) fn pins(&self) -> bool {
        self.state.pins
    }

    pub(super) fn per_cpu(&self) -> &PerCpuMaps {
        &self.state.per_cpu
    }
}
