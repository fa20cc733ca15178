//! The parser of case files.

use std::collections::HashSet;
use std::sync::Arc;

use paceline_btf::Btf;
use paceline_frame::Verdict;
use paceline_spec::{InitialValue, Linkage};

use super::chain::CaseChain;
use super::data::parse_number;
use super::directive::{Directive, Stage, check_name, directives};
use super::error::{ParseError, Problem};
use super::map::{element, map, sized};
use super::model::{
    ByteOrder, Case, CaseKind, CaseNetwork, Change, Context, Expect, Note, NoteKind, Run, Verifier,
};
use super::source::Source;
use super::types::Types;
use super::{chain, classic};
use crate::{Contents, ENGINES};

/// The cases of a text with snippets, preludes and tables already expanded.
///
/// # Errors
/// The first line that is wrong.
pub(super) fn parse_expanded(text: &str) -> Result<Vec<Case>, ParseError> {
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

/// Parses the network of a case, from lines of the tools' output.
fn network(directive: &Directive<'_>) -> Result<CaseNetwork, ParseError> {
    if !directive.value.is_empty() {
        return Err(directive.error(Problem::NotABlock));
    }
    let lines: Vec<&str> = directive.block.iter().map(|(_, line)| line.trim()).collect();
    let text = lines.join("\n");
    let network = paceline_network::iproute::parse(&text)
        .map_err(|error| directive.error(Problem::Network(error.to_string())))?;
    Ok(CaseNetwork { text, network: Arc::new(network) })
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
    /// Changes of maps and waiting time before the next run, and the line of the first of them.
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
        network: None,
        btf: Btf::default(),
        maps: Vec::new(),
        programs: Vec::new(),
        chain: None,
        also: Vec::new(),
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

impl<'a> Builder<'a> {
    fn directive(&mut self, directive: &Directive<'a>) -> Result<(), ParseError> {
        // `verifier` is allowed anywhere.
        if directive.name != "verifier" {
            self.reach(directive)?;
        }
        match directive.name {
            "license" => {
                self.once(directive)?;
                self.license = directive.required("a license")?;
                Ok(())
            }
            "endian" => {
                self.once(directive)?;
                self.case.byte_order = Some(match directive.value {
                    "little" => ByteOrder::Little,
                    "big" => ByteOrder::Big,
                    other => return Err(directive.not_a("byte order: little or big", other)),
                });
                directive.no_block()
            }
            "type" => {
                self.once(directive)?;
                self.case.kind = match directive.value {
                    "xdp" => CaseKind::Xdp,
                    "socket_filter" => CaseKind::SocketFilter,
                    "sched_cls" => CaseKind::SchedCls,
                    "raw" => CaseKind::Raw,
                    "classic" => {
                        self.is_classic = true;
                        CaseKind::SocketFilter
                    }
                    other => {
                        return Err(
                            directive.not_a("type: xdp, socket_filter, sched_cls, raw or classic", other)
                        );
                    }
                };
                directive.no_block()
            }
            "network" => {
                self.once(directive)?;
                self.case.network = Some(network(directive)?);
                Ok(())
            }
            engine if ENGINES.contains(&engine) => {
                self.once(directive)?;
                self.case.notes.push(note(directive)?);
                directive.no_block()
            }
            "types" => {
                self.once(directive)?;
                if !directive.value.is_empty() {
                    return Err(directive.error(Problem::NotABlock));
                }
                self.types = Types::read(&directive.block)?;
                Ok(())
            }
            "map" => {
                let map = map(directive, &self.case.maps, &mut self.types)?;
                self.case.maps.push(map);
                Ok(())
            }
            "program" => self.program(directive),
            "chain" => {
                self.once(directive)?;
                let names: Vec<_> = self.sources.iter().map(|source| source.name).collect();
                let chain = CaseChain::read((directive.line, directive.value), &directive.block, &names)?;
                self.case.chain = Some(chain);
                Ok(())
            }
            "also" if self.case.chain.is_some() => {
                let names: Vec<_> = self.sources.iter().map(|source| source.name).collect();
                let chain = CaseChain::read((directive.line, directive.value), &directive.block, &names)?;
                self.case.also.push(chain);
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
            "update" => self.update(directive),
            "wait" => {
                let bad = || directive.not_a("number of milliseconds", directive.value);
                let number = parse_number(directive.value).and_then(|n| u64::try_from(n).ok());
                self.wait_ms = number.ok_or_else(bad)?;
                Ok(())
            }
            "after" => self.after(directive),
            _ => self.run(directive),
        }
    }

    fn reach(&mut self, directive: &Directive<'_>) -> Result<(), ParseError> {
        let stage = Stage::of(directive.name);
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

    /// The directives of a run. A first directive other than `packet` and `memory` starts a run with default input.
    fn run(&mut self, directive: &Directive<'a>) -> Result<(), ParseError> {
        match (directive.name, self.case.kind) {
            ("packet", CaseKind::Xdp | CaseKind::SocketFilter | CaseKind::SchedCls)
            | ("memory", CaseKind::Raw) => {
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
            | ("meta" | "output_meta", CaseKind::SchedCls)
            | ("packet", CaseKind::Raw)
            | ("skb", CaseKind::Xdp | CaseKind::SocketFilter | CaseKind::Raw)
            | ("memory", CaseKind::Xdp | CaseKind::SocketFilter | CaseKind::SchedCls) => {
                return Err(directive.error(Problem::Misplaced(directive.name.to_owned())));
            }
            ("verdict", CaseKind::SchedCls) if self.case.chain.is_none() => {
                return Err(directive.error(Problem::Misplaced(directive.name.to_owned())));
            }
            ("path", _) if self.case.chain.is_some() => {
                let names: Vec<_> = self.sources.iter().map(|source| source.name).collect();
                let words = directive.value.split_whitespace();
                words.clone().try_for_each(|name| chain::program(directive.line, name, &names).map(drop))?;
            }
            (
                "meta" | "context" | "r0" | "verdict" | "redirect" | "skb" | "output" | "output_meta"
                | "error",
                _,
            ) => {}
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

    /// Changes to a map by user space before the next run.
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

    /// Changes of maps precede a run and are not allowed within one.
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
        if map.kind.is_array() {
            let zero = vec![0; map.value_size as usize];
            contents.extend((0..map.max_entries).map(|key| (key.to_ne_bytes().to_vec(), zero.clone())));
        }
        for &(line, text) in &directive.block {
            let at = |problem| ParseError { line, problem };
            let (key, value) = text.split_once(" = ").ok_or(at(Problem::NotAnElement))?;
            // Keys of queues and stacks are positions, in pop order.
            let has_places = map.kind.is_queue();
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

    /// A classic case has a single program and no maps.
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

    /// Declared functions must exist.
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

    /// Initial values may refer to programs that follow.
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

    /// Combines `verifier`, marks and expected errors.
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
        CaseKind::Xdp | CaseKind::SocketFilter | CaseKind::SchedCls => vec![0; 64],
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
                "skb" => expect.skb = Some(value.to_owned()),
                "path" => expect.path = Some(value.split_whitespace().map(str::to_owned).collect()),
                _ => expect.error = Some(value.to_owned()),
            }
        }
    }
    Ok(())
}

impl Expect {
    /// Whether the case has an expectation.
    fn is_some(&self) -> bool {
        self.r0.is_some()
            || self.verdict.is_some()
            || self.output.is_some()
            || self.output_meta.is_some()
            || self.redirect.is_some()
            || self.skb.is_some()
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
