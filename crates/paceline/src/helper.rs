//! Helpers: functions of the kernel that programs call by number.
//!
//! A [`Helper`] has the name, the [`Prototype`] and the licence that `bpf.h` gives it. [`has_helper`] says whether Paceline has an
//! implementation.

pub use paceline_spec::helper::{Arg, Callback, Helper, Prototype, Return};
pub use paceline_vm::has_helper;
