//! Chains: loaded from objects or chain files, shown as text and JSON.

mod args;
mod calls;
mod error;
pub(crate) mod file;
mod load;
mod loaded;
mod member;
mod objects;
mod place;
mod show;
mod status;
mod trace;

pub(crate) use args::SourceArgs;
pub(crate) use error::ChainError;
pub(crate) use load::{load, reload};
pub(crate) use loaded::{LoadHow, Loaded, Part};
pub(crate) use show::{
    LayoutAsJson, target, to_json, write_reasons, write_text as write_layout, write_warnings,
};
pub(crate) use status::{StatusAsJson, write_text as write_status};
pub(crate) use trace::{Tracer, TracesAsJson, write_text as write_traces};
