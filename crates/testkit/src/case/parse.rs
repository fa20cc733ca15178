//! The parser of case files.

use std::collections::HashSet;

use paceline_frame::Verdict;
use paceline_spec::btf::{Btf, TypeId};
use paceline_spec::{InitialValue, Linkage, MapFlags, MapKind, MapSpec, Pinning};

use super::data::{fit, parse_data, parse_number};
use super::directives::DIRECTIVES;
use super::source::Source;
use super::types::Types;
use super::{
    ByteOrder, Case, CaseChain, CaseKind, Change, Context, DataError, Expect, Note, NoteKind, ParseError,
    Problem, Run, Verifier,
};
use super::{chain, classic};
use crate::{Contents, ENGINES};

/// A directive with its block.
#[derive(Debug)]
struct Directive<'a> {
    line: usize,
    name: &'a str,
    value: &'a str,
    block: Vec<(usize, &'a str)>,
}

/// The cases of a file.
///
/// # Errors
/// The first line that is wrong.
pub fn parse_file(text: &str) -> Result<Vec<Case>, ParseError> {
    let directives = directives(text)?;
    let mut cases: Vec<Case> = Vec::new();
    let mut names = HashSet::new();
    let mut rest = directives.as_slice();
    while let [first, after @ ..] = rest {
        if first.name != "case" {
            return Err(first.error(Problem::NoCase(first.name.to_owned())));
        }
        let len = after.iter().position(|directive| directive.name == "case").unwrap_or(after.len());
        let (body, next) = after.split_at(len);
        for case in parse_case(first, body)? {
            if !names.insert(case.name.clone()) {
                return Err(first.error(Problem::Twice(format!("case: {}", case.name))));
            }
            cases.push(case);
        }
        rest = next;
    }
    Ok(cases)
}

fn directives(text: &str) -> Result<Vec<Directive<'_>>, ParseError> {
    let mut directives: Vec<Directive<'_>> = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        // Programs keep their marks; the assembler knows comments itself.
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
        // Labels may stand in the first column, as everywhere in assembly.
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

/// Whether the next line may belong to a classic program, in which `#` is no comment.
fn in_classic_program(directives: &[Directive<'_>]) -> bool {
    let case = directives.iter().rposition(|directive| directive.name == "case").unwrap_or(0);
    let is_classic = |directive: &Directive<'_>| directive.name == "type" && directive.value == "classic";
    directives.last().is_some_and(|last| last.name == "program")
        && directives.get(case..).is_some_and(|case| case.iter().any(is_classic))
}

/// Whether a line starts in the first column with something else than a label.
fn is_directive(line: &str) -> bool {
    !line.starts_with(char::is_whitespace) && !is_label(line)
}

/// `out:` alone; of the directives only some have no value.
fn is_label(content: &str) -> bool {
    content
        .trim_end()
        .strip_suffix(':')
        .is_some_and(|name| !DIRECTIVES.contains(&name) && !ENGINES.contains(&name))
}

/// The line without a comment: `#` at its start or after white space, not in a string, not the `#!` of a mark.
fn without_comment(line: &str) -> &str {
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
    fn error(&self, problem: Problem) -> ParseError {
        ParseError { line: self.line, problem }
    }

    fn not_a(&self, what: &'static str, found: &str) -> ParseError {
        self.error(Problem::NotA { what, found: found.to_owned() })
    }

    /// Data on the directive's line and in its block.
    fn data(&self) -> Result<Vec<u8>, ParseError> {
        let mut text = self.value.to_owned();
        for (_, line) in &self.block {
            text.push(' ');
            text.push_str(line);
        }
        parse_data(&text).map_err(|error| self.error(error.into()))
    }

    fn no_block(&self) -> Result<(), ParseError> {
        match self.block.first() {
            Some(&(line, _)) => Err(ParseError { line, problem: Problem::StrayBlock }),
            None => Ok(()),
        }
    }

    fn required(&self, what: &'static str) -> Result<&'a str, ParseError> {
        if self.value.is_empty() { Err(self.error(Problem::Missing(what))) } else { Ok(self.value) }
    }

    fn bits(&self, text: &str, bits: u32) -> Result<u64, ParseError> {
        let number = parse_number(text).ok_or_else(|| self.not_a("number", text))?;
        fit(number, bits).map_err(|error| self.error(error.into()))
    }
}

/// The order of directives in a case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Head,
    Engines,
    Types,
    Maps,
    Programs,
    Runs,
    After,
}

struct Builder<'a> {
    case: Case,
    stage: Stage,
    sources: Vec<Source<'a>>,
    seen: HashSet<&'a str>,
    license: &'a str,
    /// Whether the program is classic.
    is_classic: bool,
    types: Types,
    /// What the next run starts with, and the line of the first of them.
    changes: Vec<Change>,
    wait_ms: u64,
    changed_at: usize,
    verifier: Option<(usize, Verifier)>,
}

