//! Kfuncs: functions of the kernel that programs call by name.

pub use paceline_spec::kfunc::{ABSENT, IteratorStep, Kfunc, KfuncArg, KfuncReturn, needs};
