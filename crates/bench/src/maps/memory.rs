//! Memory per entry of a full map: resident pages for our maps; for the kernel's the memory that it charges, or the growth
//! of its slabs where the charge is incomplete. Our map is filled in a process of its own, in which no memory was used
//! before.

use std::error::Error;
use std::process::{Command, ExitCode};

use paceline::MapKind;

use super::like::{Like, describe};
use super::program::{Kernels, Ours, kernel_name};
use super::routes;
use crate::machine;
use crate::report::{Bar, Figure, Row, Unit};
use crate::settings::{Rows, Settings};

/// Environment variable that makes a run of this program fill the map described in it and print its memory.
const FILL: &str = "PACELINE_BENCH_FILL";

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
        rows.push(row(like, &format!("{}: memory for an entry", describe(like)))?);
    }
    for count in if settings.smoke { [1000, 2000] } else { [100_000, 800_000] } {
        let name = format!("lpm_trie of {count} IPv4 routes: memory for an entry");
        rows.push(row(routes::like(count), &name)?);
    }
    Ok(rows)
}

fn row(like: Like, name: &str) -> Result<Row, Box<dyn Error>> {
    let entries = u64::from(like.entries);
    let per_entry = |bytes: u64| bytes.div_ceil(entries);
    let against = Kernels::empty(like).map(|kernels| -> Result<u64, Box<dyn Error>> {
        if like.kind != MapKind::LpmTrie {
            kernels.fill(0..like.entries)?;
            return kernels.charged_bytes();
        }
        let routes = routes::routes(like.entries);
        let before = allocated_bytes()?;
        routes.iter().try_for_each(|key| kernels.set(key))?;
        Ok(allocated_bytes()?.saturating_sub(before))
    });
    let figure = Figure::Size {
        ours: per_entry(filled_apart(like)?),
        against: against.transpose()?.map(per_entry),
        unit: Unit::Bytes,
    };
    let bar = matches!(figure, Figure::Size { against: Some(_), .. }).then_some(Bar::Ratio(1.0));
    let how = if like.kind == MapKind::LpmTrie { "kmalloc" } else { "memlock" };
    Ok(Row::new(name, format!("{}: {how}", kernel_name()), figure).with_bar(bar))
}

/// Memory of one of our maps in bytes, measured by a process that only fills it.
fn filled_apart(like: Like) -> Result<u64, Box<dyn Error>> {
    let map = format!("{} {} {}", like.kind.number(), like.key_size, like.entries);
    let mut command = Command::new(std::env::current_exe()?);
    // Makes large blocks come from the kernel, and return to it (glibc, mallopt(3)).
    command.env("MALLOC_MMAP_THRESHOLD_", "65536").env(FILL, &map);
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("filling map {map}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// Does the work of a run that was started to fill a map; `None` in other runs.
pub(crate) fn child() -> Option<ExitCode> {
    let map = std::env::var(FILL).ok()?;
    Some(match fill(&map) {
        Ok(bytes) => {
            println!("{bytes}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}

fn fill(map: &str) -> Result<u64, Box<dyn Error>> {
    let numbers: Vec<u32> = map.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    let [kind, key_size, entries] = numbers[..] else { return Err("not a map".into()) };
    let kind = MapKind::from_number(kind).ok_or("no kind of map")?;
    let is_routes = kind == MapKind::LpmTrie;
    let like = if is_routes { routes::like(entries) } else { Like::new(kind, key_size, entries) };
    let keys = if is_routes { routes::routes(entries) } else { Vec::new() };
    let before = resident_bytes()?;
    let ours = Ours::empty(like)?;
    for key in &keys {
        ours.maps[0].insert(key, &[1; 8])?;
    }
    if !is_routes {
        ours.fill(0..entries)?;
    }
    Ok(resident_bytes()?.saturating_sub(before))
}

/// Size of all objects in the kernel's general caches in bytes. The kernel's own figure for a trie (`trie_mem_usage`) counts
/// one node per entry, without the intermediate nodes, of which there are nearly as many, and without the allocator's
/// rounding.
fn allocated_bytes() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/slabinfo")?;
    let caches = text.lines().filter(|line| line.starts_with("kmalloc-"));
    let bytes = caches.filter_map(|line| {
        let mut fields = line.split_whitespace().skip(2).map(str::parse::<u64>);
        Some(fields.next()?.ok()? * fields.next()?.ok()?)
    });
    Ok(bytes.sum())
}

/// Resident anonymous pages of this process.
fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let line = machine::line_of("/proc/self/status", "RssAnon").ok_or("no RssAnon")?;
    let kilobytes: u64 = line.trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes << 10)
}
