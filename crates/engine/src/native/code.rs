//! Access to native code, for listings.

use std::sync::Arc;

use crate::exec::{CodeBlock, Function};
use paceline_compiler::native::Unsupported;
use paceline_maps::Map;
use paceline_runtime::helpers::{HelperFn, functions_of, kfunc_fn};
use paceline_spec::helper::Helper;
use paceline_spec::kfunc::Kfunc;

use super::links::runtime_functions;
use crate::program::Program;

/// The native code of a program.
#[derive(Clone, Copy)]
pub struct NativeCode<'a> {
    block: &'a CodeBlock,
    maps: &'a [Arc<Map>],
}

impl std::fmt::Debug for NativeCode<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeCode").finish_non_exhaustive()
    }
}

impl Program {
    /// The program's native code, if it was compiled.
    #[must_use]
    pub fn native_code(&self) -> Option<NativeCode<'_>> {
        let native = self.image.native.as_ref()?;
        Some(NativeCode { block: native.block.downcast_ref()?, maps: self.maps() })
    }

    /// What has no native code, because of which the program is interpreted although [native code](crate::Engine::Jit) was asked for.
    #[must_use]
    pub fn unsupported(&self) -> Option<Unsupported> {
        self.unsupported
    }

    /// The native code of its [slice](Self::slice).
    #[must_use]
    pub fn slice_code(&self) -> Option<NativeCode<'_>> {
        let slice = self.image.staged.as_ref()?.ahead.slice();
        Some(NativeCode { block: slice.native.as_ref()?.block.downcast_ref()?, maps: self.maps() })
    }
}

impl<'a> NativeCode<'a> {
    pub(crate) fn new(block: &'a CodeBlock, maps: &'a [Arc<Map>]) -> Self {
        Self { block, maps }
    }

    /// Address of the first byte.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.block.address() as u64
    }

    /// The instructions.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.block.bytes()
    }

    /// The functions by offset, the main program first, each with the slots that its code was made from.
    #[must_use]
    pub fn functions(&self) -> &'a [Function] {
        self.block.functions()
    }

    /// Name of an address outside of the code: a helper, a kernel function, a function of the engine, a map or its memory, as
    /// `map[hits]`, `map_value[hits] + 8` and `map_entries[jump] + 16`.
    #[must_use]
    pub fn symbol(&self, address: u64) -> Option<String> {
        let is_there = |function: Option<HelperFn>| function.is_some_and(|f| f as usize as u64 == address);
        let found = |helper: &&Helper| functions_of(helper.id).any(|function| is_there(Some(function)));
        if let Some(helper) = Helper::all().iter().find(found) {
            return Some(helper.name.to_owned());
        }
        let kfuncs = || Kfunc::all().iter().chain(Kfunc::converted());
        if let Some(kfunc) = kfuncs().find(|kfunc| is_there(kfunc_fn(kfunc.name))) {
            return Some(kfunc.name.to_owned());
        }
        if let Some((name, _)) = runtime_functions().into_iter().find(|(_, function)| *function == address) {
            return Some(name.to_owned());
        }
        self.maps.iter().find_map(|map| in_map(map, address))
    }
}

fn in_map(map: &Arc<Map>, address: u64) -> Option<String> {
    let name = &map.spec().name;
    let ahead = map.for_programs().ahead_function();
    if ahead.is_some_and(|ahead| ahead.function as usize as u64 == address) {
        return Some("ahead".to_owned());
    }
    if Arc::as_ptr(map) as u64 == address {
        return Some(format!("map[{name}]"));
    }
    let within = |base: u64, len: u64| address.checked_sub(base).filter(|offset| *offset < len);
    if let Some(array) = map.for_programs().prog_array() {
        let layout = array.token_layout();
        let base = layout.base.as_ptr() as u64;
        let offset = within(base, layout.stride as u64 * u64::from(layout.entries))?;
        return Some(format!("map_entries[{name}] + {offset}"));
    }
    let layout = map.for_programs().array_layout()?;
    // The values of each CPU are contiguous.
    let len = layout.stride as u64 * u64::from(layout.entries);
    let offset = within(layout.base.as_ptr() as u64, len)?;
    Some(format!("map_value[{name}] + {offset}"))
}
