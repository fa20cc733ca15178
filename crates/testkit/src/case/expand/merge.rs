//! Merges the directives of a prelude and of a case, in the order of stages.

use super::line::{Line, is_blank_or_comment};
use crate::case::directive::{Stage, is_directive};

/// A directive with its block.
struct Group {
    /// Identity for replacement: the name of the directive, with that of the map or program.
    key: String,
    stage: Stage,
    lines: Vec<Line>,
}

/// The directives of both, the prelude's first in each stage. A directive of the case replaces the prelude's with the same
/// identity. Directives of runs are not replaced, because they belong to the run before them.
pub(super) fn merge(prelude: Vec<Line>, own: Vec<Line>) -> Vec<Line> {
    if prelude.is_empty() {
        return own;
    }
    let mut prelude = groups(prelude);
    let mut rest = Vec::new();
    for group in groups(own) {
        let like = prelude.iter().position(|other| other.key == group.key);
        match like.and_then(|at| Some((at, prelude.get_mut(at)?))) {
            Some((_, other)) if group.stage < Stage::Runs => *other = group,
            Some((at, _)) => {
                prelude.remove(at);
                rest.push(group);
            }
            None => rest.push(group),
        }
    }
    let mut prelude = prelude.into_iter().peekable();
    let mut merged = Vec::new();
    for group in rest {
        while let Some(first) = prelude.next_if(|first| first.stage <= group.stage) {
            merged.extend(first.lines);
        }
        merged.extend(group.lines);
    }
    merged.extend(prelude.flat_map(|group| group.lines));
    merged
}

fn groups(lines: Vec<Line>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for line in lines {
        if is_blank_or_comment(&line.text) {
            continue;
        }
        match groups.last_mut() {
            Some(group) if !is_directive(&line.text) => group.lines.push(line),
            _ => groups.push(Group::new(line)),
        }
    }
    groups
}

impl Group {
    fn new(line: Line) -> Self {
        let (name, value) = line.text.split_once(':').unwrap_or((&line.text, ""));
        let of = match name {
            "map" | "program" | "after" => value.split_whitespace().next().unwrap_or(""),
            _ => "",
        };
        Self { key: format!("{name} {of}"), stage: Stage::of(name), lines: vec![line] }
    }
}
