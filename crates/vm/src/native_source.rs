//! What native code is generated from.

use paceline_jit::{CodeSource, Lack};

/// What native code was generated from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeSource {
    /// Instructions or form.
    pub source: CodeSource,
    /// The operation because of which it was not generated from the form, if that was asked for.
    pub lack: Option<Lack>,
}
