//! The objects, maps and programs of a chain file, made.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::chain_graph::{
    FileError, FileObject, FileOrder, FilePlace, FileProblem, FileProgram, MapSource, Placement, RunConfig,
};
use paceline_frame::Verdict;
use paceline_maps::Map;
use paceline_spec::Meaning;
use paceline_spec::graph::{Edges, Next};

use super::error::{ChainFileCause, ChainFileError};
use super::source::{ChainSource, OpenedChain};
use crate::contents::{ContentsCause, ContentsError, MapContents};
use crate::live::{ChangeError, Link, LinkTarget, LiveChain, Member, NoMember, Order};
use crate::load::Object;
use crate::load::PinnedMaps;
use crate::load::{Collection, LoadOptions};

/// How the objects of a chain file are loaded.
#[derive(Clone, Copy)]
pub struct ChainLoadOptions<'a> {
    /// Options of all objects.
    pub load: LoadOptions,
    /// Whether programs are verified; those that are not run on the plain interpreter, which checks them.
    pub verifies: bool,
    /// The parts of a chain that this one takes the place of: maps of objects of the same name are kept where name and shape agree, with
    /// their contents.
    pub replaces: &'a [ChainPart],
    /// Contents of the maps of each object, by its index in the file, that come before those of the file.
    pub contents: &'a [Vec<MapContents>],
}

impl std::fmt::Debug for ChainLoadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChainLoadOptions").finish_non_exhaustive()
    }
}

impl Default for ChainLoadOptions<'_> {
    /// Those of [`LoadOptions`]; programs are verified.
    fn default() -> Self {
        Self { load: LoadOptions::default(), verifies: true, replaces: &[], contents: &[] }
    }
}

/// An object of a chain file, loaded.
#[derive(Clone)]
pub struct ChainPart {
    /// Its name in the file.
    pub name: String,
    /// Its maps and programs.
    pub collection: Collection,
}

impl std::fmt::Debug for ChainPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChainPart").finish_non_exhaustive()
    }
}

/// What a chain file describes, made: a [`LiveChain`] can be made of it, or changed to it by [`Change::All`](crate::Change::All).
#[derive(Clone)]
pub struct LoadedChain {
    source: ChainSource,
    /// The objects, in the order of the file.
    pub parts: Vec<ChainPart>,
    /// The programs, in the order of the file with placements applied.
    pub members: Vec<Member>,
    /// Their order.
    pub order: Order,
    /// Maps that were kept from the parts before: the object's name and the map's.
    pub kept: Vec<(String, String)>,
}

impl std::fmt::Debug for LoadedChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedChain").finish_non_exhaustive()
    }
}

impl LoadedChain {
    /// A chain of the programs.
    ///
    /// # Errors
    /// [`ChainFileError::Change`].
    pub fn live(&self) -> Result<LiveChain, ChainFileError> {
        let live = LiveChain::new(self.members.clone(), self.order.clone());
        live.map_err(|source| ChainFileError::Change {
            file: self.source.path.clone(),
            at: self.place(&source),
            source,
        })
    }

    /// Where the program is named that an error is about.
    fn place(&self, error: &ChangeError) -> Option<FilePlace> {
        let name = match error {
            ChangeError::NoMember { name, .. }
            | ChangeError::Needed { name, .. }
            | ChangeError::TwoLinks { name, .. }
            | ChangeError::NameTaken(name) => name,
            _ => return None,
        };
        let mut programs = self.source.file.programs.iter();
        programs.find(|program| program.name.value == *name).map(|program| program.name.at)
    }

    /// The file that it was loaded from.
    #[must_use]
    pub fn source(&self) -> &ChainSource {
        &self.source
    }

    /// The object of a program, by the program's name in the chain.
    #[must_use]
    pub fn part(&self, program: &str) -> Option<&ChainPart> {
        let programs = &self.source.file.programs;
        self.parts.get(programs.iter().find(|other| other.name.value == program)?.object)
    }

    /// Programs that were placed relative to others, with the place.
    #[must_use]
    pub fn placed(&self) -> Vec<(String, Placement<String>)> {
        let programs = &self.source.file.programs;
        let placed = |program: &FileProgram| {
            let place = program.placement?.map(|index| name_of(programs, index));
            Some((program.name.value.clone(), place))
        };
        programs.iter().filter_map(placed).collect()
    }
}

