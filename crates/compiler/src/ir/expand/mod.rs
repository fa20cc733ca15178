//! Calls of helpers as operations of the form, so that passes see what they do. Code generators expand a module before its passes.

mod key;
mod look_up;
mod rounds;

pub use self::look_up::{ArrayLink, Table, known_map, look_ups};
pub use self::rounds::loops;
