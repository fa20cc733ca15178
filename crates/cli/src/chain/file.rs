//! Chain files: loaded with the options of the command line.

use std::path::{Path, PathBuf};

use paceline::Object;
use paceline::chain::{
    ChainLoadOptions, ChainPart, ChainSource, FileObject, LoadedChain, ObjectSource, OpenedChain,
};
use paceline::contents::{ContentsError, MapContents};

use super::error::{ChainError, of_file};
use super::loaded::{LoadHow, Loaded};
use crate::common::failure::Failure;
use crate::common::files::Taken;
use crate::maps::{self, MapFile};
use crate::object::note_unfilled;

/// Loads a chain file.
pub(crate) fn load(path: &Path, how: &LoadHow) -> Result<Loaded, Failure> {
    let made = make(path, how, None)?;
    let live = made.live().map_err(of_file)?;
    let (source, origins, placed) = (made.source(), origins(&made), made.placed());
    let port = &source.file().port;
    let [input, out, drops] = [&port.input, &port.out, &port.drops].map(|path| {
        let path = path.as_ref().map(|path| &path.value)?;
        Some(if path == Path::new("-") { path.clone() } else { source.resolve(path) })
    });
    let (name, taken) = (path.display().to_string(), taken(path, source));
    Ok(Loaded { name, live, parts: made.parts, origins, placed, taken, input, out, drops })
}

/// Makes everything that a chain file says, with the maps of objects before where names and shapes agree.
pub(crate) fn make(
    path: &Path,
    how: &LoadHow,
    replaces: Option<&[ChainPart]>,
) -> Result<LoadedChain, Failure> {
    let source = ChainSource::read(path).map_err(of_file)?;
    let saved = how.saved()?;
    let opened = source.open_with(|object, path| open(&source, object, path, how))?;
    how.opener.check_shapes(opened.objects().iter())?;
    // A chain that is changed under traffic keeps its own contents.
    let contents = match saved.filter(|_| replaces.is_none()) {
        Some(saved) => restored(&source, &opened, &saved)?,
        None => Vec::new(),
    };
    let options = ChainLoadOptions {
        load: how.options(),
        verifies: !how.unverified,
        replaces: replaces.unwrap_or_default(),
        contents: &contents,
    };
    let made = opened.load(&options).map_err(of_file)?;
    made.parts.iter().for_each(|part| note_unfilled(&part.collection, 0));
    Ok(made)
}

/// Index of each program's object, by its name in the chain.
pub(super) fn origins(made: &LoadedChain) -> Vec<(String, usize)> {
    let programs = made.source().file().programs.iter();
    programs.map(|program| (program.name.value.clone(), program.object)).collect()
}

/// Opens an object: object files by the options of the command line.
fn open(
    source: &ChainSource,
    object: &FileObject,
    path: Option<PathBuf>,
    how: &LoadHow,
) -> Result<Object, Failure> {
    match (&object.source, path) {
        (ObjectSource::Object(file), Some(path)) => how.opener.open(&path, None).map_err(|error| {
            let (name, at) = (source.path().display().to_string(), file.at);
            ChainError::At { name, at, source: error.into() }.into()
        }),
        _ => source.open_object(object).map_err(of_file),
    }
}

/// The map contents that an earlier run saved, for each object.
fn restored(
    source: &ChainSource,
    opened: &OpenedChain,
    saved: &paceline::contents::SavedMaps,
) -> Result<Vec<Vec<MapContents>>, ContentsError> {
    let objects = &source.file().objects;
    let of = |(said, object): (&FileObject, &Object)| {
        maps::restored(saved, object, (objects.len() > 1).then_some(said.name.value.as_str()))
    };
    objects.iter().zip(opened.objects()).map(of).collect()
}

/// The files that were read, which no output may replace.
fn taken(path: &Path, source: &ChainSource) -> Vec<Taken> {
    let mut taken: Vec<_> =
        Taken::of_path(path, &format!("the chain file {}", path.display())).into_iter().collect();
    for object in &source.file().objects {
        if let Some(path) = source.path_of(object) {
            taken.extend(Taken::of_path(&path, &format!("the object {}", path.display())));
        }
    }
    let maps = source.map_files().map(|(map, path)| MapFile { map: map.to_owned(), path });
    taken.extend(maps::identities(&maps.collect::<Vec<_>>()));
    taken
}
