//! A large array, with random indexes and with a few: arrays count as in use with all elements.

use std::error::Error;

use paceline::verifier::{Options, verify};
use paceline::{Engine, Limits, LookAhead, Map, MapKind, MapSpec, Program};
use paceline_isa::{Names, assemble};
use paceline_spec::helper::Helper;
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};

use super::flow::PACKET;
use super::traffic::{both, work};
use crate::measure::interleaved;
use crate::report::{Figure, Row};
use crate::settings::{Rows, Settings};

/// Counts packets by their source address.
const PROGRAM: &str = "
    r2 = *(u32 *)(r1 + 4)
    r6 = *(u32 *)(r1 + 0)
    r0 = 1
    r3 = r6
    r3 += 34
    if r3 > r2 goto out
    r3 = *(u32 *)(r6 + 26)
    *(u32 *)(r10 - 4) = r3
    r1 = map[0] ll
    r2 = r10
    r2 += -4
    call bpf_map_lookup_elem
    if r0 == 0 goto drop
    r1 = *(u64 *)(r0 + 0)
    r1 += 1
    *(u64 *)(r0 + 0) = r1
drop:
    r0 = 1
out:
    exit";

struct ByIndex;

impl Names for ByIndex {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }

    fn map(&self, name: &str) -> Option<i32> {
        name.parse().ok()
    }
}

fn counter(entries: u32) -> Result<Program, Box<dyn Error>> {
    let specs = [MapSpec::new("counts", MapKind::Array, 4, 8, entries)];
    let map = Map::create(&specs[0], &Limits { cpus: 1, memory: 1 << 34 })?;
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let spec = ProgramSpec::new("counter", kind, assemble(PROGRAM, &ByIndex)?.encode()?);
    let verified = verify(&spec, &specs, None, &Options::default())?;
    Ok(Program::load(&verified, vec![map], Engine::Jit)?)
}

pub(super) fn rows(settings: Settings) -> Rows {
    let entries = if settings.smoke { 1 << 12 } else { 1 << 24 };
    let program = counter(entries)?;
    let row = |used: u32| {
        let write = move |rng: &mut fastrand::Rng, packet: &mut [u8]| {
            packet[26..30].copy_from_slice(&rng.u32(..used).to_ne_bytes());
        };
        let [ahead, never] = both(program.clone(), LookAhead::Auto);
        let mut contenders = [work(settings, ahead, &PACKET, write)?, work(settings, never, &PACKET, write)?];
        let times = interleaved(settings.smoke, &mut contenders)?;
        let figure = Figure::Time { ours: times[0], against: Some(times[1]) };
        let name = format!("array of {entries} counters, with {used} in use, look-ups ahead: auto");
        Ok(Row::new(name, "never", figure))
    };
    [entries, 100].into_iter().map(row).collect()
}
