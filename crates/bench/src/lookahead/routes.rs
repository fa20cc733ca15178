//! A program with two look-ups that do not depend on each other: a route of the destination, and a flow.

use std::error::Error;

use paceline::verifier::{Options, verify};
use paceline::{Engine, Limits, LookAhead, Map, MapFlags, MapKind, MapSpec, Program};
use paceline_isa::{Names, assemble};
use paceline_spec::helper::Helper;
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};

use super::flow::PACKET;
use super::traffic::{both, work};
use crate::maps::routes::routes;
use crate::measure::interleaved;
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings};

/// Looks the destination up among routes, and source and ports among flows; counts in both, and drops packets without a route.
const PROGRAM: &str = "
    r2 = *(u32 *)(r1 + 4)
    r6 = *(u32 *)(r1 + 0)
    r0 = 1
    r3 = r6
    r3 += 42
    if r3 > r2 goto out
    r3 = *(u16 *)(r6 + 12)
    if r3 != 8 goto out
    *(u32 *)(r10 - 8) = 32
    r3 = *(u32 *)(r6 + 30)
    *(u32 *)(r10 - 4) = r3
    r1 = map[routes] ll
    r2 = r10
    r2 += -8
    call bpf_map_lookup_elem
    if r0 == 0 goto drop
    r7 = *(u32 *)(r0 + 0)
    r3 = *(u32 *)(r6 + 26)
    *(u32 *)(r10 - 16) = r3
    r3 = *(u32 *)(r6 + 34)
    *(u32 *)(r10 - 12) = r3
    r1 = map[flows] ll
    r2 = r10
    r2 += -16
    call bpf_map_lookup_elem
    if r0 == 0 goto drop
    r1 = *(u64 *)(r0 + 0)
    r1 += r7
    *(u64 *)(r0 + 0) = r1
    r0 = 3
    exit
drop:
    r0 = 1
out:
    exit";

struct Maps;

impl Names for Maps {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }

    fn map(&self, name: &str) -> Option<i32> {
        ["routes", "flows"].iter().position(|known| *known == name).map(|index| index as i32)
    }
}

/// The program with so many routes and flows.
fn router(route_count: u32, flows: u32) -> Result<Program, Box<dyn Error>> {
    let specs = [
        MapSpec {
            flags: MapFlags::NO_PREALLOC,
            ..MapSpec::new("routes", MapKind::LpmTrie, 8, 8, route_count + 1)
        },
        MapSpec::new("flows", MapKind::Hash, 8, 8, flows),
    ];
    let limits = Limits { cpus: 1, memory: 1 << 34 };
    let maps = specs.iter().map(|spec| Map::create(spec, &limits)).collect::<Result<Vec<_>, _>>()?;
    // A default route, so that each packet comes to the second look-up.
    maps[0].insert(&[0; 8], &[1; 8])?;
    for key in routes(route_count) {
        maps[0].insert(&key, &[1; 8])?;
    }
    for flow in 0..flows {
        maps[1].insert(&key(flow), &[1; 8])?;
    }
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let spec = ProgramSpec::new("router", kind, assemble(PROGRAM, &Maps)?.encode()?);
    let verified = verify(&spec, &specs, None, &Options::default())?;
    Ok(Program::load(&verified, maps, Engine::Jit)?)
}

/// Source and ports of a flow, as in the packet.
fn key(flow: u32) -> [u8; 8] {
    let [a, b, c, d] = flow.to_ne_bytes();
    [10, d, c, b, a, 1, 0, 53]
}

pub(super) fn rows(settings: Settings) -> Rows {
    let (route_count, flows) = if settings.smoke { (1000, 4000) } else { (800_000, 4_000_000) };
    let write = move |rng: &mut fastrand::Rng, packet: &mut [u8]| {
        let key = key(rng.u32(..flows));
        packet[26..30].copy_from_slice(&key[..4]);
        packet[34..38].copy_from_slice(&key[4..]);
        packet[30..34].copy_from_slice(&rng.u32(1 << 24..224 << 24).to_be_bytes());
    };
    let [ahead, never] = both(router(route_count, flows)?, LookAhead::Auto);
    let mut contenders = [work(settings, ahead, &PACKET, write)?, work(settings, never, &PACKET, write)?];
    let times = interleaved(settings.smoke, &mut contenders)?;
    let figure = Figure::Time { ours: times[0], against: Some(times[1]) };
    let name = format!("{route_count} routes and {flows} flows in one program, look-ups ahead: auto");
    let row = Row::new(name, "never", figure).with_bar(Some(Bar::Ratio(1.5)));
    Ok(vec![Row { reach: Some(Bar::Ratio(2.0)), ..row }])
}
