//! Columns about packets, filled burst by burst.

use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, UInt32Builder};
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int8Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use paceline::{Burst, Host, MAX_BURST, RanAs, Redirect, RedirectTarget, Verdict};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Declares the columns, so that none lacks its name, type or meaning.
macro_rules! columns {
    ($($(#[$doc:meta])* $column:ident = $name:literal: $type:expr, $nullable:literal;)*) => {
        /// A column about packets.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Column {
            $($(#[$doc])* $column,)*
        }

        impl Column {
            const ALL: &[Self] = &[$(Self::$column,)*];

            const fn name(self) -> &'static str {
                match self { $(Self::$column => $name,)* }
            }

            fn field(self) -> Field {
                match self { $(Self::$column => Field::new($name, $type, $nullable),)* }
            }
        }
    };
}

columns! {
    /// From 1.
    Number = "number": DataType::UInt64, false;
    /// When it was received.
    Time = "time": DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), false;
    /// Index of the interface in the capture.
    Interface = "interface": DataType::UInt32, false;
    /// On the wire, in bytes.
    OriginalLength = "original_length": DataType::UInt32, false;
    /// As it came in, in bytes.
    CapturedLength = "captured_length": DataType::UInt32, false;
    /// As the program left it, in bytes.
    Length = "length": DataType::UInt32, false;
    /// `aborted`, `drop`, `pass`, `tx` or `redirect`.
    Verdict = "verdict": DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)), false;
    /// The program's return value.
    Code = "code": DataType::Int64, false;
    /// Index of the interface that it is redirected to.
    RedirectInterface = "redirect_interface": DataType::UInt32, true;
    /// Key in the map that it is redirected by.
    RedirectKey = "redirect_key": DataType::UInt32, true;
    /// Bytes as it came in.
    Input = "input": DataType::LargeBinary, false;
    /// Bytes as the program left it.
    Data = "data": DataType::LargeBinary, false;
    /// Bytes before the packet, as the program left them.
    Metadata = "metadata": DataType::LargeBinary, false;
}

/// The columns that are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    columns: Vec<Column>,
    schema: SchemaRef,
}

impl Columns {
    pub(crate) fn named(names: &[String]) -> PyResult<Self> {
        let known = |name: &String| {
            Column::ALL.iter().copied().find(|column| column.name() == name).ok_or_else(|| {
                let names: Vec<_> = Column::ALL.iter().map(|column| column.name()).collect();
                PyValueError::new_err(format!("no column {name} (available: {})", names.join(", ")))
            })
        };
        let columns: Vec<Column> = names.iter().map(known).collect::<PyResult<_>>()?;
        if let Some(twice) = columns.iter().enumerate().find(|(at, column)| columns[..*at].contains(column)) {
            return Err(PyValueError::new_err(format!("column {} is asked for twice", twice.1.name())));
        }
        let schema = Arc::new(Schema::new(columns.iter().map(|column| column.field()).collect::<Vec<_>>()));
        Ok(Self { columns, schema })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Empty columns for what runs packets, with room for so many of them.
    pub(crate) fn table(&self, ran: RanAs, packets: usize) -> Table {
        let columns = self.columns.iter().map(|column| Building::new(*column, packets)).collect();
        Table { columns, ran, schema: Arc::clone(&self.schema), packets: 0 }
    }
}

/// A column that is filled.
enum Building {
    Numbers32(Column, Vec<u32>),
    Numbers64(Column, Vec<u64>),
    Verdicts(Vec<i8>),
    Codes(Vec<i64>),
    Optional(Column, UInt32Builder),
    Bytes(Column, LargeBinaryBuilder),
}

impl Building {
    fn new(column: Column, packets: usize) -> Self {
        match column {
            Column::Number | Column::Time => Self::Numbers64(column, Vec::with_capacity(packets)),
            Column::Verdict => Self::Verdicts(Vec::with_capacity(packets)),
            Column::Code => Self::Codes(Vec::with_capacity(packets)),
            Column::RedirectInterface | Column::RedirectKey => Self::Optional(column, UInt32Builder::new()),
            Column::Input | Column::Data | Column::Metadata => Self::Bytes(column, LargeBinaryBuilder::new()),
            Column::Interface | Column::OriginalLength | Column::CapturedLength | Column::Length => {
                Self::Numbers32(column, Vec::with_capacity(packets))
            }
        }
    }

    /// Adds what was there before the program.
    fn add_before(&mut self, burst: &Burst) {
        match self {
            Self::Bytes(Column::Input, bytes) => {
                burst.iter().for_each(|frame| bytes.append_value(frame.packet()))
            }
            Self::Numbers32(Column::CapturedLength, numbers) => {
                numbers.extend(burst.iter().map(|frame| frame.len() as u32));
            }
            _ => {}
        }
    }

