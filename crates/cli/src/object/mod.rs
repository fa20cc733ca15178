//! Objects, from files or built in, with their load options.

mod args;
mod error;
mod hints;
mod kernel;
mod load;
mod named;
mod opener;
mod program;
mod set;

pub(crate) use args::ObjectArgs;
pub(crate) use error::ObjectError;
pub(crate) use load::{load, load_options};
pub(crate) use named::{NamedObject, is_object, taken};
pub(crate) use opener::Opener;
pub(crate) use program::{
    NamedProgramError, NotXdp, check_action, note_unfilled, noting_unfilled, program_of,
};
pub(crate) use set::{check_set, sections_set, variables_set};
