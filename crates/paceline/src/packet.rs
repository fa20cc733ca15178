//! Packets as layers: from text, and to text.

pub use paceline_capture::packet::{
    Difference, Field, FieldRef, Kind, Layer, Layers, Problem, Protocol, TextError, begins_with, build,
    differences, hex, to_line, to_text,
};
