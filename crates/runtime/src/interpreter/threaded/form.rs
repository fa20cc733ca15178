//! From a verified program to operations, by its SSA form.

use std::sync::Arc;

use paceline_compiler::codegen::{Plan, Room, generate};
use paceline_compiler::ir::expand::{ArrayLink, Table, look_ups, loops};
use paceline_compiler::ir::{Graph, Module, Passes, build, optimize_with_graphs};
use paceline_maps::Map;
use paceline_verifier::Verified;

use super::error::TranslateError;
use super::select::Selector;
use crate::interpreter::image::cpus_of;
use crate::interpreter::operations::Operations;

/// Translates a verified program to operations, which contain addresses of its maps.
pub(super) fn translate(verified: &Verified, maps: &[Arc<Map>]) -> Result<Operations, TranslateError> {
    let (module, graphs) = form(verified, maps)?;
    let (mut selector, mut room) = (Selector::new(&module, verified.program(), maps), Room::default());
    for (index, ((_, function), graph)) in module.functions.iter().zip(&graphs).enumerate() {
        selector.begin_function(function, graph, index == 0)?;
        generate(&Plan::with_graph(function, graph), &mut selector, &mut room, cfg!(debug_assertions))?;
        selector.end_function()?;
    }
    selector.finish()
}

fn form(verified: &Verified, maps: &[Arc<Map>]) -> Result<(Module, Vec<Graph>), TranslateError> {
    let mut module = build(verified)?;
    look_ups(&mut module, &|map| table(maps.get(map as usize)?))
        .and_then(|()| loops(&mut module))
        .ok_or(TranslateError::Lack("an operation has no result"))?;
    let graphs = optimize_with_graphs(&mut module, &Passes::default())?;
    Ok((module, graphs))
}

/// A map as one whose look-ups are expanded: an array.
fn table(map: &Map) -> Option<Table> {
    let layout = map.for_programs().array_layout()?;
    Some(Table::Array(ArrayLink {
        base: layout.base.as_ptr() as u64,
        stride: layout.stride as u64,
        cpu_stride: if cpus_of(map) == Some(1) { 0 } else { layout.cpu_stride as u64 },
        entries: layout.entries,
    }))
}
