//! What an entry takes, when the map is full: pages of ours that are in memory, and what the kernel says it charges.

use std::error::Error;

use paceline::MapKind;

use super::program::{Kernels, Ours, kernel_name};
use super::{Like, describe, routes};
use crate::report::{Bar, Figure, Row, Unit};
use crate::{Rows, Settings};

pub(super) fn rows(settings: Settings) -> Rows {
    let entries = if settings.smoke { 10_000 } else { 1_000_000 };
    let mut rows = Vec::new();
    for (kind, key_size) in [
        (MapKind::Hash, 4),
        (MapKind::Hash, 16),
        (MapKind::Hash, 40),
        (MapKind::LruHash, 16),
        (MapKind::PerCpuHash, 16),
    ] {
        let like = Like::new(kind, key_size, entries);
        rows.extend(row(like, &format!("{}: memory for an entry", describe(like)), |ours, kernels| {
            ours.fill(0..entries)?;
            kernels.map_or(Ok(()), |kernels| kernels.fill(0..entries))
        })?);
    }
    for count in if settings.smoke { [1000, 2000] } else { [100_000, 800_000] } {
        let name = format!("lpm_trie of {count} IPv4 routes: memory for an entry");
        rows.extend(row(routes::like(count), &name, |ours, kernels| {
            for key in routes::routes(count) {
                ours.maps[0].set(&key, &[1; 8], 0)?;
                if let Some(kernels) = kernels {
                    kernels.set(&key)?;
                }
            }
            Ok(())
        })?);
    }
    Ok(rows)
}

fn row(
    like: Like,
    name: &str,
    fill: impl FnOnce(&Ours, Option<&Kernels>) -> Result<(), Box<dyn Error>>,
) -> Rows {
    // What the kernel takes is not in our resident pages.
    let before = resident_bytes()?;
    let (ours, kernels) = (Ours::empty(like)?, Kernels::empty(like));
    fill(&ours, kernels.as_ref())?;
    let entries = u64::from(like.entries);
    let per_entry = |bytes: u64| bytes.div_ceil(entries);
    let figure = Figure::Size {
        ours: per_entry(resident_bytes()?.saturating_sub(before)),
        against: kernels.map(|kernels| kernels.charged_bytes()).transpose()?.map(per_entry),
        unit: Unit::Bytes,
    };
    Ok(vec![Row::new(name, format!("{}: memlock", kernel_name()), figure).with_bar(Some(Bar::Ratio(1.0)))])
}

/// Anonymous pages of this process that are in memory.
fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let line = crate::machine::line_of("/proc/self/status", "RssAnon").ok_or("no RssAnon")?;
    let kilobytes: u64 = line.trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes << 10)
}
