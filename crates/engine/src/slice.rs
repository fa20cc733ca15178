//! The slice of a program for look-ups ahead, verified.

use std::sync::Arc;

use paceline_compiler::slice::{LookUps, is_quiet, slice};
use paceline_isa::Code;
use paceline_maps::{Fill, Map};
use paceline_spec::{MapSpec, ProgramSpec};
use paceline_verifier::{MapFact, Options, Verified, verify};

use crate::look_ahead::{LARGE, LookAhead, NoSlice};

/// A slice, verified, and the maps in which it looks keys up.
pub(crate) struct Slice {
    pub(crate) verified: Verified,
    pub(crate) maps: Box<[Arc<Map>]>,
}

impl Slice {
    /// The slice of a program, for maps that may be large, or for all of them.
    pub(crate) fn of(
        spec: &ProgramSpec,
        code: &Code,
        maps: &[Arc<Map>],
        look_ahead: LookAhead,
    ) -> Result<Self, NoSlice> {
        let least = match look_ahead {
            LookAhead::Auto => LARGE,
            LookAhead::Always => 0,
            LookAhead::Never => return Err(NoSlice::NotAsked),
        };
        let look_ups: Vec<LookUps> = maps.iter().map(|map| look_ups(map, least)).collect();
        let sliced = slice(code, spec.kind, &look_ups).ok_or(NoSlice::NoLookUp)?;
        if !is_quiet(&sliced) {
            return Err(NoSlice::Refused("it has effects".to_owned()));
        }
        let insns = sliced.encode().map_err(|error| NoSlice::Refused(error.to_string()))?;
        let mut program = ProgramSpec::new(&format!("{}.ahead", spec.name), spec.kind, insns);
        program.section.clone_from(&spec.section);
        program.license.clone_from(&spec.license);
        // Contents are not in the specification of a map, so that none is taken for constants.
        let specs: Vec<MapSpec> =
            maps.iter().map(|map| MapSpec { frozen: false, ..map.spec().clone() }).collect();
        let verified = verify(&program, &specs, None, &options())
            .map_err(|error| NoSlice::Refused(error.to_string()))?;
        let used = verified.facts().iter().filter_map(|fact| match fact.map {
            Some(MapFact::Always(map)) if !map.inner => Some(map.index as usize),
            _ => None,
        });
        let mut used: Vec<usize> = used.collect();
        used.sort_unstable();
        used.dedup();
        let maps = used.iter().filter_map(|&index| maps.get(index).cloned()).collect();
        Ok(Self { verified, maps })
    }
}

/// A slice has some thousand instructions at most; one whose proof takes more than so many steps is not worth it.
fn options() -> Options {
    Options::default().max_instructions(50_000).max_work(5_000_000)
}

fn look_ups(map: &Map, least: u64) -> LookUps {
    let is_one_value = map.spec().kind.is_array() && map.spec().max_entries == 1;
    // What the run-time check compares too, so that a map without a slice never becomes large.
    let may_be_large = map.for_programs().look_up_bytes(Fill::Full) >= least;
    if may_be_large && !is_one_value && map.for_programs().ahead_function().is_some() {
        LookUps::Ahead { key_size: map.spec().key_size }
    } else {
        LookUps::Unknown
    }
}
