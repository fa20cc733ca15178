//! Classic programs of case files: each case becomes one case per program type that it is converted to.

use paceline_classic::text::{TextError, assemble};
use paceline_classic::{CheckError, ConvertOptions, Filter, Purpose, SockFilter};
use paceline_spec::ProgramSpec;

use super::model::{Case, CaseKind, Classic};
use super::source::{Mark, Source};

/// Assembles a program; errors have line numbers of the file.
pub(super) fn read(source: &Source<'_>) -> Result<Vec<SockFilter>, TextError> {
    let unmarked = |&(line, content): &(usize, _)| (line, split_mark(content).0);
    let lines = source.lines.iter().map(unmarked).collect();
    assemble(&Source { name: source.name, lines }.text())
}

/// A line's code, and the text of its mark.
fn split_mark(content: &str) -> (&str, Option<&str>) {
    match content.split_once("#!") {
        Some((code, text)) => (code, Some(text.trim())),
        None => (content, None),
    }
}

/// The marks, each with the index of the instruction before it.
pub(super) fn marks(source: &Source<'_>) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut next = 0;
    for &(line, content) in &source.lines {
        let (code, mark) = split_mark(content);
        let code = code.split_once(';').map_or(code, |(code, _)| code);
        let insn = code.rsplit_once(':').map_or(code, |(_, insn)| insn);
        let has_insn = !insn.trim().is_empty();
        next += usize::from(has_insn);
        if let Some(text) = mark {
            marks.push(Mark {
                text: text.to_owned(),
                line,
                slot: if has_insn { next.checked_sub(1) } else { None },
            });
        }
    }
    marks
}

/// The case as an XDP program and as a socket filter; a single case if the program is refused.
pub(super) fn expand(case: &Case, insns: Vec<SockFilter>, license: &str) -> Vec<Case> {
    let options = ConvertOptions::default();
    let convert = |kind| {
        let filter = Filter::new(insns.clone(), Purpose::Socket).map_err(|error| {
            let index = match error {
                CheckError::Length { .. } => None,
                CheckError::Insn { index, .. } => Some(index),
            };
            (index, error.to_string())
        })?;
        let converted = match kind {
            CaseKind::Xdp => filter.to_xdp("main", &options),
            CaseKind::SocketFilter | CaseKind::SchedCls | CaseKind::Raw => {
                filter.to_socket_filter("main", &options)
            }
        };
        converted.map_err(|error| (None, error.to_string()))
    };
    let with = |suffix: &str, kind, converted: Result<ProgramSpec, (Option<usize>, String)>| {
        let (programs, refusal) = match converted {
            Ok(spec) => (vec![ProgramSpec { license: license.to_owned(), ..spec }], None),
            Err(refusal) => (Vec::new(), Some(refusal)),
        };
        let classic = Some(Classic { insns: insns.clone(), refusal });
        Case { name: format!("{}{suffix}", case.name), kind, programs, classic, ..case.clone() }
    };
    match convert(CaseKind::SocketFilter) {
        Err(refusal) => vec![with("", CaseKind::SocketFilter, Err(refusal))],
        converted => vec![
            with("_as_socket_filter", CaseKind::SocketFilter, converted),
            with("_as_xdp", CaseKind::Xdp, convert(CaseKind::Xdp)),
        ],
    }
}