    /// Adds what is there after the program; `packets` ran before.
    fn add_after(&mut self, burst: &Burst, ran: RanAs, host: &Host, packets: u64) {
        match self {
            Self::Verdicts(verdicts) => verdicts.extend(burst.iter().map(|frame| ran.verdict(frame) as i8)),
            Self::Codes(codes) => {
                let (RanAs::Program(meaning) | RanAs::Chain(meaning)) = ran;
                codes.extend(burst.iter().map(|frame| meaning.number(ran.returned(frame, host))));
            }
            Self::Numbers64(Column::Number, numbers) => {
                numbers.extend((packets + 1..).take(burst.len()));
            }
            Self::Numbers64(_, times) => times.extend(burst.iter().map(|frame| frame.meta().timestamp_ns)),
            Self::Numbers32(column, numbers) => match column {
                Column::Interface => numbers.extend(burst.iter().map(|frame| frame.meta().interface)),
                Column::OriginalLength => numbers.extend(burst.iter().map(|frame| frame.meta().original_len)),
                Column::Length => numbers.extend(burst.iter().map(|frame| frame.len() as u32)),
                _ => {}
            },
            Self::Optional(column, numbers) => {
                let part = |redirect: Redirect| match (redirect.target, *column) {
                    (RedirectTarget::Interface { ifindex }, Column::RedirectInterface) => Some(ifindex),
                    (RedirectTarget::Map { key, .. }, Column::RedirectKey) => Some(key),
                    _ => None,
                };
                burst.iter().for_each(|frame| {
                    let redirect = frame.redirect().filter(|_| ran.verdict(frame) == Verdict::Redirect);
                    numbers.append_option(redirect.and_then(part));
                });
            }
            Self::Bytes(Column::Data, bytes) => {
                burst.iter().for_each(|frame| bytes.append_value(frame.packet()))
            }
            Self::Bytes(Column::Metadata, bytes) => {
                burst.iter().for_each(|frame| bytes.append_value(frame.metadata()));
            }
            Self::Bytes(..) => {}
        }
    }

    /// Removes the values of all but the first packets.
    fn truncate(&mut self, packets: usize) {
        match self {
            Self::Numbers32(_, numbers) => numbers.truncate(packets),
            Self::Numbers64(_, numbers) => numbers.truncate(packets),
            Self::Verdicts(verdicts) => verdicts.truncate(packets),
            Self::Codes(codes) => codes.truncate(packets),
            Self::Optional(..) | Self::Bytes(..) => {}
        }
    }

    fn finish(self, packets: usize) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Numbers32(_, numbers) => Arc::new(UInt32Array::from(numbers)),
            Self::Numbers64(Column::Time, times) => {
                let times: Vec<i64> =
                    times.into_iter().map(|time| i64::try_from(time).unwrap_or(i64::MAX)).collect();
                Arc::new(TimestampNanosecondArray::from(times).with_timezone("UTC"))
            }
            Self::Numbers64(_, numbers) => Arc::new(UInt64Array::from(numbers)),
            Self::Codes(codes) => Arc::new(Int64Array::from(codes)),
            Self::Verdicts(verdicts) => {
                let names = StringArray::from_iter_values(Verdict::ALL.map(Verdict::name));
                Arc::new(DictionaryArray::<Int8Type>::try_new(Int8Array::from(verdicts), Arc::new(names))?)
            }
            Self::Optional(_, mut numbers) => Arc::new(numbers.finish().slice(0, packets)),
            Self::Bytes(_, mut bytes) => Arc::new(bytes.finish().slice(0, packets)),
        })
    }
}

/// Columns that are filled.
pub(crate) struct Table {
    columns: Vec<Building>,
    ran: RanAs,
    schema: SchemaRef,
    packets: usize,
}

impl Table {
    /// Adds what is known of the packets of a burst before they run.
    pub(crate) fn add_before(&mut self, burst: &Burst) {
        self.columns.iter_mut().for_each(|column| column.add_before(burst));
    }

    /// Adds the rest when they ran; `before` packets ran before the burst.
    pub(crate) fn add_after(&mut self, burst: &Burst, host: &Host, before: u64) {
        self.columns.iter_mut().for_each(|column| column.add_after(burst, self.ran, host, before));
        self.packets += burst.len();
    }

    /// Packets of a burst, at most: one where a column needs what the host knows of the last packet alone.
    pub(crate) fn burst(&self) -> usize {
        let needs_last = self.columns.iter().any(|column| matches!(column, Building::Codes(_)));
        if needs_last && self.ran.only_last_is_known() { 1 } else { MAX_BURST }
    }

    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    pub(crate) fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let packets = self.packets;
        self.columns.iter_mut().for_each(|column| column.truncate(packets));
        let arrays = self.columns.into_iter().map(|column| column.finish(packets));
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(packets));
        RecordBatch::try_new_with_options(self.schema, arrays.collect::<Result<_, _>>()?, &options)
    }
}
