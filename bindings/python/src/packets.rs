//! Many packets, without an object of Python for each: Arrow columns, rows of an array, or bytes that were collected from a list.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, LargeBinaryArray};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use pyo3_arrow::input::AnyArray;

use crate::packet::{at_index, bytes_of};

/// Bytes that are collected before they run; a part of a long list, or of a large array.
const PART: usize = 1 << 20;

/// Packets by their index.
pub(crate) trait Packets: Sync {
    fn len(&self) -> usize;
    /// `None` for one that is null.
    fn get(&self, index: usize) -> Option<&[u8]>;
}

macro_rules! of_arrays {
    ($($array:ty),*) => {
        $(impl Packets for $array {
            fn len(&self) -> usize {
                Array::len(self)
            }

            #[inline]
            fn get(&self, index: usize) -> Option<&[u8]> {
                (index < Array::len(self) && self.is_valid(index)).then(|| self.value(index))
            }
        })*
    };
}

of_arrays!(BinaryArray, LargeBinaryArray, BinaryViewArray, FixedSizeBinaryArray);

/// Packets that were collected.
#[derive(Default)]
pub(crate) struct Collected {
    bytes: Vec<u8>,
    /// Of each packet.
    ends: Vec<usize>,
}

impl Packets for Collected {
    fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&[u8]> {
        let start = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        self.bytes.get(start..*self.ends.get(index)?)
    }
}

/// Rows of equal length.
struct Rows<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl Packets for Rows<'_> {
    fn len(&self) -> usize {
        self.bytes.len() / self.len
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&[u8]> {
        self.bytes.get(index * self.len..(index + 1) * self.len)
    }
}

/// Consumer of packets; generic, so that its calls are inlined.
pub(crate) trait Run {
    /// Runs packets without the interpreter.
    fn run(&mut self, py: Python<'_>, packets: &impl Packets) -> PyResult<()>;
}

/// Runs the packets of an object: an Arrow array or stream of binaries, a two-dimensional array of bytes, or any iterable of packets.
pub(crate) fn each(object: &Bound<'_, PyAny>, run: &mut impl Run) -> PyResult<()> {
    let py = object.py();
    if object.hasattr("__arrow_c_stream__")? || object.hasattr("__arrow_c_array__")? {
        let (chunks, _) =
            object.extract::<AnyArray>()?.into_chunked_array().map_err(PyErr::from)?.into_inner();
        return chunks.iter().try_for_each(|chunk| arrow(py, chunk, run));
    }
    if object.cast::<PyBytes>().is_err()
        && let Ok(view) = PyMemoryView::from(object)
    {
        return rows(&view, run);
    }
    if object.cast::<PyBytes>().is_ok() || object.hasattr("__bytes__")? {
        return Err(PyTypeError::new_err(
            "this is one packet; run_many takes many: a list, an array or an Arrow column",
        ));
    }
    list(object, run)
}

fn arrow(py: Python<'_>, array: &ArrayRef, run: &mut impl Run) -> PyResult<()> {
    match array.data_type() {
        DataType::Binary => run.run(py, array.as_binary::<i32>()),
        DataType::LargeBinary => run.run(py, array.as_binary::<i64>()),
        DataType::BinaryView => run.run(py, array.as_binary_view()),
        DataType::FixedSizeBinary(_) => run.run(py, array.as_fixed_size_binary()),
        DataType::Struct(_) => {
            let data = array
                .as_struct()
                .column_by_name("data")
                .or_else(|| array.as_struct().column_by_name("input"));
            let no_column = "the table has no column data; run_many(table[\"packets\"]) takes another one";
            arrow(py, data.ok_or_else(|| PyValueError::new_err(no_column))?, run)
        }
        other => Err(PyTypeError::new_err(format!("packets are a column of binaries, not of {other}"))),
    }
}

/// Rows of an array of bytes, or elements of fixed size, such as those of NumPy's `S64`.
fn rows(view: &Bound<'_, PyMemoryView>, run: &mut impl Run) -> PyResult<()> {
    let (size, shape): (usize, Vec<usize>) =
        (view.getattr("itemsize")?.extract()?, view.getattr("shape")?.extract()?);
    let (count, len) = match shape.as_slice() {
        [count] if size > 1 && is_bytes(view)? => (*count, size),
        [count, len] if size == 1 => (*count, *len),
        _ => {
            return Err(PyTypeError::new_err(format!(
                "packets are a two-dimensional array of bytes, or an array of byte strings; this one has {} dimensions of \
                 elements of {size} bytes",
                shape.len()
            )));
        }
    };
    if count == 0 {
        return Ok(());
    }
    if len == 0 {
        let empty = Collected { bytes: Vec::new(), ends: vec![0; count] };
        return run.run(view.py(), &empty);
    }
    let bytes = view.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    run.run(view.py(), &Rows { bytes: bytes.as_bytes(), len })
}

/// Whether the elements are byte strings: `64s` in the format of `struct`.
fn is_bytes(view: &Bound<'_, PyMemoryView>) -> PyResult<bool> {
    let format: String = view.getattr("format")?.extract()?;
    Ok(format.ends_with('s'))
}

fn list(object: &Bound<'_, PyAny>, run: &mut impl Run) -> PyResult<()> {
    let py = object.py();
    let mut collected = Collected::default();
    for (index, packet) in object.try_iter()?.enumerate() {
        let packet = bytes_of(&packet?).map_err(|error| at_index(index, &error, py))?;
        collected.bytes.extend_from_slice(packet.as_bytes());
        collected.ends.push(collected.bytes.len());
        if collected.bytes.len() >= PART {
            run.run(py, &collected)?;
            collected = Collected::default();
        }
    }
    run.run(py, &collected)
}
