//! Global variables that the command line sets one by one.

use paceline::Object;
use paceline::contents::{MapContents, variables};
use serde_json::{Value as Json, json};

use super::error::ObjectError;
use crate::common::suggest::closest;

/// A variable and its value, `NAME=VALUE`: JSON, or a text, such as an address or an enumerator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetArg {
    name: String,
    value: Json,
}

impl SetArg {
    pub(super) fn parse(arg: &str) -> Result<Self, &'static str> {
        let (name, value) = arg.split_once('=').ok_or("it must be NAME=VALUE")?;
        if name.is_empty() {
            return Err("the variable's name is missing");
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
        Ok(Self { name: name.to_owned(), value })
    }

    /// The section of an object that has the variable.
    fn section<'a>(&self, object: &'a Object) -> Option<&'a str> {
        let btf = object.btf()?;
        let has = |spec: &&paceline::MapSpec| {
            let section = variables(btf, spec);
            section.is_some_and(|section| section.vars.iter().any(|var| btf.type_name(var.ty) == self.name))
        };
        object.maps().iter().find(has).map(|spec| spec.name.as_str())
    }
}

/// The sections of an object with the variables that are set there, each as an object of names and values.
pub(crate) fn sections_set(given: &[SetArg], object: &Object) -> Vec<(String, Json)> {
    let mut sections: Vec<(String, Json)> = Vec::new();
    for set in given {
        let Some(section) = set.section(object) else { continue };
        match sections.iter_mut().find(|(name, _)| name == section) {
            Some((_, variables)) => variables[&set.name] = set.value.clone(),
            None => sections.push((section.to_owned(), json!({ &set.name: set.value }))),
        }
    }
    sections
}

/// The same as contents of maps.
pub(crate) fn variables_set(given: &[SetArg], object: &Object) -> Vec<MapContents> {
    let of = |(section, variables): (String, Json)| {
        MapContents::inline(&section, "--set", variables.to_string(), (0, 0))
    };
    sections_set(given, object).into_iter().map(of).collect()
}

/// Refuses variables that none of the objects has.
pub(crate) fn check_set<'a>(
    given: &[SetArg],
    objects: impl Iterator<Item = &'a Object> + Clone,
) -> Result<(), ObjectError> {
    for set in given {
        if objects.clone().any(|object| set.section(object).is_some()) {
            continue;
        }
        let names: Vec<_> = objects.clone().flat_map(names).collect();
        let hint = closest(&set.name, names.iter().copied());
        let hint = hint.or_else(|| (!names.is_empty()).then(|| format!("there is {}", names.join(", "))));
        return Err(ObjectError::NoVariable { name: set.name.clone(), hint });
    }
    Ok(())
}

/// The names of all global variables.
fn names(object: &Object) -> Vec<&str> {
    let Some(btf) = object.btf() else { return Vec::new() };
    let sections = object.maps().iter().filter_map(|spec| variables(btf, spec));
    sections.flat_map(|section| section.vars.iter().map(|var| btf.type_name(var.ty))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_json_or_a_text() {
        let parse = |text| SetArg::parse(text).map(|set| (set.name, set.value));
        assert_eq!(parse("every=3"), Ok(("every".into(), json!(3))));
        assert_eq!(parse("flags=[1, 2]"), Ok(("flags".into(), json!([1, 2]))));
        assert_eq!(parse("address=10.0.0.1"), Ok(("address".into(), json!("10.0.0.1"))));
        assert_eq!(parse("text=a=b"), Ok(("text".into(), json!("a=b"))));
        assert_eq!(parse("text="), Ok(("text".into(), json!(""))));
        for wrong in ["every", "=3", ""] {
            parse(wrong).unwrap_err();
        }
    }
}
