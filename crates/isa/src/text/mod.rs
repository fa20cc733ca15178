//! Instructions as text.

mod print;
mod template;