fn parse_case(first: &Directive<'_>, body: &[Directive<'_>]) -> Result<Vec<Case>, ParseError> {
    first.no_block()?;
    check_name(first, first.value)?;
    let case = Case {
        name: first.value.to_owned(),
        line: first.line,
        kind: CaseKind::Xdp,
        classic: None,
        byte_order: None,
        notes: Vec::new(),
        btf: Btf::default(),
        maps: Vec::new(),
        programs: Vec::new(),
        chain: None,
        runs: Vec::new(),
        after: Vec::new(),
        verifier: Verifier::Accepts,
    };
    let mut builder = Builder {
        case,
        stage: Stage::Head,
        sources: Vec::new(),
        seen: HashSet::new(),
        license: "GPL",
        is_classic: false,
        types: Types::default(),
        changes: Vec::new(),
        wait_ms: 0,
        changed_at: first.line,
        verifier: None,
    };
    for directive in body {
        builder.directive(directive)?;
    }
    builder.finish(first)
}

fn check_name(directive: &Directive<'_>, name: &str) -> Result<(), ParseError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.is_empty() && name.chars().all(allowed) {
        return Ok(());
    }
    Err(directive.error(Problem::BadName(name.to_owned())))
}

impl<'a> Builder<'a> {
    fn directive(&mut self, directive: &Directive<'a>) -> Result<(), ParseError> {
        match directive.name {
            "license" => {
                self.reach(Stage::Head, directive)?;
                self.once(directive)?;
                self.license = directive.required("a license")?;
                Ok(())
            }
            "endian" => {
                self.reach(Stage::Head, directive)?;
                self.once(directive)?;
                self.case.byte_order = Some(match directive.value {
                    "little" => ByteOrder::Little,
                    "big" => ByteOrder::Big,
                    other => return Err(directive.not_a("byte order: little or big", other)),
                });
                directive.no_block()
            }
            "type" => {
                self.reach(Stage::Head, directive)?;
                self.once(directive)?;
                self.case.kind = match directive.value {
                    "xdp" => CaseKind::Xdp,
                    "socket_filter" => CaseKind::SocketFilter,
                    "raw" => CaseKind::Raw,
                    "classic" => {
                        self.is_classic = true;
                        CaseKind::SocketFilter
                    }
                    other => {
                        return Err(directive.not_a("type: xdp, socket_filter, raw or classic", other));
                    }
                };
                directive.no_block()
            }
            engine if ENGINES.contains(&engine) => {
                self.reach(Stage::Engines, directive)?;
                self.once(directive)?;
                self.case.notes.push(note(directive)?);
                directive.no_block()
            }
            "types" => {
                self.reach(Stage::Types, directive)?;
                self.once(directive)?;
                if !directive.value.is_empty() {
                    return Err(directive.error(Problem::NotABlock));
                }
                self.types = Types::read(&directive.block)?;
                Ok(())
            }
            "map" => {
                self.reach(Stage::Maps, directive)?;
                let map = map(directive, &self.case.maps, &mut self.types)?;
                self.case.maps.push(map);
                Ok(())
            }
            "program" => {
                self.reach(Stage::Programs, directive)?;
                self.program(directive)
            }
            "chain" => {
                self.reach(Stage::Programs, directive)?;
                self.once(directive)?;
                let names: Vec<_> = self.sources.iter().map(|source| source.name).collect();
                let chain = CaseChain::read((directive.line, directive.value), &directive.block, &names)?;
                self.case.chain = Some(chain);
                Ok(())
            }
            "verifier" => {
                if self.verifier.is_some() {
                    return Err(directive.error(Problem::Twice(directive.name.to_owned())));
                }
                directive.no_block()?;
                self.verifier = Some((directive.line, verifier(directive)?));
                Ok(())
            }
            "update" => {
                self.reach(Stage::Runs, directive)?;
                self.update(directive)
            }
            "wait" => {
                self.reach(Stage::Runs, directive)?;
                let bad = || directive.not_a("number of milliseconds", directive.value);
                self.wait_ms =
                    parse_number(directive.value).and_then(|n| u64::try_from(n).ok()).ok_or_else(bad)?;
                Ok(())
            }
            "after" => {
                self.reach(Stage::After, directive)?;
                self.after(directive)
            }
            _ => {
                self.reach(Stage::Runs, directive)?;
                self.run(directive)
            }
        }
    }

