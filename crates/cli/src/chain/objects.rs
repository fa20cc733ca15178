//! Chains of objects that the command line names.

use paceline::chain::{CallMap, Place, Sequence};
use paceline::contents::MapContents;
use paceline::{LiveChain, Member, Order, PinnedMaps, Pinning};

use super::args::{OrderName, SourceArgs};
use super::calls;
use super::error::{ChainError, PlaceProblem};
use super::loaded::{LoadHow, Loaded, Part};
use super::member::member;
use super::place::PlaceArg;
use crate::common::failure::Failure;
use crate::common::suggest::closest;
use crate::maps;
use crate::object::{NamedObject, ObjectError, check_set, variables_set};

/// Loads a chain of objects.
pub(super) fn load(source: &SourceArgs, how: &LoadHow) -> Result<Loaded, Failure> {
    let mut targets = source
        .targets
        .iter()
        .map(|arg| NamedObject::open(arg, &how.opener))
        .collect::<Result<Vec<_>, _>>()?;
    if targets.is_empty() {
        targets.push(NamedObject::built_in(&how.opener)?);
    }
    check_set(&how.opener.args.set, targets.iter().map(|target| &target.object))?;
    how.opener.check_shapes(targets.iter().map(|target| &target.object))?;
    let given = how.opener.args.files();
    let files = maps::read_files(&given)?;
    check_maps(&files, &targets)?;
    let taken = targets.iter().filter_map(|target| target.file.clone()).chain(maps::identities(&given));
    let taken: Vec<_> = taken.collect();
    let (mut loaded, instance, saved) = (Vec::new(), PinnedMaps::new(), how.saved()?);
    let names = maps::distinct_names(targets.iter().map(|target| target.name.as_str()));
    for (target, name) in targets.into_iter().zip(&names) {
        let saved_as = (names.len() > 1).then_some(name.as_str());
        let restored =
            saved.as_ref().map(|saved| maps::restored(saved, &target.object, saved_as)).transpose()?;
        let (part, member) = load_target(target, (&restored.unwrap_or_default(), &files), how, &instance)?;
        // The same object twice has maps of two names.
        loaded.push((Part { name: name.clone(), ..part }, member));
    }
    let name = loaded.iter().map(|(part, _)| part.name.as_str()).collect::<Vec<_>>().join(", ");
    let (parts, members): (Vec<_>, Vec<_>) = loaded.into_iter().unzip();
    let members = with_names(members);
    let origins = members.iter().map(|member| member.name().to_owned()).zip(0..).collect();
    let members = placed(members, &source.places)?;
    let order = order(source, &members)?;
    let live =
        LiveChain::new(members, order).map_err(|source| ChainError::Change { name: name.clone(), source })?;
    let placed = source.places.iter().map(|place| (place.name.clone(), place.to.clone())).collect();
    Ok(Loaded { name, live, parts, origins, placed, taken, input: None, out: None, drops: None })
}

/// The programs as they were given, each then taken where it was said.
fn placed(members: Vec<Member>, places: &[PlaceArg]) -> Result<Vec<Member>, ChainError> {
    let mut sequence = Sequence::default();
    let names: Vec<String> = members.iter().map(|member| member.name().to_owned()).collect();
    let told = |place: &PlaceArg, problem| ChainError::Place { place: place.text.clone(), problem };
    for name in &names {
        // Their names differ, so each is inserted.
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

/// Each map file is for one object.
fn check_maps(files: &[MapContents], targets: &[NamedObject]) -> Result<(), ChainError> {
    for file in files {
        let map = file.map();
        let specs: Vec<_> = targets.iter().filter_map(|target| target.object.map(map)).collect();
        match specs.len() {
            // One map, if all pin it.
            2.. if specs.iter().all(|spec| spec.pinning == Pinning::ByName) => {}
            0 => {
                let names =
                    targets.iter().flat_map(|target| target.object.maps()).map(|spec| spec.name.as_str());
                let hint = closest(map, names);
                return Err(ChainError::NoMap { map: map.to_owned(), hint });
            }
            1 => {}
            _ => return Err(ChainError::SeveralMaps(map.to_owned())),
        }
    }
    Ok(())
}

fn load_target(
    target: NamedObject,
    (restored, files): (&[MapContents], &[MapContents]),
    how: &LoadHow,
    instance: &PinnedMaps,
) -> Result<(Part, Member), Failure> {
    let NamedObject { name, mut object, program, .. } = target;
    let given = files.iter().filter(|file| object.map(file.map()).is_some());
    let set = variables_set(&how.opener.args.set, &object);
    let own: Vec<&MapContents> = restored.iter().chain(given).chain(&set).collect();
    object.set_variables(own.iter().copied())?;
    let collection =
        instance.load(&object, &how.options()).map_err(|source| ObjectError::setup(&name, source))?;
    collection.set_elements(own.iter().copied(), !how.unverified)?;
    let member = member(&collection, &name, program.as_deref(), how)?;
    Ok((Part { name, collection }, member))
}

/// Appends a number to equal names, from the second one on.
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

fn order(source: &SourceArgs, members: &[Member]) -> Result<Order, ChainError> {
    let ids = || members.iter().map(|member| (member.name().to_owned(), member.program().id()));
    match (&source.calls, source.order) {
        (Some(path), _) => {
            let map: CallMap = calls::read(path, &ids().collect())?;
            let first = members.first().map_or(0, |member| member.program().id());
            Ok(Order::Calls { first, map })
        }
        (None, Some(OrderName::Given)) => Ok(Order::Given),
        (None, None) if !source.places.is_empty() => Ok(Order::Given),
        (None, Some(OrderName::Priority)) if !source.places.is_empty() => Err(ChainError::PlacesByPriority),
        (None, Some(OrderName::Priority) | None) => Ok(Order::Priority),
    }
}
