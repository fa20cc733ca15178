//! Objects and captures on this machine.

use std::fs;
use std::path::{Path, PathBuf};

/// Files with one of these extensions in directories, or given directly, in order.
#[must_use]
pub fn files_below(places: &[PathBuf], extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for place in places {
        collect(place, extensions, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

fn collect(place: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    if !place.is_dir() {
        found.push(place.to_owned());
        return;
    }
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_wanted = || path.extension().is_some_and(|end| extensions.iter().any(|wanted| end == *wanted));
        // Symbolic links to directories may form a cycle.
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory || path.is_file() && is_wanted() {
            collect(&path, extensions, found);
        }
    }
}

/// Packets of captures whose lengths a test run supports, at most this number of each capture.
///
/// # Errors
/// A capture that cannot be read, with its path.
pub fn captured(paths: &[PathBuf], most: u64) -> Result<Vec<Vec<u8>>, String> {
    let workload = crate::whole::Workload::read(paths.iter().cloned(), most);
    if let Some((path, error)) = workload.refused.first() {
        return Err(format!("{}: {error}", path.display()));
    }
    let packets = workload.packets.into_iter().map(|packet| packet.data);
    Ok(packets.filter(|data| crate::kernel::check_packet(data.len(), 0)).collect())
}