    fn reach(&mut self, stage: Stage, directive: &Directive<'_>) -> Result<(), ParseError> {
        if stage < self.stage {
            return Err(directive.error(Problem::Misplaced(directive.name.to_owned())));
        }
        self.stage = stage;
        Ok(())
    }

    fn once(&mut self, directive: &Directive<'a>) -> Result<(), ParseError> {
        if self.seen.insert(directive.name) {
            return Ok(());
        }
        Err(directive.error(Problem::Twice(directive.name.to_owned())))
    }

    fn program(&mut self, directive: &Directive<'a>) -> Result<(), ParseError> {
        let name = match directive.value {
            "" if self.sources.is_empty() => "main",
            name => name,
        };
        check_name(directive, name)?;
        if self.sources.iter().any(|source| source.name == name) {
            return Err(directive.error(Problem::Twice(format!("program: {name}"))));
        }
        self.sources.push(Source { name, lines: directive.block.clone() });
        Ok(())
    }

    /// The directives of a run; the first one of a case that is no `packet` or `memory` starts a run without.
    fn run(&mut self, directive: &Directive<'a>) -> Result<(), ParseError> {
        match (directive.name, self.case.kind) {
            ("packet", CaseKind::Xdp | CaseKind::SocketFilter) | ("memory", CaseKind::Raw) => {
                self.seen.clear();
                let (data, changes) = (directive.data()?, std::mem::take(&mut self.changes));
                let wait_ms = std::mem::take(&mut self.wait_ms);
                self.case.runs.push(Run { line: directive.line, data, changes, wait_ms, ..Run::default() });
                return Ok(());
            }
            (
                "meta" | "context" | "verdict" | "output_meta" | "redirect" | "path",
                CaseKind::Raw | CaseKind::SocketFilter,
            )
            | ("packet", CaseKind::Raw)
            | ("memory", CaseKind::Xdp | CaseKind::SocketFilter) => {
                return Err(directive.error(Problem::Misplaced(directive.name.to_owned())));
            }
            ("path", _) if self.case.chain.is_some() => {
                let names: Vec<_> = self.sources.iter().map(|source| source.name).collect();
                let words = directive.value.split_whitespace();
                words.clone().try_for_each(|name| chain::program(directive.line, name, &names).map(drop))?;
            }
            ("meta" | "context" | "r0" | "verdict" | "redirect" | "output" | "output_meta" | "error", _) => {}
            (name, _) => return Err(directive.error(Problem::UnknownDirective(name.to_owned()))),
        }
        self.once(directive)?;
        self.no_changes()?;
        let run = match self.case.runs.last_mut() {
            Some(run) => run,
            None => {
                let run = default_run(&self.case);
                self.case.runs.push_mut(run)
            }
        };
        run_line(run, directive)
    }

    /// The map that a directive names.
    fn map_of(&self, directive: &Directive<'_>) -> Result<usize, ParseError> {
        let name = directive.required("name of a map")?;
        let found = self.case.maps.iter().position(|map| map.name == name);
        found.ok_or_else(|| directive.error(Problem::NoMap(name.to_owned())))
    }

