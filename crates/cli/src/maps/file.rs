//! Files with the contents of maps.

use std::path::PathBuf;

use paceline::contents::{ContentsError, MapContents};

use crate::common::files::Taken;

/// A map and a file with its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapFile {
    pub(crate) map: String,
    pub(crate) path: PathBuf,
}

/// Reads all map files first, so that an error in the last one is reported before any map changes.
pub(crate) fn read_files(files: &[MapFile]) -> Result<Vec<MapContents>, ContentsError> {
    files.iter().map(|file| MapContents::read(&file.map, &file.path)).collect()
}

/// The files, which no output may replace.
pub(crate) fn identities(files: &[MapFile]) -> impl Iterator<Item = Taken> {
    files.iter().filter_map(|file| {
        Taken::of_path(&file.path, &format!("the file {} of map {}", file.path.display(), file.map))
    })
}
