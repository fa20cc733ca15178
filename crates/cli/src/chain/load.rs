//! From the command line to a chain that can run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use paceline::chain::{CallMap, Place, Placement, Reason, Sequence};
use paceline::{
    Change, Collection, Engine, Instance, Layout, LiveChain, LoadOptions, Member, NoMember, Object, Order,
    Pinning,
};

use super::failure::{ChainFailure, PlaceProblem};
use super::place::PlaceArg;
use super::{calls, file};
use crate::args::{OrderName, SourceArgs, Target};
use crate::console;
use crate::failure::{Failure, closest};
use crate::maps::{self, JsonFile, SavedMaps};
use crate::object::{ObjectArgs, Opener, load_options, program_of};
use crate::run::Taken;

/// How programs are loaded.
#[derive(Clone, Debug)]
pub(crate) struct LoadHow {
    pub(crate) budget: u64,
    pub(crate) engine: Engine,
    pub(crate) unverified: bool,
    pub(crate) restore: Option<PathBuf>,
    pub(crate) opener: Rc<Opener>,
    /// CPUs that maps have values for.
    pub(crate) cpus: usize,
}

impl LoadHow {
    /// As it is where nothing is run.
    pub(crate) fn of(args: &ObjectArgs) -> Self {
        Self {
            budget: paceline::DEFAULT_BUDGET,
            engine: Engine::best(),
            unverified: false,
            restore: None,
            opener: Rc::new(Opener::new(args)),
            cpus: LoadOptions::default().limits.cpus,
        }
    }
}

impl LoadHow {
    /// What an earlier run left in the maps.
    pub(super) fn saved(&self) -> Result<Option<SavedMaps>, Failure> {
        self.restore.as_deref().map(SavedMaps::read).transpose()
    }

    pub(super) fn options(&self) -> LoadOptions {
        load_options(self.budget, self.engine, self.opener.args.map_memory, self.cpus)
    }
}

/// An object of a chain, loaded.
pub(crate) struct Part {
    /// For messages; in a chain file, its name there.
    pub(crate) name: String,
    pub(crate) collection: Collection,
}

/// A chain, ready to run.
pub(crate) struct Loaded {
    /// For messages.
    pub(crate) name: String,
    pub(crate) live: LiveChain,
    pub(crate) parts: Vec<Part>,
    /// Which part each program is from, by its name in the chain.
    pub(crate) origins: Vec<(String, usize)>,
    /// Programs that were placed by others, and how.
    pub(crate) placed: Vec<(String, Placement<String>)>,
    /// Files that no output may replace.
    pub(crate) taken: Vec<Taken>,
    /// Captures that a chain file names.
    pub(crate) input: Option<PathBuf>,
    pub(crate) out: Option<PathBuf>,
    pub(crate) drops: Option<PathBuf>,
}

impl Loaded {
    /// What runs after what, and why.
    pub(crate) fn layout(&self) -> Layout {
        let mut layout = self.live.layout();
        for (name, reason) in layout.names.iter().zip(&mut layout.reasons) {
            let placed = self.placed.iter().find(|(placed, _)| placed == name);
            if let (Reason::Placed, Some((_, placement))) = (&*reason, placed) {
                *reason = Reason::PlacedBy(placement.clone());
            }
        }
        layout
    }
}

/// Loads a chain.
pub(crate) fn load(source: &SourceArgs, how: &LoadHow) -> Result<Loaded, Failure> {
    match source.chain_file() {
        Some(path) => {
            let conflict = [
                ("--order", source.order.is_some()),
                ("--calls", source.calls.is_some()),
                ("--place", !source.places.is_empty()),
                ("--map NAME=FILE", !how.opener.args.files().is_empty()),
            ];
            if let Some((option, _)) = conflict.into_iter().find(|(_, given)| *given) {
                return Err(ChainFailure::NotWithFile(option).into());
            }
            file::load(path, how, None)
        }
        None => match source.file_among_objects() {
            Some(path) => Err(ChainFailure::FileAmongObjects(path.display().to_string()).into()),
            None => load_objects(source, how),
        },
    }
}

