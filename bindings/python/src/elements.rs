//! Keys and values of maps as Arrow arrays.
//!
//! | C | Arrow |
//! |---|---|
//! | integers, enumerations, pointers | integers of their size |
//! | `bool`, floating point | boolean, float |
//! | arrays of bytes and characters; unions; what has no type | fixed-size binary |
//! | other arrays | fixed-size lists |
//! | structures | structs |

use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, StructArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field};
use paceline::btf::{Btf, IntEncoding, Type, TypeId};

/// Nesting of types; deeper than those of maps.
const DEPTH: usize = 16;

/// How a type of C is an Arrow type: where its bytes lie in an element.
pub(crate) struct Shape {
    data_type: DataType,
    /// In bytes, in the element.
    size: usize,
    parts: Vec<(usize, Shape)>,
}

impl Shape {
    /// The shape of values of a type; of its bytes, where the type has no other.
    pub(crate) fn of(btf: Option<&Btf>, ty: TypeId, size: usize) -> Self {
        let known = btf.filter(|_| ty != 0).and_then(|btf| Self::typed(btf, ty, 0));
        known.filter(|shape| shape.size == size).unwrap_or_else(|| Self::bytes(size))
    }

    pub(crate) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn bytes(size: usize) -> Self {
        Self {
            data_type: DataType::FixedSizeBinary(i32::try_from(size).unwrap_or(i32::MAX)),
            size,
            parts: Vec::new(),
        }
    }

    fn plain(data_type: DataType, size: usize) -> Self {
        Self { data_type, size, parts: Vec::new() }
    }

    fn integer(size: usize, signed: bool) -> Option<Self> {
        let data_type = match (size, signed) {
            (1, false) => DataType::UInt8,
            (2, false) => DataType::UInt16,
            (4, false) => DataType::UInt32,
            (8, false) => DataType::UInt64,
            (1, true) => DataType::Int8,
            (2, true) => DataType::Int16,
            (4, true) => DataType::Int32,
            (8, true) => DataType::Int64,
            _ => return None,
        };
        Some(Self::plain(data_type, size))
    }

    fn typed(btf: &Btf, ty: TypeId, depth: usize) -> Option<Self> {
        if depth > DEPTH {
            return None;
        }
        let size = usize::try_from(btf.size_of(ty).ok()?).ok()?;
        match btf.resolve(ty).ok()?.1 {
            Type::Int(int) if int.encoding == IntEncoding::Bool && size == 1 => {
                Some(Self::plain(DataType::Boolean, 1))
            }
            Type::Int(int) => Some(
                Self::integer(size, int.encoding == IntEncoding::Signed).unwrap_or_else(|| Self::bytes(size)),
            ),
            Type::Enum(_) => Self::integer(size, true),
            Type::Ptr(_) => Self::integer(size, false),
            Type::Float { .. } if size == 4 => Some(Self::plain(DataType::Float32, 4)),
            Type::Float { .. } if size == 8 => Some(Self::plain(DataType::Float64, 8)),
            Type::Array { element, count, .. } => {
                let element = Self::typed(btf, *element, depth + 1)?;
                if element.size <= 1 {
                    return Some(Self::bytes(size));
                }
                let field = Arc::new(Field::new_list_field(element.data_type.clone(), false));
                let data_type = DataType::FixedSizeList(field, i32::try_from(*count).ok()?);
                Some(Self { data_type, size, parts: vec![(0, element)] })
            }
            Type::Struct(composite) => {
                let (mut fields, mut parts) = (Vec::new(), Vec::new());
                for member in &composite.members {
                    // Members that are parts of bytes have no place of their own, nor have those without a name.
                    let name = btf.name(member.name);
                    if member.bit_size != 0 || !member.bit_offset.is_multiple_of(8) || name.is_empty() {
                        return Some(Self::bytes(size));
                    }
                    let part = Self::typed(btf, member.ty, depth + 1)?;
                    fields.push(Field::new(name, part.data_type.clone(), false));
                    parts.push((member.bit_offset as usize / 8, part));
                }
                Some(Self { data_type: DataType::Struct(fields.into()), size, parts })
            }
            _ => Some(Self::bytes(size)),
        }
    }

    /// As so many values, one for each CPU.
    pub(crate) fn repeated(self, cpus: usize) -> Self {
        let field = Arc::new(Field::new_list_field(self.data_type.clone(), false));
        let data_type = DataType::FixedSizeList(field, i32::try_from(cpus).unwrap_or(i32::MAX));
        Self { data_type, size: self.size * cpus, parts: vec![(0, self)] }
    }

    /// The values at an offset of elements, which are one after the other.
    pub(crate) fn array(
        &self,
        elements: &[u8],
        stride: usize,
        offset: usize,
    ) -> Result<ArrayRef, ArrowError> {
        let each = || {
            elements.chunks_exact(stride.max(1)).filter_map(|element| element.get(offset..offset + self.size))
        };
        macro_rules! numbers {
            ($array:ty, $number:ty) => {
                Arc::new(<$array>::from_iter_values(
                    each().filter_map(|bytes| Some(<$number>::from_ne_bytes(bytes.try_into().ok()?))),
                ))
            };
        }
        Ok(match &self.data_type {
            DataType::Boolean => {
                Arc::new(BooleanArray::from(each().map(|byte| byte.first() != Some(&0)).collect::<Vec<_>>()))
            }
            DataType::UInt8 => numbers!(UInt8Array, u8),
            DataType::UInt16 => numbers!(UInt16Array, u16),
            DataType::UInt32 => numbers!(UInt32Array, u32),
            DataType::UInt64 => numbers!(UInt64Array, u64),
            DataType::Int8 => numbers!(Int8Array, i8),
            DataType::Int16 => numbers!(Int16Array, i16),
            DataType::Int32 => numbers!(Int32Array, i32),
            DataType::Int64 => numbers!(Int64Array, i64),
            DataType::Float32 => numbers!(Float32Array, f32),
            DataType::Float64 => numbers!(Float64Array, f64),
            DataType::FixedSizeList(field, len) if self.size > 0 => {
                let values: Vec<u8> = each().flatten().copied().collect();
                let (_, element) = self.parts.first().ok_or_else(no_parts)?;
                let values = element.array(&values, element.size, 0)?;
                Arc::new(FixedSizeListArray::try_new(Arc::clone(field), *len, values, None)?)
            }
            DataType::Struct(fields) if !fields.is_empty() => {
                let parts = self.parts.iter().map(|(at, part)| part.array(elements, stride, offset + at));
                Arc::new(StructArray::try_new(fields.clone(), parts.collect::<Result<_, _>>()?, None)?)
            }
            _ => {
                let size = i32::try_from(self.size).unwrap_or(i32::MAX);
                let mut bytes = FixedSizeBinaryBuilder::new(size);
                each().try_for_each(|value| bytes.append_value(value))?;
                Arc::new(bytes.finish())
            }
        })
    }
}

fn no_parts() -> ArrowError {
    ArrowError::InvalidArgumentError("a list has no type of elements".to_owned())
}
