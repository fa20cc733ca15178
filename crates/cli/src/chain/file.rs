//! Chain files: objects, maps and programs made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paceline::chain::{
    ChainFile, Edges, FileObject, FileOrder, FilePlace, FileProgram, Located, MapSource, Next, ObjectSource,
    Placement, RunConfig,
};
use paceline::filter::Libpcap;
use paceline::{Instance, Link, LinkTarget, LiveChain, Map, Member, Object, Order, Verdict};

use super::error::ChainError;
use super::loaded::{LoadHow, Loaded, Part};
use super::member::{MemberError, fill, member};
use crate::common::failure::Failure;
use crate::common::files::Taken;
use crate::expression::{Passage, brief, compile};
use crate::maps::{self, JsonFile, MapFile, MapFileError, SavedMaps};
use crate::object::{ObjectError, ProgramError};

/// The contents of a chain file, before it is a chain.
pub(crate) struct Made {
    pub(crate) parts: Vec<Part>,
    pub(crate) members: Vec<Member>,
    pub(crate) order: Order,
    /// The revision that the file is meant to change.
    pub(super) revision: Option<u64>,
    pub(super) placed: Vec<(String, Placement<String>)>,
    pub(super) origins: Vec<(String, usize)>,
    /// Maps that were kept from the parts before: the object's name and the map's.
    pub(crate) kept: Vec<(String, String)>,
    taken: Vec<Taken>,
    port: [Option<PathBuf>; 3],
}

/// Loads a chain file.
pub(crate) fn load(path: &Path, how: &LoadHow, before: Option<&[Part]>) -> Result<Loaded, Failure> {
    let name = path.display().to_string();
    let Made { parts, members, order, origins, placed, taken, port, .. } = make(path, how, before)?;
    let live =
        LiveChain::new(members, order).map_err(|source| ChainError::Change { name: name.clone(), source })?;
    let [input, out, drops] = port;
    Ok(Loaded { name, live, parts, origins, placed, taken, input, out, drops })
}

/// Makes everything that a chain file says, with the maps of objects before where names and shapes agree.
pub(crate) fn make(path: &Path, how: &LoadHow, before: Option<&[Part]>) -> Result<Made, Failure> {
    let name = path.display().to_string();
    let bytes = fs::read(path).map_err(|source| ChainError::Read { name: name.clone(), source })?;
    let text = String::from_utf8(bytes).map_err(|_| ChainError::NotText { name: name.clone() })?;
    let file = ChainFile::parse(&text).map_err(|source| ChainError::File { name: name.clone(), source })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut maker = Maker {
        name: &name,
        folder,
        how,
        before,
        instance: Instance::new(),
        saved: how.saved()?,
        several: file.objects.len() > 1,
        taken: Vec::new(),
        kept: Vec::new(),
    };
    maker.taken.extend(Taken::of_path(path, &format!("the chain file {name}")));
    let parts = maker.parts(&file)?;
    let mut members = Vec::new();
    for program in programs_in_order(&file) {
        members.push(maker.member(program, &parts)?);
    }
    let placed = placed(&file);
    let origins = file.programs.iter().map(|program| (program.name.value.clone(), program.object)).collect();
    let order = order(&file);
    let port = [&file.port.input, &file.port.out, &file.port.drops].map(|path| {
        path.as_ref().map(|path| {
            if path.value == Path::new("-") { path.value.clone() } else { folder.join(&path.value) }
        })
    });
    let (taken, kept) = (maker.taken, maker.kept);
    Ok(Made { parts, members, order, revision: file.revision, placed, origins, kept, taken, port })
}

/// The programs of the chain: those that were replaced are not.
fn programs_in_order(file: &ChainFile) -> Vec<&FileProgram> {
    match &file.order {
        FileOrder::Given(order) => order.iter().filter_map(|index| file.programs.get(*index)).collect(),
        FileOrder::Priority | FileOrder::Edges { .. } => file.programs.iter().collect(),
    }
}

fn placed(file: &ChainFile) -> Vec<(String, Placement<String>)> {
    let name = |index: usize| file.programs.get(index).map(|program| program.name.value.clone());
    let placed = |program: &FileProgram| {
        let by = program.placement?.map(|index| name(index).unwrap_or_default());
        Some((program.name.value.clone(), by))
    };
    file.programs.iter().filter_map(placed).collect()
}