/// Reads a chain file again and changes the chain to what it says now, with the contents of its maps. What is wrong with it
/// is told, and the chain goes on as it is.
pub(crate) fn reload(source: &SourceArgs, how: &LoadHow, loaded: &mut Loaded, packets: u64) {
    let Some(path) = source.chain_file() else { return };
    let changed = file::make(path, how, Some(&loaded.parts)).and_then(|made| {
        let change = Change::All { members: made.members, order: made.order };
        let name = loaded.name.clone();
        let layout = loaded.live.change(made.revision, vec![change]);
        let layout = layout.map_err(|source| ChainFailure::Change { name, source })?;
        loaded.parts = made.parts;
        loaded.placed = made.placed;
        loaded.origins = made.origins;
        Ok(layout)
    });
    match changed {
        Ok(layout) => {
            let (names, revision) = (layout.names.join(", "), layout.revision);
            console::note(format_args!("from packet {} on, revision {revision}: {names}", packets + 1));
        }
        Err(failure) => {
            failure.tell();
            console::note("the chain goes on as it is");
        }
    }
}

fn load_objects(source: &SourceArgs, how: &LoadHow) -> Result<Loaded, Failure> {
    let given = how.opener.args.files();
    let files = maps::read_files(&given)?;
    let mut targets =
        source.targets.iter().map(|arg| open(arg, &how.opener)).collect::<Result<Vec<_>, _>>()?;
    if targets.is_empty() {
        targets.push(Opened::built_in()?);
    }
    check_maps(&files, &targets)?;
    how.opener.check_shapes(targets.iter().map(|target| &target.object))?;
    let taken = targets.iter().filter_map(|target| target.taken.clone()).chain(maps::identities(&given));
    let taken: Vec<_> = taken.collect();
    let (mut loaded, instance, saved) = (Vec::new(), Instance::new(), how.saved()?);
    let names = maps::distinct_names(targets.iter().map(|target| target.name.as_str()));
    for (target, name) in targets.into_iter().zip(&names) {
        let name = (names.len() > 1).then_some(name.as_str());
        let restored = saved.as_ref().map(|saved| saved.of(&target.object, name)).transpose()?;
        let restored = restored.unwrap_or_default();
        loaded.push(load_target(target, (&restored, &files), how, &instance)?);
    }
    let name = loaded.iter().map(|(part, _)| part.name.as_str()).collect::<Vec<_>>().join(", ");
    let (parts, members): (Vec<_>, Vec<_>) = loaded.into_iter().unzip();
    let members = with_names(members);
    let origins = members.iter().map(|member| member.name().to_owned()).zip(0..).collect();
    let members = placed(members, &source.places)?;
    let order = order(source, &members)?;
    let live = LiveChain::new(members, order)
        .map_err(|source| ChainFailure::Change { name: name.clone(), source })?;
    let placed = source.places.iter().map(|place| (place.name.clone(), place.to.clone())).collect();
    Ok(Loaded { name, live, parts, origins, placed, taken, input: None, out: None, drops: None })
}

/// The programs as they were given, each then taken where it was said.
fn placed(members: Vec<Member>, places: &[PlaceArg]) -> Result<Vec<Member>, ChainFailure> {
    let mut sequence = Sequence::default();
    let names: Vec<String> = members.iter().map(|member| member.name().to_owned()).collect();
    let told = |place: &PlaceArg, problem| ChainFailure::Place { place: place.text.clone(), problem };
    for name in &names {
        // They have different names, and so each goes in.
        let _ = sequence.insert(name.clone(), Place::Last, None);
    }
    for place in places {
        let unknown = |name: &str| PlaceProblem::NoProgram { name: name.to_owned(), names: names.clone() };
        let named = [Some(&place.name), place.other()];
        if let Some(name) = named.into_iter().flatten().find(|name| !names.contains(name)) {
            return Err(told(place, unknown(name)));
        }
        sequence
            .settle(&place.name, place.to.clone(), None)
            .map_err(|_| told(place, PlaceProblem::NotThere))?;
    }
    let find = |name: &String| members.iter().find(|member| member.name() == name).cloned();
    Ok(sequence.members().iter().filter_map(find).collect())
}

/// An object that was named.
struct Opened {
    name: String,
    object: Object,
    program: Option<String>,
    taken: Option<Taken>,
}

impl Opened {
    fn built_in() -> Result<Self, Failure> {
        let (name, object) = crate::run::built_in()?;
        Ok(Self { name, object, program: None, taken: None })
    }
}

