//! Maps of several programs, made one.

use std::collections::BTreeMap;

use paceline_archive::{MergeError, Rule, Rules, Snapshot, merge};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use super::failure::not_merged;
use crate::error::guarded;
use crate::program::PyProgram;

/// Rules by the names of maps, or one for all maps.
pub(super) fn rules_of(given: &Bound<'_, PyAny>) -> PyResult<Rules> {
    if given.is_instance_of::<PyString>() {
        return Ok(Rules { by_map: BTreeMap::new(), others: Some(rule_of(given)?) });
    }
    let given = given.cast::<PyDict>()?;
    let rule =
        |(map, rule): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((map.extract::<String>()?, rule_of(&rule)?));
    let mut by_map: BTreeMap<_, _> = given.iter().map(rule).collect::<PyResult<_>>()?;
    let others = by_map.remove("*");
    Ok(Rules { by_map, others })
}

fn rule_of(given: &Bound<'_, PyAny>) -> PyResult<Rule> {
    let name: String = given.extract()?;
    Rule::ALL
        .into_iter()
        .find(|rule| rule.name() == name)
        .ok_or_else(|| PyValueError::new_err(format!("rule {name:?} is none of sum, union, fixed")))
}

/// Checks that the maps of several programs like this one can become one.
pub(super) fn check(program: &PyProgram, rules: &Rules) -> Result<(), MergeError> {
    let collection = &program.shared().collection;
    rules.check(collection.maps(), collection.object().btf())
}

/// Elements of a program's maps that have a rule.
pub(super) fn state(program: &PyProgram, rules: &Rules) -> Result<Snapshot, MergeError> {
    Snapshot::of(program.shared().collection.maps(), rules)
}

/// Sets the maps of a program to the result of `after`, maps that were as `before`.
pub(super) fn join(
    program: &PyProgram,
    rules: &Rules,
    before: &Snapshot,
    after: &[Snapshot],
) -> Result<(), MergeError> {
    let collection = &program.shared().collection;
    merge(collection.maps(), collection.object().btf(), rules, before, after)
}

/// The elements of a program's maps that have a rule, as plain data.
#[pyfunction]
pub(crate) fn map_states<'py>(
    program: &Bound<'py, PyProgram>,
    rules: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    guarded(|| {
        let (program, rules, py) = (program.get(), rules_of(rules)?, rules.py());
        check(program, &rules).map_err(not_merged)?;
        let states = PyDict::new(py);
        for (map, elements) in state(program, &rules).map_err(not_merged)?.0 {
            let of_map = PyDict::new(py);
            for (key, value) in elements {
                of_map.set_item(PyBytes::new(py, &key), PyBytes::new(py, &value))?;
            }
            states.set_item(map, of_map)?;
        }
        Ok(states)
    })
}

fn snapshot_of(states: &Bound<'_, PyDict>) -> PyResult<Snapshot> {
    let mut maps = BTreeMap::new();
    for (map, elements) in states {
        let mut of_map = BTreeMap::new();
        for (key, value) in elements.cast::<PyDict>()? {
            of_map.insert(key.extract::<Vec<u8>>()?, value.extract::<Vec<u8>>()?);
        }
        maps.insert(map.extract::<String>()?, of_map);
    }
    Ok(Snapshot(maps))
}

/// Sets the maps of a program to the result of what several others made of the same maps.
#[pyfunction]
#[pyo3(signature = (program, rules, states))]
pub(crate) fn merge_maps(
    program: &Bound<'_, PyProgram>,
    rules: &Bound<'_, PyAny>,
    states: Vec<Bound<'_, PyDict>>,
) -> PyResult<()> {
    guarded(|| {
        let (program, rules) = (program.get(), rules_of(rules)?);
        check(program, &rules).map_err(not_merged)?;
        let before = state(program, &rules).map_err(not_merged)?;
        let after: Vec<_> = states.iter().map(snapshot_of).collect::<PyResult<_>>()?;
        join(program, &rules, &before, &after).map_err(not_merged)
    })
}
