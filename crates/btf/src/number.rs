//! Numbers of any sign.

use super::value::Value;
use crate::types::ByteOrder;

/// An integer with its sign.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    /// Less than zero.
    Negative(i128),
    /// Zero or greater.
    Positive(u128),
}

impl Number {
    pub(crate) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Bool(b) => Self::Positive(u128::from(*b)),
            Value::Signed(n) | Value::Enum { value: n, .. } => Self::from_signed(*n),
            Value::Unsigned(n) => Self::Positive(*n),
            Value::Pointer(n) => Self::Positive(u128::from(*n)),
            Value::Text(text) => Self::parse(text)?,
            Value::Written { plain, .. } => Self::of(plain)?,
            Value::Float(_) | Value::Bytes(_) | Value::Array(_) | Value::Struct(_) => return None,
        })
    }

    fn from_signed(n: i128) -> Self {
        u128::try_from(n).map_or(Self::Negative(n), Self::Positive)
    }

    fn parse(text: &str) -> Option<Self> {
        let magnitude = |digits: &str| match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hex) => u128::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        };
        match text.strip_prefix('-') {
            Some(digits) => 0i128.checked_sub_unsigned(magnitude(digits)?).map(Self::from_signed),
            None => magnitude(text).map(Self::Positive),
        }
    }

    pub(crate) const fn bits(self) -> u128 {
        match self {
            Self::Negative(n) => n.cast_unsigned(),
            Self::Positive(n) => n,
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Negative(n) => n.fmt(f),
            Self::Positive(n) => n.fmt(f),
        }
    }
}

/// Writes the low bytes of a number in native byte order.
pub(crate) fn put_number(bytes: &mut [u8], number: u128) {
    let count = bytes.len().min(16);
    let wide = number.to_le_bytes();
    for (byte, new) in bytes.iter_mut().zip(wide.iter().take(count)) {
        *byte = *new;
    }
    if ByteOrder::NATIVE == ByteOrder::Big {
        bytes.reverse();
    }
}
