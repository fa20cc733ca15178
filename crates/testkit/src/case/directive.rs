//! Splits a case file into directives with their blocks.

use super::data::{fit, parse_data, parse_number};
use super::error::{ParseError, Problem};
use crate::ENGINES;

/// The order of directives in a case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Head,
    Engines,
    Types,
    Maps,
    Programs,
    Runs,
    After,
}

impl Stage {
    /// The stage of a directive. Unknown directives, and `verifier`, which is allowed anywhere, count as lines of runs.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "license" | "endian" | "type" | "network" => Self::Head,
            engine if ENGINES.contains(&engine) => Self::Engines,
            "types" => Self::Types,
            "map" => Self::Maps,
            "program" | "chain" | "also" => Self::Programs,
            "after" => Self::After,
            _ => Self::Runs,
        }
    }
}

/// A directive with its block.
#[derive(Debug)]
pub(super) struct Directive<'a> {
    pub(super) line: usize,
    pub(super) name: &'a str,
    pub(super) value: &'a str,
    pub(super) block: Vec<(usize, &'a str)>,
}

pub(super) fn directives(text: &str) -> Result<Vec<Directive<'_>>, ParseError> {
    let mut directives: Vec<Directive<'_>> = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        // Programs keep their marks; the assembler strips comments.
        let content =
            if in_classic_program(&directives) && !is_directive(raw) { raw } else { without_comment(raw) };
        if content.trim().is_empty() {
            continue;
        }
        if content.starts_with(char::is_whitespace) {
            let owner = directives.last_mut().ok_or(ParseError { line, problem: Problem::StrayBlock })?;
            owner.block.push((line, content.trim_end()));
            continue;
        }
        // Labels are allowed in the first column, as in assembly.
        if let Some(owner) = directives.last_mut().filter(|owner| owner.name == "program")
            && is_label(content)
        {
            owner.block.push((line, content.trim_end()));
            continue;
        }
        let Some((name, value)) = content.split_once(':') else {
            return Err(ParseError { line, problem: Problem::NotADirective });
        };
        directives.push(Directive { line, name: name.trim(), value: value.trim(), block: Vec::new() });
    }
    Ok(directives)
}

/// Whether the next line may be part of a classic program, in which `#` does not start a comment.
fn in_classic_program(directives: &[Directive<'_>]) -> bool {
    let case = directives.iter().rposition(|directive| directive.name == "case").unwrap_or(0);
    let is_classic = |directive: &Directive<'_>| directive.name == "type" && directive.value == "classic";
    directives.last().is_some_and(|last| last.name == "program")
        && directives.get(case..).is_some_and(|case| case.iter().any(is_classic))
}

/// Whether a line has something other than a label in the first column.
pub(super) fn is_directive(line: &str) -> bool {
    !line.starts_with(char::is_whitespace) && !is_label(line)
}

/// `out:` alone; only some directives may have an empty value.
fn is_label(content: &str) -> bool {
    content
        .trim_end()
        .strip_suffix(':')
        .is_some_and(|name| !DIRECTIVES.contains(&name) && !ENGINES.contains(&name))
}

/// Directives, without the names of engines.
const DIRECTIVES: &[&str] = &[
    "case",
    "type",
    "license",
    "endian",
    "network",
    "types",
    "map",
    "program",
    "chain",
    "also",
    "path",
    "update",
    "wait",
    "packet",
    "memory",
    "meta",
    "context",
    "r0",
    "verdict",
    "redirect",
    "output",
    "output_meta",
    "error",
    "after",
    "verifier",
];

/// The line without a comment: `#` at its start or after white space, not in a string, not the `#!` of a mark.
pub(super) fn without_comment(line: &str) -> &str {
    let mut in_string = false;
    let mut after_space = true;
    for (at, c) in line.char_indices() {
        match c {
            '"' => in_string = !in_string,
            '#' if after_space && !in_string => {
                let is_mark = line.get(at..).is_some_and(|rest| rest.starts_with("#!"));
                return if is_mark { line } else { line.get(..at).unwrap_or(line) };
            }
            _ => {}
        }
        after_space = c.is_whitespace();
    }
    line
}

impl<'a> Directive<'a> {
    pub(super) fn error(&self, problem: Problem) -> ParseError {
        ParseError { line: self.line, problem }
    }

    pub(super) fn not_a(&self, what: &'static str, found: &str) -> ParseError {
        self.error(Problem::NotA { what, found: found.to_owned() })
    }

    /// Data on the directive's line and in its block.
    pub(super) fn data(&self) -> Result<Vec<u8>, ParseError> {
        let mut text = self.value.to_owned();
        for (_, line) in &self.block {
            text.push(' ');
            text.push_str(line);
        }
        parse_data(&text).map_err(|error| self.error(error.into()))
    }

    pub(super) fn no_block(&self) -> Result<(), ParseError> {
        match self.block.first() {
            Some(&(line, _)) => Err(ParseError { line, problem: Problem::StrayBlock }),
            None => Ok(()),
        }
    }

    pub(super) fn required(&self, what: &'static str) -> Result<&'a str, ParseError> {
        if self.value.is_empty() { Err(self.error(Problem::Missing(what))) } else { Ok(self.value) }
    }

    pub(super) fn bits(&self, text: &str, bits: u32) -> Result<u64, ParseError> {
        let number = parse_number(text).ok_or_else(|| self.not_a("number", text))?;
        fit(number, bits).map_err(|error| self.error(error.into()))
    }
}

/// Names have lowercase letters, digits and underscores.
pub(super) fn check_name(directive: &Directive<'_>, name: &str) -> Result<(), ParseError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.is_empty() && name.chars().all(allowed) {
        return Ok(());
    }
    Err(directive.error(Problem::BadName(name.to_owned())))
}
