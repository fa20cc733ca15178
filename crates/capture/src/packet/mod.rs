//! Packets as layers.
//!
//! One table of protocols ([`Protocol::ALL`]) serves both directions: [`build`] makes the bytes of a packet from a text, and [`Layers`] finds
//! the headers and fields in bytes. [`to_text`] prints a text that builds the same bytes.
//!
//! ```
//! use paceline_capture::packet::{Layers, build, to_text};
//!
//! # fn main() -> Result<(), paceline_capture::packet::TextError> {
//! let text = r#"eth / ipv4 src=10.0.0.1 / tcp dport=23 flags=SA / "hello""#;
//! let packet = build(text)?;
//! let layers = Layers::new(&packet);
//! assert_eq!(layers.field("ipv4.len").map(|field| field.to_string()), Some("45".to_owned()));
//! assert_eq!(layers.name_at(36, 2), "tcp.dport");
//! assert_eq!(to_text(&packet), text);
//! # Ok(())
//! # }
//! ```
//!
//! # Text
//! Layers are separated by `/`. A layer is the name of a protocol and the fields that are not left to their defaults, as `name=value`.
//! Lengths, checksums and the fields that name the next protocol are computed where they are not given. Bytes are `"text"`, with the escapes
//! of Rust's strings, or `0x` and hexadecimal digits; either may be repeated: `0x00*18`. `padding BYTES` at the end is what no length
//! counts.

mod bits;
mod build;
mod checksum;
mod difference;
mod error;
mod layers;
mod line;
mod parse;
mod places;
mod protocol;
mod registry;
mod table;
mod text;
mod value;

pub use build::{begins_with, build};
pub use difference::{Difference, differences};
pub use error::{Problem, TextError};
pub use layers::{FieldRef, Layer, Layers};
pub use line::to_line;
pub use places::{Condition, Offset, Place, Said, places};
pub use protocol::{Field, Kind, Protocol};
pub use text::{hex, to_text};
