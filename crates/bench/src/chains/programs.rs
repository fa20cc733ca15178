//! The programs of the chains.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use paceline::{LoadOptions, Map, Object};
use paceline_spec::XdpAttach;
use paceline_testkit::text;
use paceline_verifier::Verified;

use crate::settings::CONTENDERS;

/// A program and its maps.
pub(super) type Part = (Verified, Vec<Arc<Map>>);

/// The first program of the chain-call patches.
pub(super) const PASS: &str = "r0 = 2\nexit";
/// The second program of the chain-call patches.
pub(super) const DROP: &str = "r0 = 1\nexit";
/// Passes IPv4 packets.
pub(crate) const IPV4: &str = "
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r0 = 1
    r4 = r2
    r4 += 34
    if r4 > r3 goto out
    r4 = *(u16 *)(r2 + 12)
    if r4 != 8 goto out
    r0 = 2
  out:
    exit";
/// Passes TCP over IPv4.
pub(super) const TCP: &str = "
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r0 = 1
    r4 = r2
    r4 += 34
    if r4 > r3 goto out
    r4 = *(u8 *)(r2 + 23)
    if r4 != 6 goto out
    r0 = 2
  out:
    exit";
/// The work of the two programs before.
pub(super) const BOTH: &str = "
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r0 = 1
    r4 = r2
    r4 += 34
    if r4 > r3 goto out
    r4 = *(u16 *)(r2 + 12)
    if r4 != 8 goto out
    r4 = *(u8 *)(r2 + 23)
    if r4 != 6 goto out
    r0 = 2
  out:
    exit";

/// Examples that parse the same headers, three at a time. Programs with tail calls leave the fused code.
pub(super) const EXAMPLES: [[&str; 3]; 3] = [
    ["firewall", "balancer", "reflector"],
    ["counter", "firewall", "balancer"],
    ["protocols", "counter", "firewall"],
];

/// Assembles a program.
pub(super) fn part(program: &str) -> Result<Part, Box<dyn Error>> {
    Ok((text::verified(program, XdpAttach::Interface, &[])?, Vec::new()))
}

/// This number of example programs in a row, each with its own maps.
pub(super) fn examples(names: &[&str], count: usize) -> Result<Vec<Part>, Box<dyn Error>> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let open = |name: &&str| Ok(Object::open(folder.join(format!("{name}.o")))?);
    let objects = names.iter().map(open).collect::<Result<Vec<Object>, Box<dyn Error>>>()?;
    objects.iter().cycle().take(count).map(|object| of_object(object, None)).collect()
}

fn of_object(object: &Object, name: Option<&str>) -> Result<Part, Box<dyn Error>> {
    let mut programs = object.programs().iter();
    let spec = programs.find(|spec| name.is_none_or(|name| spec.name == name)).ok_or("no such program")?;
    let collection = object.load(&LoadOptions::default().cpus(CONTENDERS))?;
    Ok((object.verify(spec)?, collection.maps().to_vec()))
}
