//! Columns and values of tables.

/// Type of a column. No value is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `uint32`
    U32,
    /// `uint64`
    U64,
    /// Nanoseconds since 1970, `timestamp[ns, tz=UTC]`.
    Time,
    /// One of few strings.
    Word,
    /// `binary`
    Bytes,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Of [`Kind::U32`], [`Kind::U64`] and [`Kind::Time`].
    Number(u64),
    /// Of [`Kind::Word`].
    Word(&'a str),
    /// Of [`Kind::Bytes`].
    Bytes(&'a [u8]),
}