fn open(arg: &OsStr, opener: &Opener) -> Result<Opened, Failure> {
    let Target { path, program } = Target::parse(arg, Path::exists);
    let object = opener.open(&path, program.as_deref())?;
    let name = path.display().to_string();
    let taken = Taken::of_path(&path, &format!("the object {name}"));
    Ok(Opened { name, object, program, taken })
}

/// Each map file is for one object.
fn check_maps(files: &[JsonFile], targets: &[Opened]) -> Result<(), Failure> {
    for file in files {
        let map = file.map();
        let specs: Vec<_> = targets.iter().filter_map(|target| target.object.map(map)).collect();
        match specs.len() {
            // One map, if all pin it.
            2.. if specs.iter().all(|spec| spec.pinning == Pinning::ByName) => {}
            0 => {
                let names =
                    targets.iter().flat_map(|target| &target.object.maps).map(|spec| spec.name.as_str());
                let hint = closest(map, names);
                return Err(ChainFailure::NoMap { map: map.to_owned(), hint }.into());
            }
            1 => {}
            _ => return Err(ChainFailure::SeveralMaps(map.to_owned()).into()),
        }
    }
    Ok(())
}

fn load_target(
    target: Opened,
    (restored, files): (&[JsonFile], &[JsonFile]),
    how: &LoadHow,
    instance: &Instance,
) -> Result<(Part, Member), Failure> {
    let Opened { name, mut object, program, .. } = target;
    let given = files.iter().filter(|file| object.map(file.map()).is_some());
    let own: Vec<&JsonFile> = restored.iter().chain(given).collect();
    maps::set_variables(own.iter().copied(), &mut object)?;
    let collection = instance
        .load(&object, &how.options())
        .map_err(|source| Failure::Setup { name: name.clone(), source: Box::new(source) })?;
    fill(&collection, own.iter().copied(), how)?;
    let member = member(&collection, &name, program.as_deref(), None, how)?;
    Ok((Part { name, collection }, member))
}

/// Fills maps of an object from files.
pub(super) fn fill<'a>(
    collection: &Collection,
    files: impl IntoIterator<Item = &'a JsonFile>,
    how: &LoadHow,
) -> Result<(), Failure> {
    let load = |name: &str| program_of(collection, Some(name), how.unverified);
    maps::set_elements(files, collection, &load)
}

/// A program of an object, as a member of a chain; named like its function if no other name is given.
pub(super) fn member(
    collection: &Collection,
    object: &str,
    program: Option<&str>,
    name: Option<&str>,
    how: &LoadHow,
) -> Result<Member, Failure> {
    let given = name.unwrap_or_default();
    let member = match how.unverified {
        true => collection.member_unverified(given, program),
        false => collection.member(given, program),
    };
    let member = member.map_err(|error| match error {
        NoMember::Program(error) => Failure::no_program(object, collection.object(), error),
        NoMember::Config(source) => ChainFailure::Config { name: object.to_owned(), source }.into(),
    })?;
    crate::run::check_action(object, member.program())?;
    let name = name.map_or_else(|| member.program().spec().name.clone(), str::to_owned);
    Ok(member.renamed(name))
}

/// Gives programs of one name a number, from the second on.
fn with_names(members: Vec<Member>) -> Vec<Member> {
    let mut named: Vec<Member> = Vec::new();
    for member in members {
        let is_taken = |name: &str| named.iter().any(|other| other.name() == name);
        let numbered = (2..).map(|number: u32| format!("{}#{number}", member.name()));
        let name = std::iter::once(member.name().to_owned()).chain(numbered).find(|name| !is_taken(name));
        named.push(member.renamed(name.unwrap_or_default()));
    }
    named
}

fn order(source: &SourceArgs, members: &[Member]) -> Result<Order, Failure> {
    let ids = || members.iter().map(|member| (member.name().to_owned(), member.program().id()));
    match (&source.calls, source.order) {
        (Some(path), _) => {
            let map: CallMap = calls::read(path, &ids().collect())?;
            let first = members.first().map_or(0, |member| member.program().id());
            Ok(Order::Calls { first, map })
        }
        (None, Some(OrderName::Given)) => Ok(Order::Given),
        (None, None) if !source.places.is_empty() => Ok(Order::Given),
        (None, Some(OrderName::Priority)) if !source.places.is_empty() => {
            Err(ChainFailure::PlacesByPriority.into())
        }
        (None, Some(OrderName::Priority) | None) => Ok(Order::Priority),
    }
}
