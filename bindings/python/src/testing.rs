//! Doors of this package's own tests: programs without an object file, a panic, and the smallest call.

use std::sync::Arc;

use paceline::btf::Btf;
use paceline::isa::RawInsn;
use paceline::{
    FunctionInfo, InitialValue, KfuncRef, Linkage, MapFlags, MapKind, MapSpec, Object, ProgramKind,
    ProgramSpec, XdpAttach,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value as Json;

use crate::error::guarded;
use crate::object::PyObject;

/// The smallest call of PyO3, which speeds are compared with.
#[pyfunction]
pub(crate) fn nothing(packet: &Bound<'_, PyBytes>) -> usize {
    packet.as_bytes().len()
}

/// Panics as a fault of ours would.
#[pyfunction]
pub(crate) fn panic() -> PyResult<()> {
    guarded(|| panic!("a panic of a test"))
}

/// An object from a case of `paceline-testkit cases --export`.
#[pyfunction]
pub(crate) fn object_of_case(case: &str) -> PyResult<PyObject> {
    guarded(|| {
        let object = parse(case).ok_or_else(|| PyValueError::new_err("this is no case"))?;
        Ok(PyObject::of(object, None))
    })
}

fn parse(case: &str) -> Option<Object> {
    let case: Json = serde_json::from_str(case).ok()?;
    let btf = Btf::parse(&hex(case.get("btf")?)?).ok()?;
    let programs: Vec<ProgramSpec> = each(case.get("programs")?, program)?;
    let mut maps: Vec<MapSpec> = each(case.get("maps")?, map)?;
    maps.iter_mut().for_each(|map| map.find_special_fields(&btf));
    let mut object = Object::of_program(programs.first()?.clone());
    let specs = object.specs_mut();
    (specs.programs, specs.maps, specs.btf) = (programs, maps, Some(Arc::new(btf)));
    Some(object)
}

fn each<T>(json: &Json, of: impl Fn(&Json) -> Option<T>) -> Option<Vec<T>> {
    json.as_array()?.iter().map(of).collect()
}

fn hex(json: &Json) -> Option<Vec<u8>> {
    let pairs = json.as_str()?.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn text(json: &Json) -> Option<String> {
    json.as_str().map(str::to_owned)
}

fn number<T: TryFrom<u64>>(json: &Json) -> Option<T> {
    json.as_u64()?.try_into().ok()
}

fn program(json: &Json) -> Option<ProgramSpec> {
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: json.get("frags")?.as_bool()? };
    let insns = hex(json.get("insns")?)?;
    let insns: Vec<_> = insns
        .chunks(RawInsn::BYTES)
        .map(|slot| Some(RawInsn::from_le_bytes(slot.try_into().ok()?)))
        .collect::<Option<_>>()?;
    let function = |json: &Json| {
        let is_global = json.get(2)?.as_bool()?;
        Some(FunctionInfo {
            start: number(json.get(0)?)?,
            name: text(json.get(1)?)?,
            linkage: if is_global { Linkage::Global } else { Linkage::Static },
            btf_id: number(json.get(3)?)?,
        })
    };
    let kfunc = |json: &Json| {
        Some(KfuncRef {
            name: text(json.get(0)?)?,
            weak: json.get(1)?.as_bool()?,
            btf_id: number(json.get(2)?)?,
            converted: false,
        })
    };
    let mut spec = ProgramSpec::new(json.get("name")?.as_str()?, kind, insns);
    spec.functions = each(json.get("functions")?, function)?;
    spec.kfuncs = each(json.get("kfuncs")?, kfunc)?;
    spec.license = text(json.get("license")?)?;
    Some(spec)
}

fn map(json: &Json) -> Option<MapSpec> {
    let sized = |name: &str| number(json.get(name)?);
    let kind = MapKind::from_number(sized("kind")?)?;
    let (key, value, entries) = (sized("key_size")?, sized("value_size")?, sized("max_entries")?);
    let mut spec = MapSpec::new(text(json.get("name")?)?, kind, key, value, entries);
    spec.flags = MapFlags(sized("flags")?);
    spec.extra = json.get("extra")?.as_u64()?;
    (spec.key_type, spec.value_type) = (sized("key_type")?, sized("value_type")?);
    spec.inner = match json.get("inner")? {
        Json::Null => None,
        inner => Some(Box::new(map(inner)?)),
    };
    spec.frozen = json.get("frozen")?.as_bool()?;
    spec.contents =
        each(json.get("contents")?, |element| Some((hex(element.get(0)?)?, initial(element.get(1)?)?)))?;
    Some(spec)
}

fn initial(json: &Json) -> Option<InitialValue> {
    let kinds = json.as_object()?;
    match kinds.iter().next()? {
        (kind, value) if kind == "bytes" => Some(InitialValue::Bytes(hex(value)?)),
        (kind, value) if kind == "map" => Some(InitialValue::Map(number(value)?)),
        (_, value) => Some(InitialValue::Program(text(value)?)),
    }
}
