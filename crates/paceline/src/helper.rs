//! Helpers: functions of the kernel that programs call by number.
//!
//! A [`Helper`] has the name, the [`Prototype`] and the licence that `bpf.h` gives it, and says whether Paceline supports it.

pub use paceline_spec::helper::{Arg, Callback, Helper, HelperId, Prototype, Return};