impl OpenedChain {
    /// Makes the maps of all objects, fills them, and verifies the programs.
    ///
    /// # Errors
    /// [`ChainFileError`].
    pub fn load(self, options: &ChainLoadOptions<'_>) -> Result<LoadedChain, ChainFileError> {
        let Self { source, objects } = self;
        let mut making = Making {
            source: &source,
            options,
            instance: PinnedMaps::new(),
            parts: objects.iter().map(|_| None).collect(),
            kept: Vec::new(),
        };
        for index in source.file.load_order() {
            if let Some(object) = objects.get(index) {
                making.part(index, object.clone())?;
            }
        }
        let members =
            source.file.members().map(|program| making.member(program)).collect::<Result<_, _>>()?;
        let Making { parts, kept, .. } = making;
        let parts = parts.into_iter().flatten().collect();
        let order = order(&source);
        Ok(LoadedChain { source, parts, members, order, kept })
    }
}

struct Making<'a> {
    source: &'a ChainSource,
    options: &'a ChainLoadOptions<'a>,
    /// The maps that objects pin by name.
    instance: PinnedMaps,
    /// The objects by their indices in the file; `None` for those that are not loaded yet.
    parts: Vec<Option<ChainPart>>,
    kept: Vec<(String, String)>,
}

impl Making<'_> {
    fn loaded(&self, index: usize) -> Option<&ChainPart> {
        self.parts.get(index)?.as_ref()
    }

    /// Loads an object; those whose maps it shares are there.
    fn part(&mut self, index: usize, mut object: Object) -> Result<(), ChainFileError> {
        let (source, options) = (self.source, self.options);
        let Some(said) = source.file.objects.get(index) else { return Ok(()) };
        let name = said.name.value.clone();
        let shared = self.shared(said)?;
        let (before, given) =
            (options.contents.get(index).map_or(&[][..], Vec::as_slice), self.contents(said)?);
        object.set_variables(before)?;
        given.iter().try_for_each(|given| {
            object.set_variables([&given.contents]).map_err(|error| given.wrong(source, error))
        })?;
        let replaced = options.replaces.iter().find(|part| part.name == name);
        let replaced = replaced.map(|part| &part.collection);
        let loaded = self.instance.load_with(&object, &options.load, &shared, replaced);
        let (collection, kept) = loaded.map_err(|error| {
            source.at(said.name.at, ChainFileCause::Setup { object: name.clone(), source: Box::new(error) })
        })?;
        // Traffic's contents of a kept map are newer than the file's.
        let is_new = |contents: &MapContents| !kept.iter().any(|kept| kept == contents.map());
        collection.set_elements(before.iter().filter(|contents| is_new(contents)), options.verifies)?;
        for given in given.iter().filter(|given| is_new(&given.contents)) {
            let set = collection.set_elements([&given.contents], options.verifies);
            set.map_err(|error| given.wrong(source, error))?;
        }
        self.kept.extend(kept.into_iter().map(|map| (name.clone(), map)));
        if let Some(place) = self.parts.get_mut(index) {
            *place = Some(ChainPart { name, collection });
        }
        Ok(())
    }

    /// The maps that an object has from others.
    fn shared(&self, object: &FileObject) -> Result<BTreeMap<String, Arc<Map>>, ChainFileError> {
        let mut shared = BTreeMap::new();
        for map in &object.maps {
            let MapSource::Shared { object: owner, map: theirs } = &map.source else { continue };
            let Some(part) = self.loaded(*owner) else { continue };
            let specs = part.collection.object().maps();
            let index = specs.iter().position(|spec| spec.name == theirs.value);
            let Some(found) = index.and_then(|index| part.collection.maps().get(index)) else {
                let names = specs.iter().map(|spec| spec.name.as_str());
                let problem = FileProblem::unknown("map in that object", &theirs.value, names);
                return Err(self.source.wrong(FileError { at: theirs.at, problem }));
            };
            shared.insert(map.name.value.clone(), Arc::clone(found));
        }
        Ok(shared)
    }

    /// The contents that the file gives the maps of an object.
    fn contents(&self, object: &FileObject) -> Result<Vec<Given>, ChainFileError> {
        let file = self.source.path.display().to_string();
        let mut all = Vec::new();
        for map in &object.maps {
            let (at, contents) = match &map.source {
                MapSource::File(path) => {
                    let read = MapContents::read(&map.name.value, &self.source.resolve(&path.value));
                    let wrong = |error| self.source.at(path.at, ChainFileCause::Contents(error));
                    (path.at, read.map_err(wrong)?)
                }
                MapSource::Inline(json) => {
                    let place = (json.at.line, json.at.column);
                    (json.at, MapContents::inline(&map.name.value, &file, json.value.clone(), place))
                }
                MapSource::Shared { .. } => continue,
            };
            all.push(Given { contents, name: map.name.at, at });
        }
        Ok(all)
    }

    fn member(&self, program: &FileProgram) -> Result<Member, ChainFileError> {
        let function = program.function.as_ref();
        let at = function.map_or(program.name.at, |function| function.at);
        // The parser knows no program without an object.
        let part = self.loaded(program.object).ok_or_else(|| {
            let problem = FileProblem::unknown("object", &program.name.value, []);
            self.source.wrong(FileError { at: program.name.at, problem })
        })?;
        let object = self.source.file.objects.get(program.object);
        let path = object.and_then(|object| self.source.path_of(object));
        let function = function.map(|function| function.value.as_str());
        let made = member(part, path, function, &program.name.value, self.options.verifies);
        let made = made.map_err(|cause| self.source.at(at, cause))?;
        let config = made.config();
        Ok(made.with_config(RunConfig {
            priority: program.priority.unwrap_or(config.priority),
            actions: program.actions.unwrap_or(config.actions),
        }))
    }
}

