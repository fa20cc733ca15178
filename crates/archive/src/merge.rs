//! Maps of workers, made one.
//!
//! Each worker runs its packets on maps of its own, which all began alike. The caller says for each map that programs may change how the
//! result is made from them, because nothing in an object tells it.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline::btf::Btf;
use paceline::{Errno, Map, MapFlags, MapKind};

use crate::values::{add_difference, numbers};

/// How a map of workers becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The numbers in values are counters: what each worker added is added. In per-CPU maps for each CPU.
    Sum,
    /// Keys are a set: those that any worker added are there. A key has the same value wherever it is.
    Union,
    /// Programs only read it: it is as before, in each worker.
    Fixed,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 3] = [Self::Sum, Self::Union, Self::Fixed];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Union => "union",
            Self::Fixed => "fixed",
        }
    }
}

/// Maps cannot be made one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Programs may change a map, and no rule says what it becomes.
    #[error("map {map}: programs may change it, and no rule says how those of several workers become one")]
    NoRule {
        /// The map.
        map: String,
    },
    /// No rule can be for this kind of map.
    #[error("map {map}: a map of kind {kind} cannot be made from those of several workers")]
    Kind {
        /// The map.
        map: String,
        /// Its kind.
        kind: MapKind,
    },
    /// A rule that is for other maps.
    #[error("map {map}: rule {} is not for a map of kind {kind}", rule.name())]
    Rule {
        /// The map.
        map: String,
        /// Its kind.
        kind: MapKind,
        /// The rule.
        rule: Rule,
    },
    /// Values that are to be added are no integers.
    #[error("map {map}: its values have members that are no integers, and cannot be added")]
    Value {
        /// The map.
        map: String,
    },
    /// A rule for a map that does not exist.
    #[error("there is no map {map}")]
    NoMap {
        /// Its name.
        map: String,
    },
    /// A map was changed that should not have been.
    #[error("map {map}: the rule says that programs only read it, and one changed it")]
    Changed {
        /// The map.
        map: String,
    },
    /// An element was deleted, so that counters cannot be added.
    #[error("map {map}: a program deleted an element, which {} cannot merge", rule.name())]
    Deleted {
        /// The map.
        map: String,
        /// The rule.
        rule: Rule,
    },
    /// Members of a set differ in their values.
    #[error("map {map}: a key has one value in one worker and another in another one, as no set has")]
    Differs {
        /// The map.
        map: String,
    },
    /// A map cannot be read or written.
    #[error("map {map}: {errno}")]
    Access {
        /// The map.
        map: String,
        /// The error.
        errno: Errno,
    },
}

/// The rules for the maps of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// By the name of a map.
    pub by_map: BTreeMap<String, Rule>,
    /// For all others that programs may change.
    pub others: Option<Rule>,
}

/// The elements of maps, by name. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(pub BTreeMap<String, Elements>);

/// Values by their keys.
pub type Elements = BTreeMap<Vec<u8>, Vec<u8>>;

impl Rules {
    /// Checks that the maps of several workers can become one.
    ///
    /// # Errors
    /// [`MergeError`], which names the first map that cannot.
    pub fn check(&self, maps: &[Arc<Map>], btf: Option<&Btf>) -> Result<(), MergeError> {
        if let Some(map) = self.by_map.keys().find(|name| maps.iter().all(|map| map.spec().name != **name)) {
            return Err(MergeError::NoMap { map: map.clone() });
        }
        maps.iter().try_for_each(|map| self.check_map(map, btf))
    }

    /// The rule for a map.
    fn of(&self, map: &Map) -> Option<Rule> {
        let others = self.others.filter(|_| is_changeable(map));
        self.by_map.get(&map.spec().name).copied().or(others)
    }

    fn check_map(&self, map: &Map, btf: Option<&Btf>) -> Result<(), MergeError> {
        let (spec, kind) = (map.spec(), map.spec().kind);
        let name = || spec.name.clone();
        if kind.is_queue() || kind.is_ring_buffer() || kind.tests_membership() || kind.holds_maps() {
            return Err(MergeError::Kind { map: name(), kind });
        }
        match self.of(map) {
            None if is_changeable(map) => Err(MergeError::NoRule { map: name() }),
            Some(rule) if !suits(rule, kind) => Err(MergeError::Rule { map: name(), kind, rule }),
            Some(Rule::Sum) if numbers(spec, btf).is_none() => Err(MergeError::Value { map: name() }),
            _ => Ok(()),
        }
    }
}

