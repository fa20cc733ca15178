//! Columns of scans.

use std::sync::Arc;

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Int8Array, Int32Array, LargeBinaryArray, RecordBatch, RecordBatchOptions,
    StringArray, TimestampNanosecondArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use paceline::Verdict;
use paceline_archive::{Rows, Texts, Wanted};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A column: name, type, whether programs give it, and its values in rows of captures with these names.
struct Column {
    name: &'static str,
    data_type: fn() -> DataType,
    is_of_program: bool,
    values: fn(&[Rows], &[String]) -> Result<ArrayRef, ArrowError>,
}

fn words<const BITS: usize>() -> DataType {
    let index = if BITS == 8 { DataType::Int8 } else { DataType::Int32 };
    DataType::Dictionary(Box::new(index), Box::new(DataType::Utf8))
}

fn time() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

/// All values of a column of rows.
fn all<'a, T: Copy + 'a>(
    rows: &'a [Rows],
    column: impl Fn(&'a Rows) -> &'a [T] + 'a,
) -> impl Iterator<Item = T> {
    rows.iter().flat_map(move |rows| column(rows).iter().copied())
}

fn numbers(rows: &[Rows], column: impl Fn(&Rows) -> &[u32]) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(UInt32Array::from_iter_values(all(rows, column))))
}

/// Bytes of packets, joined.
fn binaries(rows: &[Rows], column: impl Fn(&Rows) -> &Texts) -> Result<ArrayRef, ArrowError> {
    let lengths = |rows| {
        let ends = &column(rows).ends;
        std::iter::once(&0).chain(ends).zip(ends).map(|(start, end)| end - start).collect::<Vec<_>>()
    };
    let offsets = OffsetBuffer::from_lengths(rows.iter().flat_map(lengths));
    let bytes: Vec<u8> = rows.iter().flat_map(|rows| &column(rows).bytes).copied().collect();
    Ok(Arc::new(LargeBinaryArray::try_new(offsets, Buffer::from_vec(bytes), None)?))
}

fn captures(rows: &[Rows], names: &[String]) -> Result<ArrayRef, ArrowError> {
    let indices = rows.iter().flat_map(|rows| std::iter::repeat_n(rows.capture as i32, rows.len()));
    let names = StringArray::from_iter_values(names);
    let indices = Int32Array::from_iter_values(indices);
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(indices, Arc::new(names))?))
}

fn times(rows: &[Rows], _: &[String]) -> Result<ArrayRef, ArrowError> {
    let times = all(rows, |rows| &rows.times).map(|time| i64::try_from(time).unwrap_or(i64::MAX));
    let times = ScalarBuffer::from(times.collect::<Vec<_>>());
    Ok(Arc::new(TimestampNanosecondArray::new(times, None).with_timezone("UTC")))
}

fn verdicts(rows: &[Rows], _: &[String]) -> Result<ArrayRef, ArrowError> {
    let names = StringArray::from_iter_values(Verdict::ALL.map(Verdict::name));
    let verdicts = Int8Array::from_iter_values(all(rows, |rows| &rows.verdicts).map(|verdict| verdict as i8));
    Ok(Arc::new(DictionaryArray::<Int8Type>::try_new(verdicts, Arc::new(names))?))
}

/// Declares a column without naming the members of the structure each time.
const fn column(
    name: &'static str,
    data_type: fn() -> DataType,
    is_of_program: bool,
    values: fn(&[Rows], &[String]) -> Result<ArrayRef, ArrowError>,
) -> Column {
    Column { name, data_type, is_of_program, values }
}

/// The columns that there are.
const COLUMNS: [Column; 11] = [
    column("capture", words::<32>, false, captures),
    column(
        "offset",
        || DataType::UInt64,
        false,
        |rows, _| Ok(Arc::new(UInt64Array::from_iter_values(all(rows, |rows| &rows.offsets)))),
    ),
    column("time", time, false, times),
    column("interface", || DataType::UInt32, false, |rows, _| numbers(rows, |rows| &rows.interfaces)),
    column("original_length", || DataType::UInt32, false, |rows, _| numbers(rows, |rows| &rows.original)),
    column("captured_length", || DataType::UInt32, false, |rows, _| numbers(rows, |rows| &rows.captured)),
    column("length", || DataType::UInt32, true, |rows, _| numbers(rows, |rows| &rows.lengths)),
    column("verdict", words::<8>, true, verdicts),
    column("code", || DataType::UInt32, true, |rows, _| numbers(rows, |rows| &rows.codes)),
    column("input", || DataType::LargeBinary, false, |rows, _| binaries(rows, |rows| &rows.input)),
    column("data", || DataType::LargeBinary, false, |rows, _| binaries(rows, |rows| &rows.data)),
];

/// The columns that are asked for.
#[derive(Clone)]
pub(super) struct Columns {
    columns: Vec<&'static Column>,
    schema: SchemaRef,
}

impl Columns {
    /// Columns by their names; without names those that `paceline scan --parquet` writes.
    pub(super) fn named(names: Option<Vec<String>>, has_program: bool) -> PyResult<Self> {
        let standard = ["capture", "offset", "time", "original_length", "captured_length", "data"];
        let standard = || {
            standard
                .into_iter()
                .chain(has_program.then_some("verdict"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let mut columns: Vec<&'static Column> = Vec::new();
        for name in names.unwrap_or_else(standard) {
            let found = COLUMNS.iter().find(|column| column.name == name).ok_or_else(|| {
                let names = COLUMNS.each_ref().map(|column| column.name);
                PyValueError::new_err(format!("no column {name} (available: {})", names.join(", ")))
            })?;
            if columns.iter().any(|other| other.name == name) {
                return Err(PyValueError::new_err(format!("column {name} is asked for twice")));
            }
            if found.is_of_program && !has_program {
                return Err(PyValueError::new_err(format!(
                    "column {name} is of a program's outcome: program="
                )));
            }
            columns.push(found);
        }
        let fields = columns.iter().map(|column| Field::new(column.name, (column.data_type)(), false));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self { columns, schema })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The bytes of packets that the columns need.
    pub(super) fn wanted(&self) -> Wanted {
        let has = |name| self.columns.iter().any(|column| column.name == name);
        Wanted { input: has("input"), data: has("data") }
    }

    /// A batch of rows; `names` are those of the captures.
    pub(super) fn batch(&self, rows: &[Rows], names: &[String]) -> Result<RecordBatch, ArrowError> {
        let arrays = self.columns.iter().map(|column| (column.values)(rows, names));
        let options = RecordBatchOptions::new().with_row_count(Some(rows.iter().map(Rows::len).sum()));
        let arrays = arrays.collect::<Result<_, _>>()?;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}
