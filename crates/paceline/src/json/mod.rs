//! Values of C types as JSON, in bpftool's form: structures as objects, enumerators by name. What has no type is bytes. Addresses and
//! numbers in network byte order are numbers or bytes there, and texts in what [`to_written_json`] makes; all of it is read.
//!
//! A [`JsonMap`] reads and writes the elements of a map so; the functions here do it for single keys and values.

mod map;
mod value;

pub use map::{ElementError, JsonMap, variables};
pub use value::{
    JsonError, decode, decode_written, encode, encode_key, encode_typed, from_json, hex, project, to_json,
    to_written_json,
};