    /// What user space does to a map before the next run.
    fn update(&mut self, directive: &Directive<'_>) -> Result<(), ParseError> {
        let index = self.map_of(directive)?;
        if self.changes.is_empty() {
            self.changed_at = directive.line;
        }
        for &(line, text) in &directive.block {
            let at = |problem| ParseError { line, problem };
            let map = &self.case.maps[index];
            let (key, value) = match text.trim().strip_suffix(" = nothing") {
                Some(key) => (sized("key", key, map.key_size).map_err(at)?, None),
                None => {
                    let (key, value) = element(text, map, &self.case.maps).map_err(at)?;
                    (key, Some(value))
                }
            };
            self.changes.push(Change { map: index, key, value });
        }
        Ok(())
    }

    /// Changes of maps come before a run, not into one.
    fn no_changes(&self) -> Result<(), ParseError> {
        match self.changes.as_slice() {
            [] => Ok(()),
            _ => Err(ParseError {
                line: self.changed_at,
                problem: Problem::Missing("packet or memory after `update`"),
            }),
        }
    }

    fn after(&mut self, directive: &Directive<'_>) -> Result<(), ParseError> {
        let index = self.map_of(directive)?;
        let name = directive.value;
        if self.case.after.iter().any(|(other, _)| *other == index) {
            return Err(directive.error(Problem::Twice(format!("after: {name}"))));
        }
        let map = &self.case.maps[index];
        let mut contents = Contents::new();
        if matches!(map.kind, MapKind::Array | MapKind::PerCpuArray) {
            let zero = vec![0; map.value_size as usize];
            contents.extend((0..map.max_entries).map(|key| (key.to_ne_bytes().to_vec(), zero.clone())));
        }
        for &(line, text) in &directive.block {
            let at = |problem| ParseError { line, problem };
            let (key, value) = text.split_once(" = ").ok_or(at(Problem::NotAnElement))?;
            // Queues and stacks have their places for keys, in the order of pops.
            let has_places = matches!(map.kind, MapKind::Queue | MapKind::Stack);
            let key = sized("key", key, if has_places { 4 } else { map.key_size }).map_err(at)?;
            contents.insert(key, sized("value", value, map.value_size).map_err(at)?);
        }
        self.case.after.push((index, contents));
        Ok(())
    }

    fn finish(mut self, first: &Directive<'_>) -> Result<Vec<Case>, ParseError> {
        self.no_changes()?;
        if self.sources.is_empty() {
            return Err(first.error(Problem::NoProgram(self.case.name)));
        }
        self.resolve_programs(first)?;
        if self.is_classic {
            return self.finish_classic(first);
        }
        let kind = self.case.kind.program_kind();
        for source in &self.sources {
            let mut assembled = source
                .assemble(kind, &self.case.maps, &mut self.types)
                .map_err(|error| ParseError { line: error.line, problem: Problem::Assemble(error) })?;
            self.license.clone_into(&mut assembled.license);
            self.case.programs.push(assembled);
        }
        self.settle_types()?;
        self.settle_verifier(first)?;
        let only_after = self.case.runs.is_empty() && !self.case.after.is_empty();
        if only_after {
            self.case.runs.push(default_run(&self.case));
        }
        Ok(vec![self.case])
    }

    /// A classic program stands alone, without maps.
    fn finish_classic(mut self, first: &Directive<'_>) -> Result<Vec<Case>, ParseError> {
        let [source] = self.sources.as_slice() else {
            return Err(first.error(Problem::Twice("program:".to_owned())));
        };
        if let Some(map) = self.case.maps.first() {
            return Err(first.error(Problem::Misplaced(format!("map: {}", map.name))));
        }
        let insns = classic::read(source)
            .map_err(|error| ParseError { line: error.line, problem: Problem::AssembleClassic(error) })?;
        let main = self.types.undeclared(source.name, Linkage::Global);
        self.settle_types()?;
        self.settle_verifier(first)?;
        let mut cases = classic::expand(&self.case, insns, self.license);
        let programs = cases.iter_mut().flat_map(|case| &mut case.programs);
        programs.flat_map(|program| &mut program.functions).for_each(|function| function.btf_id = main);
        Ok(cases)
    }