struct Maker<'a> {
    /// The chain file, for messages.
    name: &'a str,
    folder: &'a Path,
    how: &'a LoadHow,
    before: Option<&'a [Part]>,
    /// The maps that its objects pin by name.
    instance: Instance,
    saved: Option<SavedMaps>,
    /// Whether there is more than one object.
    several: bool,
    taken: Vec<Taken>,
    kept: Vec<(String, String)>,
}

impl Maker<'_> {
    /// Adds the place in the chain file that names the missing item.
    fn at<E: Into<Failure>>(&self, at: FilePlace) -> impl Fn(E) -> Failure + '_ {
        move |source| ChainError::At { name: self.name.to_owned(), at, source: source.into() }.into()
    }

    /// Opens a file that the chain file names.
    fn of_file<E: Into<Failure>>(
        &mut self,
        file: &Located<PathBuf>,
        open: impl FnOnce(&Path) -> Result<Object, E>,
    ) -> Result<Object, Failure> {
        let path = self.folder.join(&file.value);
        let object = open(&path).map_err(self.at(file.at))?;
        self.taken.extend(Taken::of_path(&path, &format!("the object {}", path.display())));
        Ok(object)
    }

    /// All objects: first those that have their own maps, then those that share some.
    fn parts(&mut self, file: &ChainFile) -> Result<Vec<Part>, Failure> {
        let (mut opened, how) = (Vec::new(), self.how);
        for object in &file.objects {
            let name = &object.name.value;
            opened.push(match &object.source {
                ObjectSource::Object(file) => self.of_file(file, |path| how.opener.open(path, None))?,
                ObjectSource::Classic(file) => self.of_file(file, |path| of_classic(path, name))?,
                ObjectSource::Expression(expression) => {
                    of_expression(&expression.value, name).map_err(self.at(expression.at))?
                }
            });
        }
        how.opener.check_shapes(opened.iter())?;
        let mut parts: Vec<Option<Part>> = file.objects.iter().map(|_| None).collect();
        // Objects that share maps can own maps that others share: as many rounds as objects suffice.
        for _ in 0..=file.objects.len() {
            for (index, object) in file.objects.iter().enumerate() {
                if parts.get(index).is_some_and(Option::is_some) {
                    continue;
                }
                let Some(shared) = self.shared(object, &parts)? else { continue };
                let Some(parsed) = opened.get(index) else { continue };
                let part = self.part(object, parsed.clone(), &shared)?;
                if let Some(place) = parts.get_mut(index) {
                    *place = Some(part);
                }
            }
        }
        let missing = parts.iter().position(Option::is_none).and_then(|index| file.objects.get(index));
        if let Some(object) = missing {
            let circle =
                paceline::chain::FileProblem::Conflict("objects share maps with each other in a circle");
            let source = paceline::chain::FileError { at: object.name.at, problem: circle };
            return Err(ChainError::File { name: self.name.to_owned(), source }.into());
        }
        Ok(parts.into_iter().flatten().collect())
    }

    /// The maps that an object has from others; `None` while one of those is not there yet.
    fn shared(
        &self,
        object: &FileObject,
        parts: &[Option<Part>],
    ) -> Result<Option<BTreeMap<String, Arc<Map>>>, Failure> {
        let mut shared = BTreeMap::new();
        for map in &object.maps {
            let MapSource::Shared { object: owner, map: theirs } = &map.source else { continue };
            let Some(Some(part)) = parts.get(*owner) else { return Ok(None) };
            let found = part.collection.map(&theirs.value).or_else(|| {
                // A map that it shares itself has another name there.
                let index =
                    part.collection.object().maps().iter().position(|spec| spec.name == theirs.value)?;
                part.collection.maps().get(index)
            });
            let Some(found) = found else {
                let names = part.collection.object().maps().iter().map(|spec| spec.name.as_str());
                let suggestion = paceline_suggest::nearest(&theirs.value, names).map(str::to_owned);
                let what = "map in that object";
                let problem =
                    paceline::chain::FileProblem::Unknown { what, name: theirs.value.clone(), suggestion };
                let source = paceline::chain::FileError { at: theirs.at, problem };
                return Err(ChainError::File { name: self.name.to_owned(), source }.into());
            };
            shared.insert(map.name.value.clone(), Arc::clone(found));
        }
        Ok(Some(shared))
    }

    fn part(
        &mut self,
        said: &FileObject,
        mut object: Object,
        shared: &BTreeMap<String, Arc<Map>>,
    ) -> Result<Part, Failure> {
        let name = said.name.value.clone();
        let mut files = self.restored(said, &object)?;
        files.extend(self.map_files(said)?);
        maps::set_variables(&files, &mut object)?;
        let setup = |source| self.at(said.name.at)(ObjectError::setup(&name, source));
        let options = self.how.options();
        let before = self.before.and_then(|parts| parts.iter().find(|part| part.name == name));
        let before = before.map(|part| &part.collection);
        let (collection, kept) = self.instance.load_with(&object, &options, shared, before).map_err(setup)?;
        // Traffic's contents of a kept map are newer than the file's.
        let new = files.iter().filter(|file| !kept.iter().any(|kept| kept == file.map()));
        fill(&collection, new, self.how)?;
        self.kept.extend(kept.into_iter().map(|map| (name.clone(), map)));
        Ok(Part { name, collection })
    }

    /// The map contents that an earlier run saved for an object; none for a chain that is changed under traffic, which keeps
    /// its own.
    fn restored(&self, said: &FileObject, object: &Object) -> Result<Vec<JsonFile>, MapFileError> {
        let name = self.several.then_some(said.name.value.as_str());
        match &self.saved {
            Some(saved) if self.before.is_none() => saved.of(object, name),
            _ => Ok(Vec::new()),
        }
    }

    fn map_files(&mut self, object: &FileObject) -> Result<Vec<JsonFile>, MapFileError> {
        let mut files = Vec::new();
        for map in &object.maps {
            match &map.source {
                MapSource::File(path) => {
                    let file = MapFile { map: map.name.value.clone(), path: self.folder.join(&path.value) };
                    self.taken.extend(maps::identities(std::slice::from_ref(&file)));
                    files.extend(maps::read_files(&[file])?);
                }
                MapSource::Inline(Located { at, value }) => {
                    files.push(JsonFile::inline(
                        &map.name.value,
                        self.name,
                        value.clone(),
                        (at.line, at.column),
                    ));
                }
                MapSource::Shared { .. } => {}
            }
        }
        Ok(files)
    }

    fn member(&self, program: &FileProgram, parts: &[Part]) -> Result<Member, Failure> {
        let part = parts.get(program.object).unwrap_or_else(|| unreachable!("the file was checked"));
        let function = program.function.as_ref();
        let at = function.map_or(program.name.at, |function| function.at);
        let function = function.map(|function| function.value.as_str());
        let made = member(&part.collection, &part.name, function, Some(&program.name.value), self.how);
        let made = made.map_err(|error| match error {
            // Its diagnosis has the place in the source.
            MemberError::Program(refused @ ProgramError::Refused(_)) => refused.into(),
            error => self.at(at)(error),
        })?;
        let config = made.config();
        Ok(made.with_config(RunConfig {
            priority: program.priority.unwrap_or(config.priority),
            actions: program.actions.unwrap_or(config.actions),
        }))
    }
}

fn of_classic(path: &Path, name: &str) -> Result<Object, ChainError> {
    let file = || path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| ChainError::Read { name: file(), source })?;
    Object::of_filter(name, &text).map_err(|source| ChainError::Filter { name: file(), source })
}

/// The program of an expression for Ethernet.
fn of_expression(expression: &str, name: &str) -> Result<Object, Failure> {
    let libpcap = Libpcap::open().map_err(ChainError::Libpcap)?;
    let passage = Passage::of_text(expression.to_owned());
    let insns = compile(&libpcap, &passage, paceline::filter::Target::default())?;
    let filter = || format!("the expression `{}`", brief(expression));
    Ok(Object::of_classic(name, insns).map_err(|source| ChainError::Filter { name: filter(), source })?)
}

fn order(file: &ChainFile) -> Order {
    let name =
        |index: usize| file.programs.get(index).map(|program| program.name.value.clone()).unwrap_or_default();
    match &file.order {
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
