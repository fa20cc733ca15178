//! The example balancer (`examples/balancer.bpf.c`) with many flows that it knows.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use paceline::{Engine, Limits, LookAhead, Map, MapSpec, Object, Program};

use super::flow::{PACKET, key, set_flow};
use super::traffic::{both, work};
use crate::measure::interleaved;
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings};

/// Flows of the large table.
const FLOWS: u32 = 16_000_000;

/// The balancer with a table for so many flows, all of them known.
fn balancer(entries: u32, flows: u32) -> Result<Program, Box<dyn Error>> {
    let object =
        Object::open(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/balancer.o")))?;
    let limits = Limits { cpus: 1, memory: 1 << 34 };
    let mut maps = Vec::new();
    for spec in object.maps() {
        let max_entries = if spec.name == "connections" { entries } else { spec.max_entries };
        let map = Map::create(&MapSpec { max_entries, ..spec.clone() }, &limits)?;
        map.fill(&spec.contents)?;
        maps.push(map);
    }
    let map = |name: &str| {
        let map: Option<&Arc<Map>> = maps.iter().find(|map| map.spec().name == name);
        map.ok_or_else(|| format!("the balancer has no map {name}"))
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    // To the one backend 32, by its MAC address.
    map("vips")?.insert(&[192, 0, 2, 53, 53, 0, 17, 0], &words(&[0, 32, 1]))?;
    map("backends")?.insert(&words(&[32]), &[2, 0, 0, 0, 2, 1, 1, 0, 198, 51, 100, 53])?;
    let connections = map("connections")?;
    for flow in 0..flows {
        connections.insert(&key(flow), &words(&[32, 0, 1, 0]))?;
    }
    let spec = object.programs().first().ok_or("the balancer has no program")?;
    Ok(Program::load(&object.verify(spec)?, maps, Engine::Jit)?)
}

pub(super) fn rows(settings: Settings) -> Rows {
    let large = if settings.smoke { 20_000 } else { FLOWS };
    let program = balancer(large, large)?;
    let mut rows = vec![Row {
        reach: Some(Bar::Ratio(2.2)),
        ..row(settings, &program, [large; 2], LookAhead::Auto)?.with_bar(Some(Bar::Ratio(1.6)))
    }];
    #[cfg(feature = "native")]
    rows.extend(super::native::rows(settings, &program, large)?);
    drop(program);
    // Look-ups ahead must cost nothing on tables that fit into the caches.
    let row_of =
        |entries, flows, look_ahead| row(settings, &balancer(entries, flows)?, [entries, flows], look_ahead);
    rows.push(row_of(large, 1000, LookAhead::Auto)?.with_bar(Some(Bar::Ratio(0.98))));
    for flows in if settings.smoke { [1000, 2000, 4000] } else { [1000, 10_000, 100_000] } {
        rows.push(row_of(flows, flows, LookAhead::Always)?);
    }
    Ok(rows)
}

/// The time with look-ups ahead and without, of a table for so many entries with so many flows.
fn row(
    settings: Settings,
    program: &Program,
    [entries, flows]: [u32; 2],
    look_ahead: LookAhead,
) -> Result<Row, Box<dyn Error>> {
    let write = move |rng: &mut fastrand::Rng, packet: &mut [u8]| set_flow(packet, rng.u32(..flows));
    let [ahead, never] = both(program.clone(), look_ahead);
    let mut contenders = [work(settings, ahead, &PACKET, write)?, work(settings, never, &PACKET, write)?];
    let times = interleaved(settings.smoke, &mut contenders)?;
    let figure = Figure::Time { ours: times[0], against: Some(times[1]) };
    let name = format!("balancer, table for {entries} flows, with {flows}, look-ups ahead: {look_ahead}");
    Ok(Row::new(name, "never", figure))
}
