//! A network while its text is being parsed.

use super::error::Problem;
use crate::builder::NetworkBuilder;

/// A network while its text is being parsed.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) builder: NetworkBuilder,
    /// Families whose rules were already parsed.
    pub(crate) has_rules: [bool; 2],
}

impl Draft {
    pub(crate) fn index_of(&self, name: &str) -> Result<u32, Problem> {
        let found = self.builder.network().interface_named(name);
        found.map(|interface| interface.index).ok_or_else(|| Problem::NoInterface(name.to_owned()))
    }
}
