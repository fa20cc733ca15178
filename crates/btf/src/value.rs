//! Values of C types.

use std::fmt;

/// Maximum nesting depth of structures and arrays in a value.
pub(crate) const MOST_DEPTH: usize = 32;

/// A value of a C type, independent of its representation in bytes.
///
/// [`Btf::decode`](crate::Btf::decode) decodes bytes, [`Btf::encode`](crate::Btf::encode) encodes a value. `Display` prints it as a
/// C initializer, `{:#}` on several lines.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A signed number.
    Signed(i128),
    /// An unsigned number.
    Unsigned(u128),
    /// A floating-point number.
    Float(f64),
    /// A value of an enumeration, with the enumerator's name if one has it.
    Enum {
        /// The enumerator's name.
        name: Option<String>,
        /// The number.
        value: i128,
    },
    /// An address.
    Pointer(u64),
    /// An array of `char` that is printable text up to its first zero byte.
    Text(String),
    /// Bytes without a type.
    Bytes(Vec<u8>),
    /// Elements of an array.
    Array(Vec<Value>),
    /// Members of a structure or union, or variables of a section, in order of declaration. Members of nested
    /// anonymous structures and unions are members of the outer one, as in C.
    Struct(Vec<(String, Value)>),
    /// A value that people write in a form of its own: an address, a prefix, a number in network byte order. Texts of this form are
    /// encoded to the same bytes.
    Written {
        /// `10.9.1.1`, `10.9.1.0/24`, `2001:db8::1`, `02:00:00:00:00:01`, `htons(443)`
        text: String,
        /// The value without it.
        plain: Box<Value>,
    },
}

impl Value {
    /// Kind of the value, for messages.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a truth value",
            Self::Signed(_) | Self::Unsigned(_) | Self::Pointer(_) => "a number",
            Self::Float(_) => "a floating-point number",
            Self::Enum { .. } => "an enumerator",
            Self::Text(_) => "a text",
            Self::Bytes(_) => "bytes",
            Self::Array(_) => "an array",
            Self::Struct(_) => "a structure",
            Self::Written { plain, .. } => plain.kind(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_value(f, self, 0)
    }
}

fn write_value(f: &mut fmt::Formatter<'_>, value: &Value, depth: usize) -> fmt::Result {
    match value {
        Value::Bool(b) => write!(f, "{b}"),
        Value::Signed(n) => write!(f, "{n}"),
        Value::Unsigned(n) => write!(f, "{n}"),
        Value::Float(n) => write!(f, "{n}"),
        Value::Enum { name: Some(name), .. } => f.write_str(name),
        Value::Enum { name: None, value } => write!(f, "{value}"),
        Value::Pointer(address) => write!(f, "{address:#x}"),
        Value::Text(text) => write!(f, "\"{}\"", text.escape_default()),
        Value::Bytes(bytes) => write_list(f, bytes, depth, |f, b| write!(f, "{b:#04x}")),
        Value::Array(elements) => write_list(f, elements, depth, |f, v| write_value(f, v, depth + 1)),
        Value::Struct(members) => write_list(f, members, depth, |f, (name, v)| {
            write!(f, ".{name} = ")?;
            write_value(f, v, depth + 1)
        }),
        Value::Written { text, .. } => f.write_str(text),
    }
}

fn write_list<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    depth: usize,
    mut write_item: impl FnMut(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    if items.is_empty() {
        return f.write_str("{}");
    }
    let (open, between, close) = if f.alternate() {
        let indent = "    ".repeat(depth);
        (format!("{{\n{indent}    "), format!(",\n{indent}    "), format!(",\n{indent}}}"))
    } else {
        ("{ ".to_owned(), ", ".to_owned(), " }".to_owned())
    };
    f.write_str(&open)?;
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(&between)?;
        }
        write_item(f, item)?;
    }
    f.write_str(&close)
}
