//! Global variables of objects, which are parts of the values of section maps.

use std::sync::Arc;

use paceline::btf::{Btf, SectionVar, Type};
use paceline::{Errno, InitialValue, MapSpec, Object};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::error::{Class, Failure, guarded};
use crate::shared::Shared;
use crate::value::Typing;

/// A variable's place: index of the map, and the bytes in its value.
#[derive(Clone, Copy)]
struct Place {
    map: usize,
    var: SectionVar,
}

/// Calls `see` for each variable of the sections.
fn each(btf: &Btf, maps: &[MapSpec], mut see: impl FnMut(&str, Place)) {
    for (map, spec) in maps.iter().enumerate().filter(|(_, spec)| spec.max_entries == 1) {
        let Some(Type::DataSection(section)) = btf.get(spec.value_type) else { continue };
        section.vars.iter().for_each(|var| see(btf.type_name(var.ty), Place { map, var: *var }));
    }
}

fn find(btf: &Btf, maps: &[MapSpec], name: &str) -> PyResult<Place> {
    let (mut found, mut names) = (None, Vec::new());
    each(btf, maps, |known, place| {
        found = found.or((known == name).then_some(place));
        names.push(known.to_owned());
    });
    found.ok_or_else(|| {
        let there = if names.is_empty() {
            "; it has none".to_owned()
        } else {
            format!(" (available: {})", names.join(", "))
        };
        PyKeyError::new_err(format!("no variable {name}{there}"))
    })
}

fn typing<'a>(btf: &'a Btf, var: &SectionVar) -> Typing<'a> {
    Typing { btf: Some(btf), ty: var.ty, size: var.size as usize, is_prefix: false }
}

fn bytes_of<'a>(value: &'a mut [u8], var: &SectionVar) -> Option<&'a mut [u8]> {
    let start = var.offset as usize;
    value.get_mut(start..start.checked_add(var.size as usize)?)
}

fn outside(name: &str) -> PyErr {
    Failure::new(Class::Object, format!("variable {name} is outside of its section")).into()
}

fn unfit(name: &str, error: &PyErr, py: Python<'_>) -> PyErr {
    Failure::new(Class::Value, format!("variable {name}: {}", error.value(py)))
        .at(format!("variable {name}"))
        .into()
}

/// Sets variables in an object that is not loaded yet: programs are verified with constants as they are then.
pub(crate) fn set_initial(object: &mut Object, variables: &Bound<'_, PyDict>) -> PyResult<()> {
    let btf = object.shared_btf();
    for (name, value) in variables.iter() {
        let name = name.cast::<PyString>()?.to_string();
        let Some(btf) = btf.as_deref() else {
            return Err(PyKeyError::new_err(format!("no variable {name}; the object has no types")));
        };
        let Place { map, var } = find(btf, object.maps(), &name)?;
        let value = typing(btf, &var).encode(&value).map_err(|error| unfit(&name, &error, value.py()))?;
        let Some(spec) = object.specs_mut().maps.get_mut(map) else { continue };
        let mut bytes = match spec.contents.first() {
            Some((_, InitialValue::Bytes(bytes))) => bytes.clone(),
            _ => Vec::new(),
        };
        bytes.resize(spec.value_size as usize, 0);
        bytes_of(&mut bytes, &var).ok_or_else(|| outside(&name))?.copy_from_slice(&value);
        spec.contents = vec![(0u32.to_ne_bytes().to_vec(), InitialValue::Bytes(bytes))];
    }
    Ok(())
}

/// The variables of a loaded object.
#[pyclass(frozen, name = "RawVariables", module = "paceline._paceline")]
pub(crate) struct Variables {
    shared: Arc<Shared>,
    btf: Option<Arc<Btf>>,
}

impl Variables {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), btf: shared.collection.object().shared_btf() }
    }

    fn find(&self, name: &str) -> PyResult<(&Btf, Place)> {
        let btf = self.btf.as_deref();
        let btf =
            btf.ok_or_else(|| PyKeyError::new_err(format!("no variable {name}; the object has no types")))?;
        Ok((btf, find(btf, self.shared.collection.object().maps(), name)?))
    }

    fn value_of(&self, name: &str, map: usize) -> PyResult<Vec<u8>> {
        let map = self.shared.collection.maps().get(map).ok_or_else(|| outside(name))?;
        map.lookup(&0u32.to_ne_bytes()).map_err(|errno| refused(name, errno))
    }
}

fn refused(name: &str, errno: Errno) -> PyErr {
    let why = match errno {
        Errno::EPERM => {
            "it is a constant; load(variables=...) sets it before the program is verified".to_owned()
        }
        errno => errno.to_string(),
    };
    let failure = Failure::new(Class::Map, format!("variable {name}: {why}"));
    failure.with_data(serde_json::json!({ "errno": errno.0 })).into()
}

#[pymethods]
impl Variables {
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        if let Some(btf) = &self.btf {
            each(btf, self.shared.collection.object().maps(), |name, _| names.push(name.to_owned()));
        }
        names
    }

    fn get<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let (btf, Place { map, var }) = self.find(name)?;
            let mut value = self.value_of(name, map)?;
            typing(btf, &var).decode(py, bytes_of(&mut value, &var).ok_or_else(|| outside(name))?)
        })
    }

    fn set(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        guarded(|| {
            let (btf, Place { map, var }) = self.find(name)?;
            let bytes = typing(btf, &var).encode(value).map_err(|error| unfit(name, &error, value.py()))?;
            let mut section = self.value_of(name, map)?;
            bytes_of(&mut section, &var).ok_or_else(|| outside(name))?.copy_from_slice(&bytes);
            let map = self.shared.collection.maps().get(map).ok_or_else(|| outside(name))?;
            map.insert(&0u32.to_ne_bytes(), &section).map_err(|errno| refused(name, errno))
        })
    }
}

/// The global variables of a collection, as a mapping in Python.
pub(crate) fn variables_of<'py>(py: Python<'py>, shared: &Arc<Shared>) -> PyResult<Bound<'py, PyAny>> {
    py.import("paceline._variables")?.call_method1("Variables", (Variables::new(shared),))
}
