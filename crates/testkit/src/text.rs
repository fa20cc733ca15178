//! XDP programs in text, with maps by name.

use std::error::Error;
use std::sync::Arc;

use paceline_isa::{Names, assemble};
use paceline_maps::{Limits, Map};
use paceline_spec::helper::Helper;
use paceline_spec::{MapFlags, MapKind, MapSpec, Pinning, ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, Verified, verify};

/// Helpers, and maps by what they are called.
struct Known<'a>(&'a [MapSpec]);

impl Names for Known<'_> {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id as i32)
    }

    fn map(&self, name: &str) -> Option<i32> {
        self.0.iter().position(|map| map.name == name).map(|index| index as i32)
    }
}

/// A program that nobody has verified.
///
/// # Errors
/// The text does not assemble.
pub fn xdp(text: &str, attach: XdpAttach, maps: &[MapSpec]) -> Result<ProgramSpec, Box<dyn Error>> {
    let insns = assemble(text, &Known(maps))?.encode()?;
    let mut spec = ProgramSpec::new("program", ProgramKind::Xdp { attach, frags: false }, insns);
    spec.license = "GPL".to_owned();
    Ok(spec)
}

/// A program that our verifier takes.
///
/// # Errors
/// The text does not assemble, or the program is refused.
pub fn verified(text: &str, attach: XdpAttach, maps: &[Arc<Map>]) -> Result<Verified, Box<dyn Error>> {
    let maps: Vec<MapSpec> = maps.iter().map(|map| map.spec().clone()).collect();
    Ok(verify(&xdp(text, attach, &maps)?, &maps, None, &Options::default())?)
}

/// A map of so many entries whose keys are numbers of 32 bits.
#[must_use]
pub fn map_spec(name: &str, kind: MapKind, value_size: u32, max_entries: u32) -> MapSpec {
    MapSpec {
        name: name.to_owned(),
        kind,
        key_size: 4,
        value_size,
        max_entries,
        flags: MapFlags(0),
        extra: 0,
        pinning: Pinning::None,
        key_type: 0,
        value_type: 0,
        special: Box::default(),
        inner: None,
        contents: Vec::new(),
        frozen: false,
    }
}

/// The same map, for so many CPUs.
///
/// # Errors
/// The kind does not take such values.
pub fn map(spec: &MapSpec, cpus: usize) -> Result<Arc<Map>, Box<dyn Error>> {
    Ok(Map::create(spec, &Limits { cpus, memory: 1 << 20 })?)
}
