//! XDP programs in text, with maps by name.

use std::error::Error;
use std::sync::Arc;

use paceline_isa::{Names, assemble};
use paceline_maps::{Limits, Map};
use paceline_spec::helper::Helper;
use paceline_spec::{MapSpec, ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, Verified, verify};

/// Resolves helpers, and maps by name.
struct Known<'a>(&'a [MapSpec]);

impl Names for Known<'_> {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }

    fn map(&self, name: &str) -> Option<i32> {
        self.0.iter().position(|map| map.name == name).map(|index| index as i32)
    }
}

/// An unverified program.
///
/// # Errors
/// The text does not assemble.
pub fn xdp(text: &str, attach: XdpAttach, maps: &[MapSpec]) -> Result<ProgramSpec, Box<dyn Error>> {
    let insns = assemble(text, &Known(maps))?.encode()?;
    let mut spec = ProgramSpec::new("program", ProgramKind::Xdp { attach, frags: false }, insns);
    spec.license = "GPL".to_owned();
    Ok(spec)
}

/// A verified program.
///
/// # Errors
/// The text does not assemble, or the program is refused.
pub fn verified(text: &str, attach: XdpAttach, maps: &[Arc<Map>]) -> Result<Verified, Box<dyn Error>> {
    let maps: Vec<MapSpec> = maps.iter().map(|map| map.spec().clone()).collect();
    Ok(verify(&xdp(text, attach, &maps)?, &maps, None, &Options::default())?)
}

/// A map for a number of CPUs.
///
/// # Errors
/// The kind does not support these values.
pub fn map(spec: &MapSpec, cpus: usize) -> Result<Arc<Map>, Box<dyn Error>> {
    Ok(Map::create(spec, &Limits { cpus, memory: 1 << 20 })?)
}
