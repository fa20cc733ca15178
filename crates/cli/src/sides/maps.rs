//! Comparison of the maps of both sides.

use std::collections::BTreeMap;

use paceline::Collection;
use serde_json::{Value as Json, json};

use super::ignored::Ignored;
use super::side::{Side, SideMaker, run_both};
use crate::common::capture::CapturedPacket;
use crate::common::failure::Failure;
use crate::maps::{Form, MapsAsJson};

/// Most elements of a map that are shown.
const SHOWN: usize = 5;

/// A map that is not the same on both sides.
#[derive(Clone, Debug)]
pub(crate) struct MapChange {
    pub(crate) name: String,
    /// The packet since which it differs, from 1; 0 before the first one.
    pub(crate) since: usize,
    /// Elements that differ: what names them, the old and the new value.
    pub(crate) elements: Vec<(String, Option<Json>, Option<Json>)>,
    /// Elements that differ in all.
    pub(crate) count: usize,
}

/// The contents of all maps by their names, which both sides have.
type Contents = BTreeMap<String, Json>;

fn contents(side: &Side) -> Result<Contents, Failure> {
    side.read_maps()?;
    let mut all = Contents::new();
    for (_, part) in &side.subject().parts {
        all.extend(contents_of(part));
    }
    Ok(all)
}

fn contents_of(part: &Collection) -> Contents {
    match serde_json::to_value(MapsAsJson(part, Form::Written)) {
        Ok(Json::Object(maps)) => maps.into_iter().collect(),
        _ => Contents::new(),
    }
}

/// The names of the maps that differ.
fn differing(old: &Side, new: &Side, ignored: &[Ignored]) -> Result<Vec<String>, Failure> {
    if ignored.contains(&Ignored::Maps) {
        return Ok(Vec::new());
    }
    let (old, new) = (contents(old)?, contents(new)?);
    let differs = |(name, value): &(&String, &Json)| new.get(*name).is_some_and(|other| other != *value);
    let counts = |name: &String| !ignored.contains(&Ignored::Map(name.clone()));
    // Constants are part of the programs.
    let is_constant = |name: &str| name.starts_with(".rodata");
    let names = old.iter().filter(differs).map(|(name, _)| name.clone());
    Ok(names.filter(|name| counts(name) && !is_constant(name)).collect())
}

/// The maps that differ after all packets, each with the first packet after which it does.
pub(crate) fn changes(
    makers: [&SideMaker<'_>; 2],
    sides: [&Side; 2],
    packets: &[CapturedPacket],
    ignored: &[Ignored],
) -> Result<Vec<MapChange>, Failure> {
    let mut changes = Vec::new();
    let (old, new) = (contents(sides[0])?, contents(sides[1])?);
    for name in differing(sides[0], sides[1], ignored)? {
        let since = since(makers, &name, packets, ignored)?;
        let [old, new] = [&old, &new].map(|all| all.get(&name).map(elements).unwrap_or_default());
        let mut differing = Vec::new();
        let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let (old, new) = (old.get(key).cloned(), new.get(key).cloned());
            if old != new {
                differing.push((key.clone(), old, new));
            }
        }
        let count = differing.len();
        differing.truncate(SHOWN);
        changes.push(MapChange { name, since, elements: differing, count });
    }
    Ok(changes)
}

/// Elements by what names them: keys of elements, names of variables, places in queues.
fn elements(map: &Json) -> BTreeMap<String, Json> {
    let named = |(index, element): (usize, &Json)| {
        let value = element.get("value").or_else(|| element.get("values")).cloned().unwrap_or(json!(null));
        (element.get("key").map_or_else(|| format!("#{index}"), Json::to_string), value)
    };
    match map {
        Json::Array(list) => list.iter().enumerate().map(named).collect(),
        Json::Object(variables) => {
            variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
        }
        _ => BTreeMap::new(),
    }
}

/// Number of packets after which a map differs, by bisection: maps that differ once seldom become equal again.
fn since(
    makers: [&SideMaker<'_>; 2],
    name: &String,
    packets: &[CapturedPacket],
    ignored: &[Ignored],
) -> Result<usize, Failure> {
    let (mut equal, mut differs) = (0, packets.len());
    let differs_after = |count: usize| -> Result<bool, Failure> {
        let (mut old, mut new) = (makers[0].make()?, makers[1].make()?);
        for (number, packet) in packets.iter().enumerate().take(count) {
            run_both(&mut old, &mut new, number, packet)?;
        }
        Ok(differing(&old, &new, ignored)?.contains(name))
    };
    if differs_after(0)? {
        return Ok(0);
    }
    while differs - equal > 1 {
        let middle = equal + (differs - equal) / 2;
        if differs_after(middle)? { differs = middle } else { equal = middle }
    }
    Ok(differs)
}
