//! Setting global variables from their files.

use paceline::btf::{Btf, DataSection, SectionVar, Type};
use paceline::json::JsonError;
use paceline::{InitialValue, MapSpec, Object};

use super::encode::typed;
use super::error::{MapFailure, MapFileError, Problem};
use super::json_file::{JsonFile, Part};
use crate::common::suggest::closest;

const VARIABLES: &str = "global variables are set by an object of names and values";

/// The variables of a map that is a section of global data.
pub(super) fn variables<'a>(btf: &'a Btf, spec: &MapSpec) -> Option<&'a DataSection> {
    match btf.get(spec.value_type)? {
        Type::DataSection(section) if spec.max_entries == 1 => Some(section),
        _ => None,
    }
}

/// Sets the global variables that files name, in the object itself: `.rodata` cannot be changed once it is a map.
pub(crate) fn set_variables<'a>(
    files: impl IntoIterator<Item = &'a JsonFile>,
    object: &mut Object,
) -> Result<(), MapFileError> {
    for file in files {
        let spec = object.map(&file.map).ok_or_else(|| file.failure(no_map(&file.map, object)))?;
        let Some(btf) = object.shared_btf() else { continue };
        let Some(section) = variables(&btf, spec) else { continue };
        let mut bytes = initial_bytes(spec);
        set_all(file, &btf, section, &mut bytes).map_err(|failure| file.failure(failure))?;
        if let Some(spec) = object.specs_mut().maps.iter_mut().find(|spec| spec.name == file.map) {
            spec.contents = vec![(0u32.to_ne_bytes().to_vec(), InitialValue::Bytes(bytes))];
        }
    }
    Ok(())
}

fn no_map(map: &str, object: &Object) -> MapFailure {
    let names: Vec<&str> = object.maps().iter().map(|spec| spec.name.as_str()).collect();
    let hint = closest(map, names.iter().copied()).unwrap_or_else(|| match names.as_slice() {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    });
    MapFailure::NoMap { map: map.to_owned(), hint }
}

/// The initial contents of a data section.
fn initial_bytes(spec: &MapSpec) -> Vec<u8> {
    let mut bytes = vec![0; spec.value_size as usize];
    if let Some((_, InitialValue::Bytes(initial))) = spec.contents.first() {
        bytes.iter_mut().zip(initial).for_each(|(byte, initial)| *byte = *initial);
    }
    bytes
}

fn set_all(file: &JsonFile, btf: &Btf, section: &DataSection, bytes: &mut [u8]) -> Result<(), MapFailure> {
    assignments(&file.root()?)?.into_iter().try_for_each(|(name, part)| {
        set_variable(btf, section, &name, &part.named(format!("variable {name}")), bytes)
    })
}

/// Names and values of variables: an object, or bpftool's list `[{"value": {".rodata": [{"x": 1}, {"y": 2}]}}]`.
fn assignments<'a>(root: &Part<'a>) -> Result<Vec<(String, Part<'a>)>, MapFailure> {
    if root.is_object() {
        return Ok(root.members(VARIABLES)?.into_iter().collect());
    }
    let mut found = Vec::new();
    for element in root.list(VARIABLES)? {
        let mut members = element.members(VARIABLES)?;
        if let Some(formatted) = members.remove("formatted") {
            members = formatted.members(VARIABLES)?;
        }
        let section = members.remove("value").ok_or_else(|| element.fail(Problem::Shape(VARIABLES)))?;
        for (_, list) in section.members(VARIABLES)? {
            for variable in list.list(VARIABLES)? {
                found.extend(variable.members(VARIABLES)?);
            }
        }
    }
    Ok(found)
}

fn set_variable(
    btf: &Btf,
    section: &DataSection,
    name: &str,
    part: &Part<'_>,
    bytes: &mut [u8],
) -> Result<(), MapFailure> {
    let var = section.vars.iter().find(|var| btf.type_name(var.ty) == name);
    let Some(&SectionVar { ty, offset, size }) = var else {
        let names = section.vars.iter().map(|var| btf.type_name(var.ty));
        let suggestion = closest(name, names);
        let section = btf.name(section.name).to_owned();
        return Err(part.fail(Problem::NoVariable { section, name: name.to_owned(), suggestion }));
    };
    let value = typed(part, btf, ty, size as usize)?;
    let (start, end) = (offset as usize, offset as usize + value.len());
    let len = bytes.len();
    let place = bytes
        .get_mut(start..end)
        .ok_or_else(|| part.fail(JsonError::Size { found: end, expected: len }.into()))?;
    place.copy_from_slice(&value);
    Ok(())
}
