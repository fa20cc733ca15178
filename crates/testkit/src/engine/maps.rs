//! The maps of a case on our engines: created, filled, changed between runs, and read.

use std::sync::Arc;

use paceline_engine::Program;
use paceline_maps::{Limits, Map};
use paceline_spec::{Errno, InitialValue, MapSpec};

use super::interface::Unsupported;
use crate::Contents;
use crate::kernel;

/// Maximum size of a map in bytes, above that of any case or shipped object.
const MAP_MEMORY: u64 = 1 << 30;

/// Creates maps with their bytes, for per-CPU maps those of `cpu`; the caller sets programs. The outer error is an error of
/// the case, the inner one a refusal.
///
/// # Errors
/// The case asks for what no map of ours has.
pub fn create_maps(specs: &[MapSpec], cpu: usize) -> Result<Result<Vec<Arc<Map>>, String>, Unsupported> {
    let limits = Limits { cpus: kernel::possible_cpus(), memory: MAP_MEMORY };
    let mut maps = Vec::new();
    for spec in specs {
        let map = match Map::create(spec, &limits) {
            Ok(map) => map,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if let Err(errno) = fill_map(&map, spec, &maps, cpu) {
            return Ok(Err(format!("map {}: {errno}", spec.name)));
        }
        maps.push(map);
    }
    Ok(Ok(maps))
}

/// Sets the bytes and inner maps of a spec as initial contents, for per-CPU maps on one CPU, and freezes the map if the spec
/// says so. Inner maps must precede their outer map.
///
/// # Errors
/// The map refuses an element.
pub fn fill_map(map: &Map, spec: &MapSpec, maps: &[Arc<Map>], cpu: usize) -> Result<(), Errno> {
    for (key, value) in &spec.contents {
        match value {
            InitialValue::Bytes(bytes) => set(map, key, bytes, cpu)?,
            InitialValue::Map(index) => set_map(map, key, maps, *index)?,
            InitialValue::Program(_) => {}
        }
    }
    if spec.frozen { map.freeze() } else { Ok(()) }
}

/// Sets an element that is a map.
pub(super) fn set_map(map: &Map, key: &[u8], maps: &[Arc<Map>], index: usize) -> Result<(), Errno> {
    let inner = maps.get(index).ok_or(Errno::EBADF)?;
    map.insert(key, &inner.id().to_ne_bytes())
}

/// Puts the program of a name into a program array.
pub(super) fn set_program(map: &Map, key: &[u8], programs: &[Program], name: &str) -> Result<(), String> {
    let said = |error: &dyn std::fmt::Display| format!("map {}: {error}", map.spec().name);
    let program = programs.iter().find(|known| known.spec().name == name);
    let (Some(program), Ok(index)) = (program, key.try_into().map(u32::from_ne_bytes)) else {
        return Err(said(&"an element names no program, or its key is no index"));
    };
    program.install(map, index).map_err(|error| said(&error))
}

/// Sets an element; for per-CPU maps the value of one CPU, and zeros on the others.
pub(super) fn set(map: &Map, key: &[u8], bytes: &[u8], cpu: usize) -> Result<(), Errno> {
    let spec = map.spec();
    let mut full = vec![0; map.user_value_size()];
    let start = if spec.kind.is_per_cpu() { cpu * (spec.value_size as usize).next_multiple_of(8) } else { 0 };
    full.get_mut(start..start + bytes.len()).ok_or(Errno::EINVAL)?.copy_from_slice(bytes);
    map.insert(key, &full)
}

/// All elements of a map, for per-CPU maps the values of `cpu`; `None` for kinds whose elements are not bytes. Queues and
/// stacks are emptied.
#[must_use]
pub fn map_contents(map: &Map, cpu: usize) -> Option<Contents> {
    let spec = map.spec();
    if !crate::has_byte_contents(spec.kind) {
        return None;
    }
    if spec.kind.is_queue() {
        let values = std::iter::from_fn(|| map.pop().ok());
        return Some((0_u32..).map(|place| place.to_be_bytes().to_vec()).zip(values).collect());
    }
    let value_size = spec.value_size as usize;
    let mut contents = Contents::new();
    for key in map.keys().ok()? {
        // Empty places of device maps have keys.
        let Ok(mut value) = map.lookup(&key) else { continue };
        if spec.kind.is_per_cpu() {
            value.drain(..(cpu * value_size.next_multiple_of(8)).min(value.len()));
            value.truncate(value_size);
        }
        contents.insert(key, value);
    }
    Some(contents)
}
