//! Chains that are one function of native code.

use std::sync::Arc;

use paceline_exec::CodeBlock;
use paceline_graph::Graph;
use paceline_interpreter::image::{BurstEntry, least_cpus, sets_callbacks};
use paceline_maps::{Map, MapUser};
use paceline_runtime::callback::CallbackCode;
use paceline_verifier::Verified;

use super::error::ChainError;
use crate::engine::Engine;
use crate::form::{Form, check_code};
use crate::load::check_load;
use crate::load_error::LoadError;
use crate::native::{self, NativeCode, NativeFunctions};
use crate::uses::Uses;

/// A program of a chain, and its maps.
type Kept<'a> = (&'a Verified, Arc<[Arc<Map>]>);

/// The code of a chain, and everything that the code refers to.
pub(super) struct Fused {
    block: Arc<CodeBlock>,
    /// The functions that timers may call.
    _callbacks: Option<Arc<CallbackCode>>,
    maps: Vec<Arc<Map>>,
    /// Maps of each program, at fixed addresses.
    _parts: Box<[Arc<[Arc<Map>]>]>,
    /// Keeps the programs in the maps that the program uses.
    _tables: Vec<MapUser>,
}

impl Fused {
    pub(super) fn code(&self) -> NativeCode<'_> {
        NativeCode::new(&self.block, &self.maps)
    }

    pub(super) fn maps(&self) -> &[Arc<Map>] {
        &self.maps
    }
}

/// A compiled chain.
pub(super) struct Compiled {
    pub(super) fused: Fused,
    /// Entry of bursts, and of those whose return values are counted.
    pub(super) entries: [BurstEntry; 2],
    /// Whether runs are pinned.
    pub(super) pins: bool,
}

/// Compiles the programs of a chain to one function.
pub(super) fn compile(
    parts: &[(&Verified, Vec<Arc<Map>>)],
    graph: &Graph,
    settings: &native::Settings,
) -> Result<Compiled, ChainError> {
    let (mut users, mut all_maps, mut pins) = (Vec::new(), Vec::new(), false);
    for (node, (verified, maps)) in graph.iter().map(|(node, _)| node).zip(parts) {
        let failed = |error: LoadError| ChainError::Program { node, error };
        check_load(verified, maps, Engine::Jit).map_err(failed)?;
        let code = verified.code();
        let form = Form::Proven(verified);
        check_code(verified.program(), code, maps, form).map_err(|error| failed(error.into()))?;
        let kind = u64::from(verified.program().kind.rules().number);
        let uses = Uses::of(code, maps, kind).map_err(|error| failed(error.into()))?;
        users.extend(uses.tables);
        pins |= uses.pins;
        all_maps.extend(maps.iter().cloned());
    }
    let kept: Box<[Kept<'_>]> =
        parts.iter().map(|(verified, maps)| (*verified, maps.as_slice().into())).collect();
    let (block, entries) =
        native::chain(&kept, graph, settings).map_err(|(node, error)| ChainError::Program { node, error })?;
    let block = Arc::new(block);
    let parts_kept = kept.into_iter().map(|(_, maps)| maps).collect();
    let callbacks = parts.iter().any(|(verified, _)| sets_callbacks(verified.code())).then(|| {
        let cpus = parts.iter().map(|(verified, maps)| least_cpus(verified.code(), maps)).min();
        CallbackCode::new(NativeFunctions(block.clone()), cpus.unwrap_or(usize::MAX), all_maps.clone())
    });
    let entry = |offset: u32| -> BurstEntry {
        // SAFETY: the code there is a chain's loop, which is called like this.
        unsafe { std::mem::transmute::<usize, BurstEntry>(block.address() + offset as usize) }
    };
    let entries = entries.map(entry);
    let fused = Fused { block, _callbacks: callbacks, maps: all_maps, _parts: parts_kept, _tables: users };
    Ok(Compiled { fused, entries, pins })
}
