//! Longest-prefix maps: IPv4 routes with the distribution of prefix lengths of the Internet.

use std::error::Error;

use paceline::{MapFlags, MapKind};

use super::differences::{Pair, differences};
use super::like::Like;
use super::program::{Kernels, Keys, Ours, Task, kernel_name};
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings};

/// Number of routes per thousand for each length from 8 on: most have 24 bits, and many 22 and 23 (routing tables published
/// by the RIPE's collectors).
const LENGTHS: [(u32, u32); 12] = [
    (8, 1),
    (12, 3),
    (16, 15),
    (17, 9),
    (18, 15),
    (19, 26),
    (20, 45),
    (21, 52),
    (22, 115),
    (23, 105),
    (24, 610),
    (32, 4),
];

/// Keys of this number of different routes.
pub(crate) fn routes(count: u32) -> Vec<[u8; 8]> {
    let mut rng = fastrand::Rng::with_seed(6);
    let mut seen = std::collections::HashSet::new();
    let mut routes = Vec::new();
    while routes.len() < count as usize {
        let mut place = rng.u32(..1000);
        let found = LENGTHS.iter().find(|(_, share)| {
            let is_here = place < *share;
            place = place.saturating_sub(*share);
            is_here
        });
        let length = found.map_or(24, |(length, _)| *length);
        // Unicast addresses.
        let address = rng.u32(1 << 24..224 << 24) & (u32::MAX << (u32::BITS - length));
        if seen.insert((length, address)) {
            let (length, address) = (length.to_ne_bytes(), address.to_be_bytes());
            let mut key = [0; 8];
            key[..4].copy_from_slice(&length);
            key[4..].copy_from_slice(&address);
            routes.push(key);
        }
    }
    routes
}

pub(super) fn like(count: u32) -> Like {
    Like { flags: MapFlags::NO_PREALLOC, ..Like::new(MapKind::LpmTrie, 8, count) }
}

pub(super) fn rows(settings: Settings) -> Rows {
    let counts = if settings.smoke { [1000, 2000] } else { [100_000, 800_000] };
    counts.into_iter().map(|count| row(settings, count)).collect()
}

fn row(settings: Settings, count: u32) -> Result<Row, Box<dyn Error>> {
    let (ours, kernels) = (Ours::empty(like(count))?, Kernels::empty(like(count)));
    let routes = routes(count);
    for key in &routes {
        ours.maps[0].insert(key, &[1; 8])?;
    }
    let keys = Keys { count: 0, start: 0 };
    let mut subjects: Vec<Pair<'_>> =
        vec![(Box::new(ours.with(Task::LookUp, keys)?), Box::new(ours.with(Task::Nothing, keys)?))];
    if let Some(kernels) = &kernels {
        for key in &routes {
            kernels.set(key)?;
        }
        let pair = (kernels.with(Task::LookUp, keys)?, kernels.with(Task::Nothing, keys)?);
        subjects.push((Box::new(pair.0), Box::new(pair.1)));
    }
    let times = differences(settings, &mut subjects)?;
    let against = times.get(1).copied();
    let name = format!("lpm_trie of {count} IPv4 routes: any address");
    let figure = Figure::Time { ours: times[0], against };
    let row = Row::new(name, kernel_name(), figure).with_bar(against.map(|_| Bar::Ratio(3.0)));
    Ok(Row { reach: against.map(|_| Bar::Ratio(10.0)), ..row })
}
