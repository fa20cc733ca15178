//! Chains that are one function of native code.

use std::sync::{Arc, OnceLock};

use crate::exec::CodeBlock;
use paceline_maps::Map;
use paceline_runtime::callback::CallbackCode;
use paceline_runtime::interpreter::image::{BurstEntry, sets_callbacks};
use paceline_runtime::interpreter::staged::{Ahead, Staged};
use paceline_runtime::per_cpu::PerCpuMaps;
use paceline_spec::graph::{Graph, Node};

use super::error::ChainError;
use super::part::ChainPart;
use crate::native::{self, NativeCode, NativeFunctions};

/// The code of a chain.
pub(super) struct Fused {
    /// The programs by node. They keep everything that the code refers to.
    parts: Box<[ChainPart]>,
    /// The maps of all programs.
    maps: Vec<Arc<Map>>,
    /// The look-ups ahead of a burst, if there are any.
    ahead: Option<Arc<Ahead>>,
    plain: Loop,
    /// The code that counts, compiled when it is first asked for.
    counted: OnceLock<Loop>,
}

/// The code of a loop over a burst.
pub(super) struct Loop {
    block: Arc<CodeBlock>,
    /// The functions that timers may call.
    _callbacks: Option<Arc<CallbackCode>>,
    /// The entry of the loop.
    pub(super) burst_entry: BurstEntry,
    /// The same behind look-ups ahead, if they are made.
    pub(super) staged: Option<Staged>,
}

impl Fused {
    /// Compiles the programs of a chain to one function. The look-ups of the first one may be made ahead.
    pub(super) fn compile(
        parts: Box<[ChainPart]>,
        graph: &Graph,
        ahead: Option<Arc<Ahead>>,
    ) -> Result<Self, ChainError> {
        let maps: Vec<_> = parts.iter().flat_map(|part| part.maps().iter().cloned()).collect();
        let plain = Loop::compile(&parts, graph, &maps, ahead.as_ref(), false)?;
        Ok(Self { parts, maps, ahead, plain, counted: OnceLock::new() })
    }

    pub(super) fn plain(&self) -> &Loop {
        &self.plain
    }

    /// The code that counts, if it was compiled.
    pub(super) fn counted(&self) -> Option<&Loop> {
        self.counted.get()
    }

    /// Compiles the code that counts, unless it is there.
    pub(super) fn count(&self, graph: &Graph) -> Result<(), ChainError> {
        if self.counted.get().is_none() {
            let code = Loop::compile(&self.parts, graph, &self.maps, self.ahead.as_ref(), true)?;
            // default: if another thread was faster, its code is as good.
            let _ = self.counted.set(code);
        }
        Ok(())
    }

    pub(super) fn code(&self) -> NativeCode<'_> {
        NativeCode::new(&self.plain.block, &self.maps)
    }

    pub(super) fn maps(&self) -> &[Arc<Map>] {
        &self.maps
    }

    /// Whether runs are pinned.
    pub(super) fn pins(&self) -> bool {
        self.parts.iter().any(ChainPart::pins)
    }

    /// The per-CPU maps of all programs.
    pub(super) fn per_cpu(&self) -> PerCpuMaps {
        PerCpuMaps::union(self.parts.iter().map(ChainPart::per_cpu))
    }
}

impl Loop {
    fn compile(
        parts: &[ChainPart],
        graph: &Graph,
        maps: &[Arc<Map>],
        ahead: Option<&Arc<Ahead>>,
        counts: bool,
    ) -> Result<Self, ChainError> {
        let failed = |error| ChainError::Program { node: Node::ENTRY, error };
        let settings = parts.first().map_or_else(native::settings, |part| *part.settings());
        let programs: Vec<_> = parts.iter().map(|part| (part.part(), part.verified().program())).collect();
        let (block, offset) = native::chain(&programs, graph, counts, &settings).map_err(failed)?;
        let block = Arc::new(block);
        let callbacks = parts.iter().any(|part| sets_callbacks(part.verified().code())).then(|| {
            let per_cpu = PerCpuMaps::union(parts.iter().map(ChainPart::per_cpu));
            CallbackCode::new(NativeFunctions(block.clone()), per_cpu, maps.to_vec())
        });
        // SAFETY: the code there is a chain's loop, which is called like this.
        let burst_entry =
            unsafe { std::mem::transmute::<usize, BurstEntry>(block.address() + offset as usize) };
        let staged = ahead.map(|ahead| Staged { ahead: ahead.clone(), burst_entry });
        Ok(Self { block, _callbacks: callbacks, burst_entry, staged })
    }
}