    /// What is declared must be there.
    fn settle_types(&mut self) -> Result<(), ParseError> {
        let functions = || self.case.programs.iter().flat_map(|program| &program.functions);
        for declared in &self.types.functions {
            if !functions().any(|function| function.btf_id == declared.id) {
                let problem = Problem::NotA { what: "function of a program", found: declared.name.clone() };
                return Err(ParseError { line: declared.line, problem });
            }
        }
        self.case.btf = std::mem::take(&mut self.types.btf);
        Ok(())
    }

    /// Initial values may name programs that come later.
    fn resolve_programs(&self, first: &Directive<'_>) -> Result<(), ParseError> {
        let initial = self.case.maps.iter().flat_map(|map| &map.contents).map(|(_, value)| value);
        let later =
            self.case.runs.iter().flat_map(|run| &run.changes).filter_map(|change| change.value.as_ref());
        let names = initial.chain(later).filter_map(|value| match value {
            InitialValue::Program(name) => Some(name),
            _ => None,
        });
        for name in names {
            if !self.sources.iter().any(|source| source.name == name) {
                return Err(first.error(Problem::NotA { what: "program of this case", found: name.clone() }));
            }
        }
        Ok(())
    }

    /// Brings `verifier`, marks and expected errors together.
    fn settle_verifier(&mut self, first: &Directive<'_>) -> Result<(), ParseError> {
        let mut marked = None;
        for (program, source) in self.sources.iter().enumerate() {
            let marks = if self.is_classic { classic::marks(source) } else { source.marks() };
            for mark in marks {
                let at = |problem| ParseError { line: mark.line, problem };
                let slot = mark.slot.ok_or(at(Problem::StrayMark))?;
                if marked.is_some() {
                    return Err(at(Problem::Twice("#!".to_owned())));
                }
                if matches!(self.verifier, Some((_, Verifier::Accepts))) {
                    return Err(at(Problem::Contradiction("#!".to_owned())));
                }
                marked = Some(Verifier::Refuses { text: mark.text, place: Some((program, slot)) });
            }
        }
        let faulty = self.case.is_faulty();
        self.case.verifier = match (marked, self.verifier.take()) {
            (Some(refuses), _) => refuses,
            (None, Some((line, Verifier::Accepts))) if faulty => {
                return Err(ParseError { line, problem: Problem::Contradiction("error".to_owned()) });
            }
            (None, Some((_, said))) => said,
            (None, None) if faulty => Verifier::Refuses { text: String::new(), place: None },
            (None, None) => {
                let expects =
                    !self.case.after.is_empty() || self.case.runs.iter().any(|run| run.expect.is_some());
                if !expects {
                    return Err(first.error(Problem::NoExpectation(self.case.name.clone())));
                }
                Verifier::Accepts
            }
        };
        Ok(())
    }
}

fn default_run(case: &Case) -> Run {
    let data = match case.kind {
        CaseKind::Xdp | CaseKind::SocketFilter => vec![0; 64],
        CaseKind::Raw => Vec::new(),
    };
    Run { line: case.line, data, ..Run::default() }
}

fn run_line(run: &mut Run, directive: &Directive<'_>) -> Result<(), ParseError> {
    let expect = &mut run.expect;
    match directive.name {
        "meta" => run.meta = directive.data()?,
        "output" if directive.value == "same" => expect.output = Some(run.data.clone()),
        "output" => expect.output = Some(directive.data()?),
        "output_meta" => expect.output_meta = Some(directive.data()?),
        _ => {
            directive.no_block()?;
            let value = directive.required("a value")?;
            match directive.name {
                "context" => run.context = context(directive)?,
                "r0" => expect.r0 = Some(directive.bits(value, 64)?),
                "verdict" => expect.verdict = Some(verdict(directive)?),
                "redirect" => expect.redirect = Some(value.to_owned()),
                "path" => expect.path = Some(value.split_whitespace().map(str::to_owned).collect()),
                _ => expect.error = Some(value.to_owned()),
            }
        }
    }
    Ok(())
}

