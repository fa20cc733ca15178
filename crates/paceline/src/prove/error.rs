//! Errors in properties.

use paceline_capture::packet::Protocol;
use paceline_suggest::meant;

/// A text is no property.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct PropertyError {
    /// Characters up to the place of the error, from 1.
    pub column: usize,
    /// Cause.
    pub problem: Problem,
}

/// The cause of an error in a property.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Something else must be here.
    #[error("{expected} must be here, not {found}")]
    Expected {
        /// What must be here.
        expected: &'static str,
        /// What is here, in quotes, or the end.
        found: String,
    },
    /// A character that no property has.
    #[error("`{0}` has no meaning in a property")]
    Character(char),
    /// A word of no meaning.
    #[error(
        "`{0}` is no value: there are fields such as ipv4.ttl, in[0:6], out[14:], in.len, out.len, returns, numbers and addresses"
    )]
    Word(String),
    /// A word by itself that is no header.
    #[error("`{0}` is no header, such as arp or out.vlan, and compared with nothing")]
    Header(String),
    /// No protocol of that name.
    #[error("no protocol is named `{}`{}", .0, perhaps(.0, Protocol::ALL.iter().map(|protocol| protocol.name)))]
    Protocol(String),
    /// No field of that name.
    #[error("{protocol} has no field `{name}`{}", perhaps(.name, fields(.protocol)))]
    Field {
        /// Protocol.
        protocol: &'static str,
        /// As written.
        name: String,
    },
    /// Headers of this protocol are not looked for.
    #[error(
        "headers of {0} are not looked for: they are in tunnels, or behind other headers that have any length"
    )]
    Tunnel(&'static str),
    /// A field of no certain length.
    #[error("{protocol}.{name} has no certain length")]
    Variable {
        /// Protocol.
        protocol: &'static str,
        /// Field.
        name: &'static str,
    },
    /// A value that a field cannot have.
    #[error("{protocol}.{name} is {form}, and never `{value}`")]
    Value {
        /// Protocol.
        protocol: &'static str,
        /// Field.
        name: &'static str,
        /// Form of its values.
        form: String,
        /// As written.
        value: String,
    },
    /// No verdict of that name.
    #[error("`{0}` is no verdict: there are aborted, drop, pass, tx and redirect")]
    Verdict(String),
    /// A verdict is compared in another way.
    #[error("verdicts are equal (==) or not (!=)")]
    VerdictOrder,
    /// No range of bytes.
    #[error("bytes are [FIRST], [FIRST:END] or [FIRST:], with offsets up to {most}, not `[{text}]`")]
    Range {
        /// As written.
        text: String,
        /// The greatest offset.
        most: usize,
    },
    /// More than 8 bytes, or all bytes to the end, in a sum or an order.
    #[error("more than 8 bytes, and bytes to the end of a packet, are equal (==) or not (!=)")]
    Wide,
    /// Bytes to the end are compared with something else.
    #[error("bytes to the end of a packet are compared with such bytes alone")]
    Rest,
    /// Numbers of different sizes.
    #[error("{left} bytes are never equal to {right} bytes")]
    Sizes {
        /// Bytes on the left.
        left: usize,
        /// Bytes on the right.
        right: usize,
    },
    /// A number that takes more bytes than what it is compared with has.
    #[error("the number takes more than {0} byte{s}", s = if *.0 == 1 { "" } else { "s" })]
    Number(usize),
    /// The program has no map of that name.
    #[error("no map is named `{0}`")]
    Map(String),
    /// A map whose reader gets what the program sends.
    #[error(
        "map `{name}` is a {kind}, which has no elements: what the program sends to its reader is no change"
    )]
    Events {
        /// The map.
        name: String,
        /// Its kind.
        kind: &'static str,
    },
    /// Parentheses and negations within each other.
    #[error("more than {0} parentheses and negations within each other")]
    Deep(usize),
}

fn fields(protocol: &str) -> impl Iterator<Item = &'static str> + Clone {
    Protocol::named(protocol).into_iter().flat_map(|protocol| protocol.fields).map(|field| field.name)
}

fn perhaps<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    meant(name, names).map_or_else(String::new, |name| format!(", perhaps `{name}`"))
}
