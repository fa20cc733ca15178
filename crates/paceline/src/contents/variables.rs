//! Setting global variables.

use paceline_btf::{Btf, DataSection, SectionVar};
use paceline_spec::{InitialValue, MapSpec};

use super::encode::typed;
use super::error::{ContentsCause, ContentsError, ContentsProblem};
use super::text::{MapContents, Part};
use crate::json::{JsonError, variables};
use crate::load::Object;

const VARIABLES: &str = "global variables are set by an object of names and values";

impl Object {
    /// Sets the global variables among these contents, constants too: those in `.rodata` cannot be changed once they are a map. Contents of
    /// other maps are for [`Collection::set_elements`](crate::Collection::set_elements).
    ///
    /// # Errors
    /// [`ContentsError`]; also if the object has no map of a name. Variables before the wrong one are set.
    pub fn set_variables<'a>(
        &mut self,
        contents: impl IntoIterator<Item = &'a MapContents>,
    ) -> Result<(), ContentsError> {
        for given in contents {
            let spec = self.map(&given.map).ok_or_else(|| given.failure(no_map(&given.map, self)))?;
            let Some(btf) = self.shared_btf() else { continue };
            let Some(section) = variables(&btf, spec) else { continue };
            let mut bytes = initial_bytes(spec);
            set_all(given, &btf, section, &mut bytes).map_err(|failure| given.failure(failure))?;
            if let Some(spec) = self.specs_mut().maps.iter_mut().find(|spec| spec.name == given.map) {
                spec.contents = vec![(0u32.to_ne_bytes().to_vec(), InitialValue::Bytes(bytes))];
            }
        }
        Ok(())
    }
}

/// The section of global data, which is a map, that has a variable of this name.
#[must_use]
pub fn section_of<'a>(object: &'a Object, variable: &str) -> Option<&'a str> {
    let btf = object.btf()?;
    let has_it = |spec: &&MapSpec| {
        variables(btf, spec)
            .is_some_and(|section| section.vars.iter().any(|var| btf.type_name(var.ty) == variable))
    };
    object.maps().iter().find(has_it).map(|spec| spec.name.as_str())
}

fn no_map(map: &str, object: &Object) -> ContentsCause {
    if let Some(section) = section_of(object, map) {
        return ContentsCause::Variable { variable: map.to_owned(), section: section.to_owned() };
    }
    let names = object.maps().iter().map(|spec| spec.name.clone()).collect();
    ContentsCause::NoMap { map: map.to_owned(), names }
}

/// The initial contents of a data section.
fn initial_bytes(spec: &MapSpec) -> Vec<u8> {
    let mut bytes = vec![0; spec.value_size as usize];
    if let Some((_, InitialValue::Bytes(initial))) = spec.contents.first() {
        bytes.iter_mut().zip(initial).for_each(|(byte, initial)| *byte = *initial);
    }
    bytes
}

fn set_all(
    given: &MapContents,
    btf: &Btf,
    section: &DataSection,
    bytes: &mut [u8],
) -> Result<(), ContentsCause> {
    assignments(&given.root()?)?.into_iter().try_for_each(|(name, part)| {
        set_variable(btf, section, &name, &part.named(format!("variable {name}")), bytes)
    })
}

/// Names and values of variables: an object, or bpftool's list `[{"value": {".rodata": [{"x": 1}, {"y": 2}]}}]`.
fn assignments<'a>(root: &Part<'a>) -> Result<Vec<(String, Part<'a>)>, ContentsCause> {
    if root.is_object() {
        let mut members = root.members(VARIABLES)?;
        // What `--json` has beside the variables for people; no variable has a dot in its name.
        drop(members.remove(".written"));
        return Ok(members.into_iter().collect());
    }
    let mut found = Vec::new();
    for element in root.list(VARIABLES)? {
        let mut members = element.members(VARIABLES)?;
        if let Some(formatted) = members.remove("formatted") {
            members = formatted.members(VARIABLES)?;
        }
        let section =
            members.remove("value").ok_or_else(|| element.fail(ContentsProblem::Shape(VARIABLES)))?;
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
) -> Result<(), ContentsCause> {
    let var = section.vars.iter().find(|var| btf.type_name(var.ty) == name);
    let Some(&SectionVar { ty, offset, size }) = var else {
        let names = section.vars.iter().map(|var| btf.type_name(var.ty).to_owned()).collect();
        let section = btf.name(section.name).to_owned();
        return Err(part.fail(ContentsProblem::NoVariable { section, name: name.to_owned(), names }));
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