impl Expect {
    /// Whether anything is expected.
    fn is_some(&self) -> bool {
        self.r0.is_some()
            || self.verdict.is_some()
            || self.output.is_some()
            || self.output_meta.is_some()
            || self.redirect.is_some()
            || self.path.is_some()
            || self.error.is_some()
    }
}

fn context(directive: &Directive<'_>) -> Result<Context, ParseError> {
    let mut context = Context::default();
    let mut words = directive.value.split_whitespace();
    while let Some(field) = words.next() {
        let value = words.next().ok_or_else(|| directive.error(Problem::Missing("value of a field")))?;
        let value = directive.bits(value, 32)? as u32;
        match field {
            "ingress_ifindex" => context.ingress_ifindex = value,
            "rx_queue_index" => context.rx_queue_index = value,
            "egress_ifindex" => context.egress_ifindex = value,
            other => return Err(directive.not_a("field of xdp_md that a case can set", other)),
        }
    }
    Ok(context)
}

fn verdict(directive: &Directive<'_>) -> Result<Verdict, ParseError> {
    let found = Verdict::ALL.into_iter().find(|verdict| verdict.name() == directive.value);
    found.ok_or_else(|| directive.not_a("verdict", directive.value))
}

fn verifier(directive: &Directive<'_>) -> Result<Verifier, ParseError> {
    let (word, text) = directive.value.split_once(' ').unwrap_or((directive.value, ""));
    match (word, text.trim()) {
        ("accepts", "") => Ok(Verifier::Accepts),
        ("refuses", text) => Ok(Verifier::Refuses { text: text.to_owned(), place: None }),
        _ => Err(directive.not_a("verdict of the verifier: accepts or refuses", directive.value)),
    }
}

fn note(directive: &Directive<'_>) -> Result<Note, ParseError> {
    let (word, reason) = directive.value.split_once(' ').unwrap_or((directive.value, ""));
    let (kind, reason) = match word {
        "skip" => (NoteKind::Skip, reason),
        "differs" => (NoteKind::Differs, reason),
        "since" => {
            let (version, reason) = reason.trim().split_once(' ').unwrap_or((reason, ""));
            let parts = version.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
            let (major, minor) = parts.ok_or_else(|| directive.not_a("kernel version", version))?;
            (NoteKind::Since(major, minor), reason)
        }
        other => return Err(directive.not_a("note: skip, differs or since", other)),
    };
    if reason.trim().is_empty() {
        return Err(directive.error(Problem::Missing("reason")));
    }
    Ok(Note { engine: directive.name.to_owned(), kind, reason: reason.trim().to_owned() })
}

fn map(directive: &Directive<'_>, earlier: &[MapSpec], types: &mut Types) -> Result<MapSpec, ParseError> {
    let mut words = directive.value.split_whitespace();
    let name = words.next().ok_or_else(|| directive.error(Problem::Missing("name of the map")))?;
    check_name(directive, name)?;
    if earlier.iter().any(|map| map.name == name) {
        return Err(directive.error(Problem::Twice(format!("map: {name}"))));
    }
    let kind = words.next().ok_or_else(|| directive.error(Problem::Missing("kind of the map")))?;
    let found = MapKind::ALL.iter().copied().find(|k| k.name() == kind);
    let mut map = MapSpec {
        name: name.to_owned(),
        kind: found.ok_or_else(|| directive.not_a("kind of map", kind))?,
        key_size: 0,
        value_size: 0,
        max_entries: 0,
        flags: MapFlags::default(),
        extra: 0,
        pinning: Pinning::None,
        key_type: 0,
        value_type: 0,
        special: Box::default(),
        inner: None,
        contents: Vec::new(),
        frozen: false,
    };
    while let Some(word) = words.next() {
        if word == "frozen" {
            map.frozen = true;
            continue;
        }
        let value =
            words.next().ok_or_else(|| directive.error(Problem::Missing("value of the last word")))?;
        match word {
            "key" => (map.key_size, map.key_type) = size_or_type(directive, value, types)?,
            "value" => (map.value_size, map.value_type) = size_or_type(directive, value, types)?,
            "entries" => map.max_entries = directive.bits(value, 32)? as u32,
            "extra" => map.extra = directive.bits(value, 64)?,
            "flags" => map.flags = flags(directive, value)?,
            "inner" => map.inner = Some(Box::new(template(directive, value, earlier)?)),
            other => {
                return Err(directive.not_a("word of a map: key, value, entries, flags, extra, inner", other));
            }
        }
    }
    // The kernel wants the types of both or of none.
    if map.value_type != 0 && map.key_type == 0 {
        map.key_type = types.of_size(map.key_size);
    }
    if map.key_type != 0 && map.value_type == 0 {
        map.value_type = types.of_size(map.value_size);
    }
    map.find_special_fields(&types.btf);
    for &(line, text) in &directive.block {
        let element = element(text, &map, earlier).map_err(|problem| ParseError { line, problem })?;
        map.contents.push(element);
    }
    Ok(map)
}

