//! Test files with other expectations.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::case::{Case, TestFile};
use super::error::TestError;
use super::run::{Outcome, StepFailure, TestResult};

/// Changes of a text, by the first byte that is replaced: the byte after the last one, and the new text.
#[derive(Default)]
struct Changes {
    at: BTreeMap<usize, (usize, String)>,
    /// Places for which cases of one test disagree.
    disputed: Vec<usize>,
}

impl Changes {
    fn replace(&mut self, start: usize, end: usize, text: String) {
        match self.at.get(&start) {
            Some((_, other)) if *other != text => self.disputed.push(start),
            _ => drop(self.at.insert(start, (end, text))),
        }
    }
}

/// Changes of a file.
pub(super) struct Updated {
    /// Expectations that were written.
    pub(super) changes: usize,
    /// Expectations of several cases that would have to be different.
    pub(super) disputed: usize,
}

/// Writes a file with what came out in the place of what was expected.
pub(super) fn update(
    file: &TestFile,
    text: &str,
    results: &[(&Case, &TestResult)],
) -> Result<Updated, TestError> {
    let mut changes = Changes::default();
    for (case, result) in results {
        if let Outcome::Failed(failures) = &result.outcome {
            failures.iter().for_each(|failure| note(&mut changes, text, case, failure));
        }
    }
    let disputed = changes.disputed.len();
    changes.disputed.iter().for_each(|place| drop(changes.at.remove(place)));
    if !changes.at.is_empty() {
        let text = applied(text, &changes.at);
        write(&file.path, &text).map_err(|source| TestError::Write { name: file.name.clone(), source })?;
    }
    Ok(Updated { changes: changes.at.len(), disputed })
}

fn note(changes: &mut Changes, text: &str, case: &Case, failure: &StepFailure) {
    let Some(step) = case.steps.get(failure.step) else { return };
    for (number, mismatch) in &failure.mismatches {
        if let Some((expected, instead)) = step.expected.get(*number).zip(mismatch.instead.clone()) {
            changes.replace(expected.span.start, expected.span.end, instead);
        }
    }
    if !failure.missing.is_empty() {
        let end = step.packet_span.end;
        let rest = text.get(end..).unwrap_or_default().trim_start_matches([' ', '\t']);
        // In a table on one line the expectations follow a comma, elsewhere they have lines of their own.
        let separator = if rest.starts_with([',', '}']) { ", " } else { "\n" };
        let added = failure.missing.iter().map(|(key, value)| format!("{separator}{key} = {value}"));
        changes.replace(end, end, added.collect());
    }
}

fn applied(text: &str, changes: &BTreeMap<usize, (usize, String)>) -> String {
    let (mut changed, mut at) = (String::new(), 0);
    for (start, (end, new)) in changes {
        changed.push_str(text.get(at..*start).unwrap_or_default());
        changed.push_str(new);
        at = *end;
    }
    changed.push_str(text.get(at..).unwrap_or_default());
    changed
}

/// Replaces a file as a whole.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let path = fs::canonicalize(path)?;
    let mut beside = path.clone().into_os_string();
    beside.push(format!(".{}", std::process::id()));
    let written = fs::write(&beside, text)
        .and_then(|()| fs::set_permissions(&beside, fs::metadata(&path)?.permissions()))
        .and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
