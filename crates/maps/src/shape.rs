//! What Rust types of keys and values say about themselves, to be compared with the types of C in an object.

use std::fmt;

use zerocopy::byteorder::{I16, I32, I64, U16, U32, U64};

/// A type of keys or values that knows its fields. [`btf_type!`](crate::btf_type) implements it for structures.
pub trait BtfType {
    /// The type's parts.
    const SHAPE: Shape;
}

/// The parts of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// Bytes of which nothing else is known.
    Bytes(usize),
    /// An integer.
    Int {
        /// Its bytes.
        size: usize,
        /// Whether it can be negative.
        signed: bool,
    },
    /// An array.
    Array {
        /// Its elements.
        element: &'static Shape,
        /// Their number.
        count: usize,
    },
    /// A structure.
    Struct(&'static [ShapeField]),
}

/// A field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeField {
    /// Its name, which that of the member of C must be.
    pub name: &'static str,
    /// Its offset in bytes.
    pub offset: usize,
    /// Its type.
    pub shape: Shape,
}

impl Shape {
    /// Bytes of the type; of a structure those up to the end of its last field.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Bytes(size) | Self::Int { size, .. } => *size,
            Self::Array { element, count } => element.size() * count,
            Self::Struct(fields) => {
                fields.iter().map(|field| field.offset + field.shape.size()).max().unwrap_or(0)
            }
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(size) => write!(f, "{size} bytes"),
            Self::Int { size, signed } => write!(f, "{}{}", if *signed { "i" } else { "u" }, size * 8),
            Self::Array { element, count } => write!(f, "[{element}; {count}]"),
            Self::Struct(fields) => {
                let names: Vec<_> = fields.iter().map(|field| field.name).collect();
                write!(f, "struct {{ {} }}", names.join(", "))
            }
        }
    }
}

macro_rules! integers {
    ($signed:literal: $($ty:ty),*) => {
        $(impl BtfType for $ty {
            const SHAPE: Shape = Shape::Int { size: size_of::<$ty>(), signed: $signed };
        })*
    };
}

integers!(false: u8, u16, u32, u64, u128, usize);
integers!(true: i8, i16, i32, i64, i128, isize);

macro_rules! byte_orders {
    ($($ty:ident as $int:ty),*) => {
        $(impl<O> BtfType for $ty<O> {
            const SHAPE: Shape = <$int>::SHAPE;
        })*
    };
}

byte_orders!(U16 as u16, U32 as u32, U64 as u64, I16 as i16, I32 as i32, I64 as i64);

/// The key of a queue, stack or Bloom filter.
impl BtfType for () {
    const SHAPE: Shape = Shape::Bytes(0);
}

impl<T: BtfType, const N: usize> BtfType for [T; N] {
    const SHAPE: Shape = Shape::Array { element: &T::SHAPE, count: N };
}
