//! Rows of Arrow arrays as values.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, FieldRef};
use paceline::btf::Value;

/// The value of a row, whatever type it is for. The error says what cannot be one.
pub(crate) fn value_at(array: &ArrayRef, row: usize) -> Result<Value, String> {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Err("null is no value of a C type".to_owned());
    }
    macro_rules! number {
        ($type:ty, $variant:ident) => {
            Value::$variant(array.as_primitive::<$type>().value(row).into())
        };
    }
    Ok(match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::UInt8 => number!(UInt8Type, Unsigned),
        DataType::UInt16 => number!(UInt16Type, Unsigned),
        DataType::UInt32 => number!(UInt32Type, Unsigned),
        DataType::UInt64 => number!(UInt64Type, Unsigned),
        DataType::Int8 => number!(Int8Type, Signed),
        DataType::Int16 => number!(Int16Type, Signed),
        DataType::Int32 => number!(Int32Type, Signed),
        DataType::Int64 => number!(Int64Type, Signed),
        DataType::Float32 => number!(Float32Type, Float),
        DataType::Float64 => number!(Float64Type, Float),
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Value::Text(array.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Value::Text(array.as_string_view().value(row).to_owned()),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::LargeBinary => Value::Bytes(array.as_binary::<i64>().value(row).to_vec()),
        DataType::BinaryView => Value::Bytes(array.as_binary_view().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => Value::Bytes(array.as_fixed_size_binary().value(row).to_vec()),
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row))?,
        DataType::List(_) => list(&array.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row))?,
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            let member =
                |(field, column): (&FieldRef, &ArrayRef)| Ok((field.name().clone(), value_at(column, row)?));
            Value::Struct(columns.map(member).collect::<Result<_, String>>()?)
        }
        other => return Err(format!("{other} is no type of C")),
    })
}

fn list(elements: &ArrayRef) -> Result<Value, String> {
    (0..elements.len()).map(|row| value_at(elements, row)).collect::<Result<_, _>>().map(Value::Array)
}