/// Contents that the file gives a map.
struct Given {
    contents: MapContents,
    /// Where the map is named.
    name: FilePlace,
    /// Where the contents are, or the name of their file.
    at: FilePlace,
}

impl Given {
    fn wrong(&self, source: &ChainSource, error: ContentsError) -> ChainFileError {
        let is_name = matches!(*error.cause, ContentsCause::NoMap { .. } | ContentsCause::Variable { .. });
        let at = if is_name { self.name } else { self.at };
        let cause = match error.at {
            Some(_) => ChainFileCause::Inline(*error.cause),
            None => ChainFileCause::Contents(error),
        };
        source.at(at, cause)
    }
}

fn member(
    part: &ChainPart,
    path: Option<PathBuf>,
    function: Option<&str>,
    name: &str,
    verifies: bool,
) -> Result<Member, ChainFileCause> {
    let ChainPart { name: object, collection } = part;
    let made = match verifies {
        true => collection.member(name, function),
        false => collection.member_unverified(name, function),
    };
    let made = made.map_err(|error| match error {
        NoMember::Program(source) => ChainFileCause::Program {
            name: object.clone(),
            path,
            object: Box::new(collection.object().clone()),
            source: Box::new(source),
        },
        NoMember::Config(source) => ChainFileCause::Config { object: object.clone(), source },
    })?;
    let spec = made.program().spec();
    match spec.kind.rules().meaning {
        Meaning::Verdict | Meaning::Action(_) => Ok(made),
        Meaning::BytesKept => {
            Err(ChainFileCause::NoVerdicts { object: object.clone(), program: spec.name.clone() })
        }
    }
}

fn name_of(programs: &[FileProgram], index: usize) -> String {
    programs.get(index).map(|program| program.name.value.clone()).unwrap_or_default()
}

fn order(source: &ChainSource) -> Order {
    let name = |index: usize| name_of(&source.file.programs, index);
    match &source.file.order {
        FileOrder::Given(_) => Order::Given,
        FileOrder::Priority => Order::Priority,
        FileOrder::Edges { first, edges } => {
            let links = |(index, edges): (usize, &Edges<usize>)| (name(index), links(edges, &name));
            Order::Links { first: name(*first), links: edges.iter().enumerate().map(links).collect() }
        }
    }
}

fn links(edges: &Edges<usize>, name: &impl Fn(usize) -> String) -> Vec<Link> {
    let own = Verdict::ALL.into_iter().map(|verdict| (Some(verdict), edges.own(verdict)));
    let all = own.chain([(None, edges.wildcard())]);
    let link = |(after, next): (_, Option<Next<usize>>)| {
        let target = match next? {
            Next::Program(index) => LinkTarget::Program(name(index)),
            Next::End(verdict) => LinkTarget::End(verdict),
        };
        Some(Link { after, target })
    };
    all.filter_map(link).collect()
}
