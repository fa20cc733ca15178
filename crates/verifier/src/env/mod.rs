//! The program under verification, and what is known of it before its paths are explored.

mod flow;
mod globals;

use std::cell::OnceCell;

use paceline_btf::Btf;
use paceline_isa::{Code, RegSet};
use paceline_spec::{FunctionInfo, InitialValue, MapSpec, ProgramSpec};

use crate::domain::state::MapRef;
use crate::error::{Check, Refusal};
use crate::limits::Options;

pub(crate) use flow::{ControlFlow, Function, PrunePoint, is_tail_call, reaching};
pub(crate) use globals::{Global, Parameter};

/// The program with its tables. Nothing changes while paths are explored; the types of global functions are resolved when
/// they are first asked for.
pub(crate) struct Env<'a> {
    pub(crate) program: &'a ProgramSpec,
    pub(crate) code: &'a Code,
    pub(crate) maps: &'a [MapSpec],
    pub(crate) options: &'a Options,
    pub(crate) flow: ControlFlow,
    btf: Option<&'a Btf>,
    /// By function index.
    globals: Vec<OnceCell<Global>>,
}

impl<'a> Env<'a> {
    pub(crate) fn new(
        program: &'a ProgramSpec,
        code: &'a Code,
        maps: &'a [MapSpec],
        btf: Option<&'a Btf>,
        options: &'a Options,
    ) -> Result<Self, Box<Refusal>> {
        let flow = ControlFlow::of(program, code)?;
        let globals = vec![OnceCell::new(); flow.functions.len()];
        Ok(Self { program, code, maps, options, flow, btf, globals })
    }

    /// The specification of a map.
    pub(crate) fn map(&self, map: MapRef) -> Option<&'a MapSpec> {
        let spec = self.maps.get(map.index as usize)?;
        if map.inner { spec.inner.as_deref() } else { Some(spec) }
    }

    /// The value of a frozen map, without its trailing zeros.
    pub(crate) fn frozen_bytes(&self, map: MapRef) -> Option<&'a [u8]> {
        let spec = self.map(map).filter(|spec| has_constant_value(spec) && !map.inner)?;
        match spec.contents.first() {
            Some((_, InitialValue::Bytes(bytes))) => Some(bytes),
            Some(_) => None,
            None => Some(&[]),
        }
    }

    /// Registers whose value may still be read, before a slot.
    pub(crate) fn live_at(&self, slot: usize) -> RegSet {
        self.flow.live[slot]
    }

    /// The first slot of a function.
    pub(crate) fn start_of(&self, function: usize) -> usize {
        self.flow.functions[function].start
    }

    /// The name of a function, or where it is.
    pub(crate) fn function_name(&self, function: usize) -> String {
        let start = self.start_of(function);
        self.info(start).map_or_else(|| format!("function at {start}"), |info| info.name.clone())
    }

    /// A global function; its type is resolved once.
    pub(crate) fn global(&self, function: usize) -> Check<&Global> {
        if let Some(global) = self.globals[function].get() {
            return Ok(global);
        }
        let info = self.info(self.start_of(function));
        let parameters = globals::parameters(info, self.btf, self.program.kind)?;
        let name = self.function_name(function);
        Ok(self.globals[function].get_or_init(|| Global { name, parameters }))
    }

    fn info(&self, start: usize) -> Option<&'a FunctionInfo> {
        self.program.functions.iter().find(|f| f.start == start)
    }
}

/// Whether a map has one value, which is constant and known (`bpf_map_is_rdonly`, `map_direct_value_addr`).
fn has_constant_value(spec: &MapSpec) -> bool {
    spec.is_constant() && spec.kind.rules().is_addressable && spec.max_entries == 1
}
