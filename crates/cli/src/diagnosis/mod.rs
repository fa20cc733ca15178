//! Refusals of the verifier, explained: as text beside the source, and as JSON.

mod advice;
mod data;
mod history;
mod json;
mod render;

pub(crate) use data::Diagnosis;
pub(crate) use json::{refused, refused_to_json};
pub(crate) use render::render;
