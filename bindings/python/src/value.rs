//! Values of C types as Python objects.
//!
//! | C | Python |
//! |---|---|
//! | integers, pointers | `int` |
//! | `bool`, floating point | `bool`, `float` |
//! | enumerations | `Enumerator`, an `int` with a name |
//! | arrays of characters that are text | `str` |
//! | arrays | `tuple` |
//! | structures, unions | `Struct`, a mapping of members with attributes |
//! | without a type | `bytes` |
//!
//! Addresses and numbers in network byte order have the text that people write, in their `repr` and as `text`: `WrittenInt`,
//! `WrittenTuple` and `Struct`.

use paceline::btf::{Btf, TypeId, Value, address_bytes, prefix_bytes};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyMemoryView, PyString, PyTuple,
    PyType,
};

use crate::error::{Class, Failure};

/// Nesting of values; deeper than any type, and than lists that contain themselves can be followed.
const DEPTH: usize = 64;

/// The type of a key or value.
#[derive(Clone, Copy)]
pub(crate) struct Typing<'a> {
    pub(crate) btf: Option<&'a Btf>,
    /// 0 if there is none.
    pub(crate) ty: TypeId,
    /// In bytes.
    pub(crate) size: usize,
    /// Whether it is a key of a longest-prefix trie, which `10.0.0.0/8` stands for.
    pub(crate) is_prefix: bool,
}

impl Typing<'_> {
    /// The Python object of a key or value; `bytes` where there is no type, or it does not agree with the bytes.
    pub(crate) fn decode<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let decode = |btf: &Btf| match self.is_prefix {
            true => btf.decode_prefix(self.ty, bytes).ok(),
            false => btf.decode_written(self.ty, bytes).ok(),
        };
        let value = self.btf.filter(|_| self.ty != 0).and_then(decode);
        match value {
            Some(value) => to_python(py, &value),
            None => Ok(PyBytes::new(py, bytes).into_any()),
        }
    }

    /// The bytes of a key or value. `bytes` of its size stand for themselves.
    pub(crate) fn encode(&self, object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        self.encode_value(from_python(object, 0)?)
    }

    /// As [`encode`](Self::encode), of a value.
    pub(crate) fn encode_value(&self, value: Value) -> PyResult<Vec<u8>> {
        match value {
            Value::Bytes(bytes) if bytes.len() == self.size => Ok(bytes),
            Value::Text(text) if self.is_prefix && prefix_bytes(&text, self.size).is_some() => {
                Ok(prefix_bytes(&text, self.size).unwrap_or_default())
            }
            value => match self.btf.filter(|_| self.ty != 0) {
                Some(btf) => {
                    let bytes = btf.encode(self.ty, &value).map_err(|error| unfit(&error))?;
                    let found = bytes.len();
                    if found == self.size { Ok(bytes) } else { Err(unfit(&self.expects(found))) }
                }
                None => self.untyped(&value).ok_or_else(|| unfit(&self.without_types())),
            },
        }
    }

    fn expects(&self, found: usize) -> String {
        format!("the type takes {found} bytes, the map has {}", self.size)
    }

    fn without_types(&self) -> String {
        let or = if matches!(self.size, 1 | 2 | 4 | 8) { ", or an int" } else { "" };
        format!("the map has no types: {} bytes are expected{or}", self.size)
    }

    /// Bytes of a value where there is no type: a number in the machine's byte order, an address, or a list of bytes.
    fn untyped(&self, value: &Value) -> Option<Vec<u8>> {
        let bytes = match value {
            Value::Unsigned(number) => number.to_ne_bytes(),
            Value::Signed(number) => number.to_ne_bytes(),
            Value::Text(text) => return address_bytes(text, self.size),
            Value::Array(elements) => {
                let byte = |element: &Value| match element {
                    Value::Unsigned(byte) => u8::try_from(*byte).ok(),
                    // As commands print it.
                    Value::Text(text) => u8::from_str_radix(text.strip_prefix("0x")?, 16).ok(),
                    _ => None,
                };
                let bytes: Vec<u8> = elements.iter().map(byte).collect::<Option<_>>()?;
                return Some(bytes).filter(|bytes| bytes.len() == self.size);
            }
            _ => return None,
        };
        if !matches!(self.size, 1 | 2 | 4 | 8) {
            return None;
        }
        let (low, rest) = match cfg!(target_endian = "little") {
            true => bytes.split_at(self.size),
            false => {
                let (rest, low) = bytes.split_at(bytes.len() - self.size);
                (low, rest)
            }
        };
        let sign = if matches!(value, Value::Signed(number) if *number < 0) { 0xff } else { 0 };
        rest.iter().all(|byte| *byte == sign).then(|| low.to_vec())
    }
}

fn unfit(cause: &dyn std::fmt::Display) -> PyErr {
    Failure::new(Class::Value, cause).into()
}

fn class<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyType>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    cell.import(py, "paceline._values", name)
}

pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    static STRUCT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static ENUMERATOR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static WRITTEN_INT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static WRITTEN_TUPLE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match value {
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Signed(number) => integer(py, *number, i64::try_from(*number).ok()),
        Value::Unsigned(number) => integer(py, *number, u64::try_from(*number).ok()),
        Value::Float(number) => number.into_bound_py_any(py),
        Value::Enum { name: Some(name), value } => {
            class(py, &ENUMERATOR, "Enumerator")?.call1((*value, name.as_str()))
        }
        Value::Enum { name: None, value } => integer(py, *value, i64::try_from(*value).ok()),
        Value::Pointer(address) => address.into_bound_py_any(py),
        Value::Text(text) => text.into_bound_py_any(py),
        Value::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        Value::Array(elements) => {
            let elements = elements.iter().map(|element| to_python(py, element));
            Ok(PyTuple::new(py, elements.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        Value::Struct(members) => class(py, &STRUCT, "Struct")?.call1((dict_of(py, members)?,)),
        Value::Written { text, plain } => match &**plain {
            Value::Struct(members) => {
                class(py, &STRUCT, "Struct")?.call1((dict_of(py, members)?, text.as_str()))
            }
            Value::Array(_) => {
                class(py, &WRITTEN_TUPLE, "WrittenTuple")?.call1((to_python(py, plain)?, text.as_str()))
            }
            Value::Signed(_) | Value::Unsigned(_) => {
                class(py, &WRITTEN_INT, "WrittenInt")?.call1((to_python(py, plain)?, text.as_str()))
            }
            plain => to_python(py, plain),
        },
        other => other.to_string().into_bound_py_any(py),
    }
}

fn dict_of<'py>(py: Python<'py>, members: &[(String, Value)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    members.iter().try_for_each(|(name, value)| dict.set_item(name, to_python(py, value)?))?;
    Ok(dict)
}

/// An integer, by way of 64 bits where they suffice, which is faster.
fn integer<'py, Wide, Narrow>(
    py: Python<'py>,
    wide: Wide,
    narrow: Option<Narrow>,
) -> PyResult<Bound<'py, PyAny>>
where
    Wide: IntoPyObjectExt<'py>,
    Narrow: IntoPyObjectExt<'py>,
{
    match narrow {
        Some(narrow) => narrow.into_bound_py_any(py),
        None => wide.into_bound_py_any(py),
    }
}

pub(crate) fn from_python(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEPTH {
        return Err(unfit(&"the value is nested too deep"));
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return number(object);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::Text(text.to_cow()?.into_owned()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Value::Bytes(bytes.to_vec()));
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        return Ok(Value::Float(float.value()));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        return members(dict.iter().map(Ok), depth);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return array(object, depth);
    }
    other_object(object, depth)
}

fn number(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(number) = object.extract::<u64>() {
        return Ok(Value::Unsigned(number.into()));
    }
    if let Ok(number) = object.extract::<i128>() {
        return Ok(if number < 0 { Value::Signed(number) } else { Value::Unsigned(number.unsigned_abs()) });
    }
    let number = object.extract::<u128>().map_err(|_| unfit(&"the number has more than 128 bits"))?;
    Ok(Value::Unsigned(number))
}

/// Objects of classes that Python's own types do not include: mappings, dataclasses, named tuples, numbers of NumPy, addresses.
fn other_object(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if let Ok(mapping) = object.cast::<PyMapping>() {
        let items = mapping.items()?;
        return members(
            items.iter().map(|item| item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()),
            depth,
        );
    }
    if let Some(fields) = object.getattr_opt("__dataclass_fields__")? {
        let names = fields.cast::<PyDict>()?.keys();
        return members(
            names.iter().map(|name| Ok((name.clone(), object.getattr(name.cast::<PyString>()?)?))),
            depth,
        );
    }
    if let Ok(number_of) = object.call_method0("__index__") {
        return number(&number_of);
    }
    if let Ok(view) = PyMemoryView::from(object)
        && view.getattr("itemsize")?.extract::<usize>()? == 1
    {
        return Ok(Value::Bytes(view.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec()));
    }
    let module: String = object.get_type().getattr("__module__")?.extract().unwrap_or_default();
    if module == "ipaddress" {
        return Ok(Value::Text(object.str()?.to_cow()?.into_owned()));
    }
    if object.hasattr("__len__")? && object.hasattr("__getitem__")? {
        return array(object, depth);
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!("{kind} is no value of a C type")))
}

fn array(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let elements = object.try_iter()?.map(|element| from_python(&element?, depth + 1));
    Ok(Value::Array(elements.collect::<PyResult<_>>()?))
}

fn members<'py>(
    items: impl Iterator<Item = PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)>>,
    depth: usize,
) -> PyResult<Value> {
    let member = |item: PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)>| {
        let (name, value) = item?;
        let name = name.cast::<PyString>().map_err(|_| unfit(&"names of members are texts"))?;
        Ok((name.to_cow()?.into_owned(), from_python(&value, depth + 1)?))
    };
    Ok(Value::Struct(items.map(member).collect::<PyResult<_>>()?))
}
