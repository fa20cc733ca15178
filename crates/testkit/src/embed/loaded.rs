//! A loaded object.

use std::sync::Arc;

use paceline::{Collection, Map, VerifiedProgram};

use super::finding::refused;

/// A collection, its source, and its accepted programs.
pub(super) struct Loaded {
    pub(super) source: &'static str,
    pub(super) collection: Collection,
    pub(super) programs: Vec<(String, VerifiedProgram)>,
}

impl Loaded {
    pub(super) fn map(&self, name: &str) -> Result<&Arc<Map>, String> {
        self.collection.map(name).ok_or_else(|| refused(format!("no map {name}")))
    }

    pub(super) fn program(&self, name: &str) -> Result<&VerifiedProgram, String> {
        let found = self.programs.iter().find(|(of, _)| of == name);
        found.map(|(_, program)| program).ok_or_else(|| refused(format!("no program {name}")))
    }
}
