//! Rows as a Parquet file.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use crate::table::{Field, Kind, Value};

/// Rows of a row group, at most, and bytes of its texts after which it is complete, in the first row groups.
const FIRST: Limits = Limits { rows: 1 << 17, bytes: 32 << 20 };
/// Row groups of a file, at most: their numbers have 16 bits.
const MOST_GROUPS: usize = i16::MAX as usize;
/// Row groups after which all that follow are twice as large, so that a file has room for 4 TB or 16 billion rows.
const GROUPS_OF_A_SIZE: usize = 1 << 13;

/// When a row group is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    rows: usize,
    bytes: usize,
}

impl Limits {
    /// The limits of the next row group after so many.
    fn after(self, groups: usize) -> Self {
        let doubled = groups / GROUPS_OF_A_SIZE;
        Self { rows: self.rows << doubled, bytes: self.bytes << doubled }
    }
}

/// Values of a column that wait for the end of their row group.
enum Column {
    Numbers32(Vec<i32>),
    Numbers64(Vec<i64>),
    Texts(Vec<ByteArray>),
}

/// Writes a Parquet file, by row groups of 131,072 rows or 32 MiB of texts, and from 8,192 row groups on of more, compressed by Snappy.
pub struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
    first: Limits,
    /// Row groups so far.
    groups: usize,
}

impl<W: Write + Send> std::fmt::Debug for ParquetWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetWriter").finish_non_exhaustive()
    }
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// The bytes cannot be written.
    pub fn new(out: W, fields: &[Field]) -> io::Result<Self> {
        Self::with_limits(out, fields, FIRST)
    }

    fn with_limits(out: W, fields: &[Field], first: Limits) -> io::Result<Self> {
        let schema = parse_message_type(&schema(fields)).map_err(failed)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties)).map_err(failed)?;
        let columns = fields.iter().map(|field| Column::of(field.kind)).collect();
        Ok(Self { file, columns, rows: 0, bytes: 0, first, groups: 0 })
    }

    /// Adds a row, with a value for each column in their order.
    ///
    /// # Errors
    /// The bytes cannot be written, a value is not of its column's type (`InvalidInput`), or a file cannot hold more (`FileTooLarge`).
    pub fn push<'a>(&mut self, values: impl IntoIterator<Item = Value<'a>>) -> io::Result<()> {
        for (column, value) in self.columns.iter_mut().zip(values) {
            self.bytes += column.push(value)?;
        }
        self.rows += 1;
        let most = self.first.after(self.groups);
        if self.rows >= most.rows || self.bytes >= most.bytes { self.write_group() } else { Ok(()) }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The bytes cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.into_inner().map_err(failed)?.flush()
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.groups == MOST_GROUPS {
            let full = "a Parquet file has no more than 32,767 row groups: write several files";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, full));
        }
        self.groups += 1;
        let mut group = self.file.next_row_group().map_err(failed)?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column().map_err(failed)? else { break };
            column.write(&mut writer).map_err(failed)?;
            writer.close().map_err(failed)?;
        }
        group.close().map_err(failed)?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

impl Column {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::U32 => Self::Numbers32(Vec::new()),
            Kind::U64 | Kind::Time => Self::Numbers64(Vec::new()),
            Kind::Word | Kind::Bytes => Self::Texts(Vec::new()),
        }
    }

    /// Adds a value, and returns its bytes if it is a text.
    fn push(&mut self, value: Value<'_>) -> io::Result<usize> {
        match (self, value) {
            // Unsigned numbers have the bits of signed ones.
            (Self::Numbers32(numbers), Value::Number(number)) => numbers.push(number as u32 as i32),
            (Self::Numbers64(numbers), Value::Number(number)) => numbers.push(number.cast_signed()),
            (Self::Texts(texts), Value::Word(word)) => texts.push(word.into()),
            (Self::Texts(texts), Value::Bytes(bytes)) => {
                texts.push(bytes.to_vec().into());
                return Ok(bytes.len());
            }
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "a value of another type")),
        }
        Ok(0)
    }

    /// Writes the values, and forgets them.
    fn write(&mut self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Self::Numbers32(numbers) => {
                writer.typed::<Int32Type>().write_batch(numbers, None, None)?;
                numbers.clear();
            }
            Self::Numbers64(numbers) => {
                writer.typed::<Int64Type>().write_batch(numbers, None, None)?;
                numbers.clear();
            }
            Self::Texts(texts) => {
                writer.typed::<ByteArrayType>().write_batch(texts, None, None)?;
                texts.clear();
            }
        }
        Ok(())
    }
}

/// The schema in Parquet's language of them.
fn schema(fields: &[Field]) -> String {
    let field = |field: &Field| {
        let (physical, logical) = match field.kind {
            Kind::U32 => ("int32", " (INTEGER(32,false))"),
            Kind::U64 => ("int64", " (INTEGER(64,false))"),
            Kind::Time => ("int64", " (TIMESTAMP(NANOS,true))"),
            Kind::Word => ("binary", " (STRING)"),
            Kind::Bytes => ("binary", ""),
        };
        format!("required {physical} {}{logical};", field.name)
    };
    format!("message packets {{ {} }}", fields.iter().map(field).collect::<String>())
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_groups_grow_so_that_a_file_has_room() {
        let limits: Vec<_> = [0, 8191, 8192, 32766].map(|groups| FIRST.after(groups)).into();
        assert_eq!(limits.iter().map(|limit| limit.rows >> 17).collect::<Vec<_>>(), [1, 1, 2, 8]);
        assert_eq!(limits[3].bytes, 256 << 20);
        let room: u128 = (0..MOST_GROUPS).map(|groups| FIRST.after(groups).bytes as u128).sum();
        assert!(room > 4_000_000_000_000, "{room}");
    }

    #[test]
    fn a_file_that_is_full_refuses_more() {
        let fields = [Field { name: "number", kind: Kind::U32 }];
        let mut writer =
            ParquetWriter::with_limits(Vec::new(), &fields, Limits { rows: 1, bytes: 1 }).unwrap();
        // As if the row groups before had been written, of which the last ones have 8 rows.
        writer.groups = MOST_GROUPS - 1;
        for row in 0..8 + 7 {
            writer.push([Value::Number(row)]).unwrap();
        }
        let error = writer.push([Value::Number(15)]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(
            error.to_string(),
            "a Parquet file has no more than 32,767 row groups: write several files"
        );
    }
}
