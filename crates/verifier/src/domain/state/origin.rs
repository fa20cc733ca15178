//! Origins of values at the last checkpoint; what becomes of them is in [`precision`](crate::domain::precision) and
//! [`reads`](crate::domain::reads).

/// The origin of a number; [`Mark::NONE`] for constants and for values read from outside of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark(pub(crate) u32);

impl Mark {
    /// No origin at any checkpoint.
    pub const NONE: Self = Self(0);
}

/// Origin of the bytes of a stack slot; [`Origin::NONE`] if all were written since the last checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin(pub(crate) u32);

impl Origin {
    /// No checkpoint.
    pub const NONE: Self = Self(0);
}
