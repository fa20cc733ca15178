//! Columns of Parquet files.

use std::fmt;

use clap::ValueEnum;
use paceline_archive::table::{Field, Kind, Value};
use paceline_archive::{Rows, Wanted};

/// A column, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum ColumnName {
    /// Name of the capture.
    Capture,
    /// Offset of the record in the capture.
    Offset,
    /// When it was received.
    Time,
    /// Index of the interface in the capture.
    Interface,
    /// Length on the wire.
    OriginalLength,
    /// Captured length.
    CapturedLength,
    /// Length as the program left it.
    Length,
    /// Verdict of the program.
    Verdict,
    /// Return value of the program.
    Code,
    /// Bytes as captured.
    Input,
    /// Bytes as the program left them, or as captured without one.
    Data,
}

impl ColumnName {
    const ALWAYS: [Self; 6] =
        [Self::Capture, Self::Offset, Self::Time, Self::OriginalLength, Self::CapturedLength, Self::Data];

    /// The columns of a file where none are named.
    pub(super) fn standard(has_program: bool) -> Vec<Self> {
        let of_program: &[Self] = if has_program { &[Self::Verdict] } else { &[] };
        Self::ALWAYS.iter().chain(of_program).copied().collect()
    }

    pub(super) fn is_of_program(self) -> bool {
        matches!(self, Self::Length | Self::Verdict | Self::Code)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Offset => "offset",
            Self::Time => "time",
            Self::Interface => "interface",
            Self::OriginalLength => "original_length",
            Self::CapturedLength => "captured_length",
            Self::Length => "length",
            Self::Verdict => "verdict",
            Self::Code => "code",
            Self::Input => "input",
            Self::Data => "data",
        }
    }

    pub(super) fn field(self) -> Field {
        let kind = match self {
            Self::Capture | Self::Verdict => Kind::Word,
            Self::Offset => Kind::U64,
            Self::Time => Kind::Time,
            Self::Input | Self::Data => Kind::Bytes,
            _ => Kind::U32,
        };
        Field { name: self.name(), kind }
    }

    /// The value of a row.
    pub(super) fn value<'a>(self, rows: &'a Rows, index: usize, capture: &'a str) -> Value<'a> {
        let number = |numbers: &[u32]| Value::Number(numbers[index].into());
        match self {
            Self::Capture => Value::Word(capture),
            Self::Offset => Value::Number(rows.offsets[index]),
            Self::Time => Value::Number(rows.times[index]),
            Self::Interface => number(&rows.interfaces),
            Self::OriginalLength => number(&rows.original),
            Self::CapturedLength => number(&rows.captured),
            Self::Length => number(&rows.lengths),
            Self::Verdict => Value::Word(rows.verdicts[index].name()),
            Self::Code => number(&rows.codes),
            Self::Input => Value::Bytes(rows.input.get(index)),
            Self::Data => Value::Bytes(rows.data.get(index)),
        }
    }
}

impl fmt::Display for ColumnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The bytes that columns need.
pub(super) fn wanted(columns: &[ColumnName]) -> Wanted {
    Wanted { input: columns.contains(&ColumnName::Input), data: columns.contains(&ColumnName::Data) }
}
