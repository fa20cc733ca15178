//! What calls of a function need to know.

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Param {
    /// `struct xdp_md *`
    Ctx,
    /// A number.
    Scalar(&'static str),
    /// `struct local *`
    Local,
    /// `struct val *`
    Value,
    /// `struct pair`, by value.
    Pair,
}

/// A callable function.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) params: Vec<Param>,
    /// Whether it may move the packet, or delete elements of maps.
    pub(super) changes: bool,
}