/// The size of a key or value, and its type if it is given by that.
fn size_or_type(
    directive: &Directive<'_>,
    text: &str,
    types: &mut Types,
) -> Result<(u32, TypeId), ParseError> {
    let Some(id) = types.named(text) else { return Ok((directive.bits(text, 32)? as u32, 0)) };
    let size = types.btf.size_of(id).ok().and_then(|size| u32::try_from(size).ok());
    Ok((size.ok_or_else(|| directive.not_a("type of a size", text))?, id))
}

/// What inner maps look like: another map without its contents.
fn template(directive: &Directive<'_>, name: &str, earlier: &[MapSpec]) -> Result<MapSpec, ParseError> {
    let found = earlier.iter().find(|map| map.name == name);
    let found = found.ok_or_else(|| directive.error(Problem::NoMap(name.to_owned())))?;
    Ok(MapSpec { contents: Vec::new(), frozen: false, ..found.clone() })
}

fn flags(directive: &Directive<'_>, text: &str) -> Result<MapFlags, ParseError> {
    let named = |word: &str| {
        Some(match word {
            "no_prealloc" => MapFlags::NO_PREALLOC,
            "no_common_lru" => MapFlags::NO_COMMON_LRU,
            "rdonly" => MapFlags::RDONLY,
            "wronly" => MapFlags::WRONLY,
            "zero_seed" => MapFlags::ZERO_SEED,
            "rdonly_prog" => MapFlags::RDONLY_PROG,
            "wronly_prog" => MapFlags::WRONLY_PROG,
            "mmapable" => MapFlags::MMAPABLE,
            "inner_map" => MapFlags::INNER_MAP,
            number => MapFlags(u32::try_from(parse_number(number)?).ok()?),
        })
    };
    text.split('|').try_fold(MapFlags::default(), |flags, word| {
        named(word).map(|flag| flags | flag).ok_or_else(|| directive.not_a("map flag", word))
    })
}

fn element(text: &str, map: &MapSpec, maps: &[MapSpec]) -> Result<(Vec<u8>, InitialValue), Problem> {
    let (key, value) = text.split_once(" = ").ok_or(Problem::NotAnElement)?;
    let key = sized("key", key, map.key_size)?;
    let value = match value.trim().split_once(' ') {
        Some(("program", name)) => InitialValue::Program(name.trim().to_owned()),
        Some(("map", name)) => {
            let index = maps.iter().position(|map| map.name == name.trim());
            InitialValue::Map(index.ok_or_else(|| Problem::NoMap(name.trim().to_owned()))?)
        }
        _ => InitialValue::Bytes(sized("value", value, map.value_size)?),
    };
    Ok((key, value))
}

fn sized(what: &'static str, text: &str, expected: u32) -> Result<Vec<u8>, Problem> {
    let data = parse_data(text).map_err(|error: DataError| Problem::Data(error))?;
    if data.len() != expected as usize {
        return Err(Problem::ElementSize { what, found: data.len(), expected });
    }
    Ok(data)
}
