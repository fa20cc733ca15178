//! Errors in texts of packets.

/// A text does not describe a packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct TextError {
    /// Characters up to the place of the error, from 1.
    pub column: usize,
    /// Cause.
    pub problem: Problem,
}

/// The cause of an error in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Nothing where a layer should be.
    #[error("a layer is missing: a protocol, \"text\" or bytes such as 0x0102")]
    NoLayer,
    /// No protocol of that name.
    #[error("no protocol is named `{name}`{}", perhaps(.hint))]
    Protocol {
        /// As written.
        name: String,
        /// A similar name.
        hint: Option<&'static str>,
    },
    /// No field of that name.
    #[error("{protocol} has no field `{name}`{}", perhaps(.hint))]
    Field {
        /// Protocol.
        protocol: &'static str,
        /// As written.
        name: String,
        /// A similar name.
        hint: Option<&'static str>,
    },
    /// A field twice.
    #[error("{protocol}.{name} is given twice")]
    Twice {
        /// Protocol.
        protocol: &'static str,
        /// Field.
        name: &'static str,
    },
    /// A word that is no `name=value`.
    #[error("`{0}` must be a field as name=value, or a `/` is missing before it")]
    NoValue(String),
    /// The value has another form.
    #[error("{protocol}.{name} must be {form}, not `{value}`")]
    Form {
        /// Protocol.
        protocol: &'static str,
        /// Field.
        name: &'static str,
        /// Form of its values.
        form: String,
        /// As written.
        value: String,
    },
    /// The value takes more bits than the field has.
    #[error("{protocol}.{name} has {bits} bits, too few for `{value}`")]
    Size {
        /// Protocol.
        protocol: &'static str,
        /// Field.
        name: &'static str,
        /// Bits of the field.
        bits: usize,
        /// As written.
        value: String,
    },
    /// The bytes of the variable part of a header are too many for its length field.
    #[error("{protocol}.{name} has more bytes than a header can have")]
    Options {
        /// Protocol.
        protocol: &'static str,
        /// Field.
        name: &'static str,
    },
    /// The packet is longer than a length field can say.
    #[error("{protocol}.len has 16 bits, too few for {bytes} bytes: give another value, or send less")]
    TooLong {
        /// Protocol.
        protocol: &'static str,
        /// Bytes it would have to say.
        bytes: usize,
    },
    /// A header whose predecessor has no number for it, and is not given one.
    #[error("{before} cannot say that {after} follows: {}", way_out(.between, .before, .field))]
    NotNext {
        /// The protocol before.
        before: &'static str,
        /// The protocol after it.
        after: &'static str,
        /// The field that names what follows.
        field: &'static str,
        /// Protocols that may lie between.
        between: Vec<&'static str>,
    },
    /// A text without its closing quote.
    #[error("the text has no closing quote")]
    Unclosed,
    /// An unknown escape in a text.
    #[error("`\\{0}` is no escape: there are \\n, \\r, \\t, \\0, \\\\, \\\", \\' and \\xNN")]
    Escape(char),
    /// Bytes are not pairs of hexadecimal digits.
    #[error("bytes are 0x and pairs of hexadecimal digits")]
    Hex,
    /// The number of repetitions.
    #[error("`*` takes a number up to 65535")]
    Repeat,
    /// More than a packet can have.
    #[error("a packet has at most {0} bytes")]
    Packet(usize),
    /// A protocol after bytes.
    #[error("a header cannot follow bytes without a protocol")]
    AfterBytes,
    /// Something after the padding.
    #[error("padding is the last of a packet")]
    AfterPadding,
    /// Something other than `/` after a layer of bytes.
    #[error("`/` must follow")]
    Separator,
}

fn way_out(between: &[&str], before: &str, field: &str) -> String {
    match between {
        [] => format!("give {before}.{field} if it shall"),
        between => format!("{} is missing between, or give {before}.{field}", between.join(" or ")),
    }
}

fn perhaps(name: &Option<&'static str>) -> String {
    name.map_or_else(String::new, |name| format!(", perhaps `{name}`"))
}