/// Whether programs may change elements.
fn is_changeable(map: &Map) -> bool {
    map.spec().kind.holds_bytes() && !map.spec().flags.contains(MapFlags::RDONLY_PROG)
}

fn suits(rule: Rule, kind: MapKind) -> bool {
    let has_values = kind.holds_bytes() && !kind.is_queue();
    match rule {
        // A full map evicts elements, each worker's others.
        Rule::Sum => has_values && !kind.is_lru(),
        Rule::Union => kind.is_keyed() && !kind.is_lru() && !kind.is_per_cpu(),
        Rule::Fixed => has_values,
    }
}

impl Snapshot {
    /// The elements of the maps that have a rule.
    ///
    /// # Errors
    /// [`MergeError::Access`]
    pub fn of(maps: &[Arc<Map>], rules: &Rules) -> Result<Self, MergeError> {
        let ruled = maps.iter().filter(|map| rules.of(map).is_some());
        ruled.map(|map| Ok((map.spec().name.clone(), elements(map)?))).collect::<Result<_, _>>().map(Self)
    }
}

fn elements(map: &Map) -> Result<Elements, MergeError> {
    let failed = |errno| MergeError::Access { map: map.spec().name.clone(), errno };
    let keys = map.keys().map_err(failed)?;
    // Keys that went meanwhile have no value.
    Ok(keys.filter_map(|key| map.lookup(&key).ok().map(|value| (key, value))).collect())
}

/// Sets maps to the result of what several workers made of maps that were as `before`.
///
/// # Errors
/// [`MergeError`]; maps before the one that it names are set.
pub fn merge(
    maps: &[Arc<Map>],
    btf: Option<&Btf>,
    rules: &Rules,
    before: &Snapshot,
    after: &[Snapshot],
) -> Result<(), MergeError> {
    let none = Elements::new();
    let ruled = maps.iter().filter_map(|map| Some((map, rules.of(map)?)));
    for (map, rule) in ruled {
        let name = &map.spec().name;
        let of = |snapshot| Snapshot::get(snapshot, name).unwrap_or(&none);
        let merged = joined(map, btf, rule, of(before), after.iter().map(of))?;
        set(map, &merged)?;
    }
    Ok(())
}

impl Snapshot {
    fn get(&self, map: &str) -> Option<&Elements> {
        self.0.get(map)
    }
}

fn joined<'a>(
    map: &Map,
    btf: Option<&Btf>,
    rule: Rule,
    before: &Elements,
    after: impl Iterator<Item = &'a Elements>,
) -> Result<Elements, MergeError> {
    let name = || map.spec().name.clone();
    let mut merged = before.clone();
    let places = places(map, btf).ok_or_else(|| MergeError::Value { map: name() });
    for elements in after {
        if rule == Rule::Fixed && elements != before {
            return Err(MergeError::Changed { map: name() });
        }
        if before.keys().any(|key| !elements.contains_key(key)) {
            return Err(MergeError::Deleted { map: name(), rule });
        }
        if rule == Rule::Fixed {
            continue;
        }
        for (key, value) in elements {
            let zero = vec![0; value.len()];
            let there = merged
                .entry(key.clone())
                .or_insert_with(|| if rule == Rule::Sum { zero.clone() } else { value.clone() });
            match rule {
                Rule::Sum => {
                    add_difference(
                        places.as_ref().map_err(Clone::clone)?,
                        there,
                        value,
                        before.get(key).unwrap_or(&zero),
                    );
                }
                _ if there != value => return Err(MergeError::Differs { map: name() }),
                _ => {}
            }
        }
    }
    Ok(merged)
}

/// The places of numbers in what a look-up gives: in per-CPU maps the values of all CPUs.
fn places(map: &Map, btf: Option<&Btf>) -> Option<Vec<std::ops::Range<usize>>> {
    let of_one = numbers(map.spec(), btf)?;
    let starts = (0..map.user_value_size()).step_by(map.value_stride().max(1));
    Some(
        starts
            .flat_map(|start| of_one.iter().map(move |place| start + place.start..start + place.end))
            .collect(),
    )
}

fn set(map: &Map, merged: &Elements) -> Result<(), MergeError> {
    let failed = |errno| MergeError::Access { map: map.spec().name.clone(), errno };
    for (key, value) in merged {
        if map.lookup(key).as_ref() != Ok(value) {
            map.insert(key, value).map_err(failed)?;
        }
    }
    Ok(())
}
