//! 64-bit loads: numbers, maps, addresses in map values, functions.

use std::collections::HashSet;

use paceline_isa::{Imm64, Insn};

use crate::domain::number::Number;
use crate::domain::state::{MapRef, Pointer, Target, Value};
use crate::env::Env;
use crate::error::{Cause, Check, Refusal, reject};
use crate::limits::{MAX_OFFSET, MAX_USED_MAPS};

/// Checks every 64-bit load, also unreachable ones, as the kernel does before the walk.
pub(crate) fn check_immediates(env: &Env<'_>) -> Result<(), Box<Refusal>> {
    let mut maps = HashSet::new();
    for (slot, insn) in env.code.iter() {
        let Insn::LoadImm64 { value, .. } = *insn else { continue };
        immediate(env, slot, value).map_err(|problem| Refusal::at(slot, problem.cause))?;
        if let Imm64::MapIndex(index) | Imm64::MapValueIndex { index, .. } = value {
            maps.insert(index);
        }
        if maps.len() > MAX_USED_MAPS {
            return Err(Refusal::at(slot, Cause::TooManyMaps));
        }
    }
    Ok(())
}

/// The value of a 64-bit load.
pub(crate) fn immediate(env: &Env<'_>, slot: usize, value: Imm64) -> Check<Value> {
    match value {
        Imm64::Value(value) => Ok(Value::number(Number::constant(value))),
        Imm64::MapIndex(index) => {
            let map = map_index(env, index)?;
            check_map_with_lock(env, map)?;
            Ok(Value::Pointer(Pointer::to(Target::Map(map))))
        }
        Imm64::MapValueIndex { index, offset } => {
            let map = map_index(env, index)?;
            check_map_with_lock(env, map)?;
            map_address(env, map, offset)
        }
        Imm64::Code { .. } => {
            let slot = env.code.get(slot).and_then(|insn| insn.subprogram_target(slot));
            let slot = slot.and_then(|slot| u32::try_from(slot).ok()).unwrap_or(u32::MAX);
            Ok(Value::Pointer(Pointer::to(Target::Code { slot })))
        }
        Imm64::MapFd(_) | Imm64::MapValueFd { .. } => reject(Cause::NotAllowed("a map by file descriptor")),
        Imm64::Variable { .. } => reject(Cause::NotAllowed("the address of a kernel variable")),
    }
}

fn map_index(env: &Env<'_>, index: i32) -> Check<MapRef> {
    match u32::try_from(index) {
        Ok(i) if (i as usize) < env.maps.len() => Ok(MapRef { index: i, inner: false }),
        _ => reject(Cause::NoMap(index)),
    }
}

/// A direct value address: only arrays with one element have them (`resolve_pseudo_ldimm64`).
fn map_address(env: &Env<'_>, map: MapRef, offset: u32) -> Check<Value> {
    match env.map(map) {
        Some(spec)
            if spec.kind.rules().is_addressable
                && spec.max_entries == 1
                && offset < spec.value_size
                && i64::from(offset) < MAX_OFFSET =>
        {
            let fixed = offset as i32;
            Ok(Value::Pointer(Pointer { fixed, ..Pointer::to(Target::MapValue(map)) }))
        }
        Some(spec) => reject(Cause::MapAddress(spec.name.clone(), offset)),
        None => reject(Cause::NoMap(map.index as i32)),
    }
}

/// Program types that may use maps with locks (`check_map_prog_compatibility`).
fn check_map_with_lock(env: &Env<'_>, map: MapRef) -> Check {
    let has_lock = env.map(map).is_some_and(|spec| spec.spin_lock().is_some());
    if has_lock && !env.program.kind.rules().spin_locks {
        return reject(Cause::NotAllowed("a map with a bpf_spin_lock"));
    }
    Ok(())
}
