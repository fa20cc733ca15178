//! Rules for the begin and the end of a run, by program type.

use paceline_spec::context::{AreaUse, Layout};
use paceline_spec::{Meaning, ProgramKind, Rules};

/// State of a program type beyond the frame with its verdict. Most types have none.
#[derive(Clone, Copy)]
pub struct RunRules {
    /// The context, with fields in the packet's own area.
    pub layout: &'static Layout,
    /// What its programs may use of the packet's own area.
    pub area: AreaUse,
    /// Return values, if these are not numbers of verdicts.
    pub meaning: Meaning,
}

impl std::fmt::Debug for RunRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunRules").finish_non_exhaustive()
    }
}

impl RunRules {
    /// The rules of a program type; `None` if frame and verdict are all.
    #[must_use]
    pub fn of(kind: ProgramKind) -> Option<Self> {
        let Rules { context, meaning, .. } = *kind.rules();
        let has_rules = !context.area.is_empty() || meaning.translated().is_some();
        has_rules.then_some(Self { layout: context, area: AreaUse::all(context), meaning })
    }
}
