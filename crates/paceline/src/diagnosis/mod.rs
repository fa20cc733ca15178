//! Refusals of the verifier, explained: as text beside the source, in the form of rustc's errors, and as JSON. Explanations of packets
//! as JSON.
//!
//! ```
//! use paceline::Object;
//! use paceline::diagnosis::{Diagnosis, render};
//!
//! # fn main() -> Result<(), paceline::OpenError> {
//! let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/fixtures/wrong_pointer.o");
//! let object = Object::open(path)?;
//! let refused = object.verify(&object.programs()[0]).unwrap_err();
//! let text = render(&Diagnosis::new("wrong_pointer.o", &object, &refused), false);
//! assert!(text.contains("wrong_pointer.bpf.c:17:10"));
//! # Ok(())
//! # }
//! ```

mod advice;
mod data;
mod explained;
mod history;
mod json;
mod render;
mod shown;
mod symbols;

pub use data::Diagnosis;
pub use explained::explained;
pub use json::{refused, refused_to_json};
pub use render::render;
pub use shown::shown;
pub use symbols::{Symbols, helper};
