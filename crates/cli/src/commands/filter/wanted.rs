//! Sources of filters: expressions, of the command line or of files, and programs.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use paceline::Engine;
use paceline::filter::{
    ConvertOptions, Filter, Libpcap, PacketFilter, Purpose, Rules, SockFilter, Target, text,
};
use paceline::text_file;

use super::args::FilterArgs;
use super::error::{FilterError, ListProblem};
use crate::common::failure::Failure;
use crate::expression::{self, Passage};

/// Maximum size of a text file: far larger than real ones.
const MAX_TEXT: u64 = 16 << 20;

/// Most filters of a file: each has an open output.
const MAX_FILTERS: usize = 512;

/// `BPF_RET | BPF_K`
const RETURN: u16 = 6;

/// The source of a filter.
pub(super) enum Source {
    /// Nothing: all packets match.
    All,
    /// An expression.
    Expression(Passage),
    /// A program of a file.
    Program { file: String, insns: Vec<SockFilter> },
}

/// Something to filter by.
pub(super) struct Wanted {
    pub(super) name: Option<String>,
    pub(super) source: Source,
}

/// A filter, checked, and where it is from.
pub(super) struct Compiled {
    /// The name in a file of filters.
    pub(super) name: Option<String>,
    pub(super) source: Source,
    pub(super) filter: Filter,
}

impl Compiled {
    /// Its name in messages.
    pub(super) fn title(&self) -> String {
        match (&self.name, &self.source) {
            (Some(name), _) => format!("filter {name}"),
            (None, Source::Program { file, .. }) => file.clone(),
            (None, _) => "filter".to_owned(),
        }
    }

    /// The expression in one line, if it comes from one.
    pub(super) fn expression(&self) -> Option<String> {
        match &self.source {
            Source::Expression(passage) => {
                Some(passage.expression().split_whitespace().collect::<Vec<_>>().join(" "))
            }
            Source::All => Some(String::new()),
            Source::Program { .. } => None,
        }
    }

    /// Options of the conversion: expressions match as they do in tcpdump, programs as they do on a socket.
    pub(super) fn options(&self) -> ConvertOptions {
        let rules = match self.source {
            Source::Program { .. } => Rules::Kernel,
            Source::All | Source::Expression(_) => Rules::Libpcap,
        };
        ConvertOptions::default().rules(rules)
    }

    pub(super) fn load(self, engine: Engine) -> Result<Loaded, FilterError> {
        let (title, expression, options) = (self.title(), self.expression(), self.options());
        let program = self.name.as_deref().unwrap_or("filter");
        let filter = PacketFilter::new(program, self.filter, &options, engine);
        match filter {
            Ok(filter) => Ok(Loaded { name: self.name, title, expression, filter }),
            Err(source) => Err(FilterError::Program { name: title, source: Box::new(source) }),
        }
    }
}

/// A filter that is ready to run.
pub(super) struct Loaded {
    /// The name in a file of filters.
    pub(super) name: Option<String>,
    /// Its name in messages.
    pub(super) title: String,
    /// The expression in one line, if it comes from one.
    pub(super) expression: Option<String>,
    pub(super) filter: PacketFilter,
}

/// Reads the filters that the command line names.
pub(super) fn read(args: &FilterArgs) -> Result<Vec<Wanted>, FilterError> {
    if let Some(path) = &args.filters {
        return read_list(path);
    }
    let source = if let Some(path) = &args.program {
        let (file, text) = read_text(path)?;
        let insns = text::parse(&text).map_err(|error| FilterError::Text { name: file.clone(), error })?;
        Source::Program { file, insns }
    } else if let Some(path) = &args.expression_file {
        let (file, text) = read_text(path)?;
        let text = without_comments(&text);
        Source::Expression(Passage { span: 0..text.len(), source: text, file: Some(file), line: 1 })
    } else if args.expression.is_empty() {
        Source::All
    } else {
        let text = args.expression.join(" ");
        Source::Expression(Passage::of_text(text))
    };
    Ok(vec![Wanted { name: None, source }])
}

/// Compiles the only filter, if programs are printed.
pub(super) fn compile_one(args: &FilterArgs, target: Target) -> Result<Compiled, Failure> {
    let mut compiled = compile(read(args)?, target)?;
    Ok(compiled.pop().unwrap_or_else(|| unreachable!("several filters are not printed")))
}

/// Compiles and checks; libpcap is loaded if there is an expression.
pub(super) fn compile(wanted: Vec<Wanted>, target: Target) -> Result<Vec<Compiled>, Failure> {
    let libpcap = OnceCell::new();
    let compile = |Wanted { name, source }: Wanted| {
        let insns = match &source {
            Source::All => vec![SockFilter::new(RETURN, target.snaplen)],
            Source::Program { insns, .. } => insns.clone(),
            Source::Expression(passage) => {
                if libpcap.get().is_none() {
                    let _ = libpcap.set(Libpcap::open().map_err(FilterError::Libpcap)?);
                }
                let libpcap = libpcap.get().unwrap_or_else(|| unreachable!("it was just set"));
                expression::compile(libpcap, passage, target)?
            }
        };
        let file = match &source {
            Source::Program { file, .. } => Some(file.clone()),
            Source::All | Source::Expression(_) => None,
        };
        let title = file.clone().or_else(|| name.as_ref().map(|name| format!("filter {name}")));
        let purpose = if file.is_some() { Purpose::Socket } else { Purpose::UserSpace };
        let filter = Filter::new(insns, purpose).map_err(|source| FilterError::Check {
            name: title.unwrap_or_else(|| "filter".to_owned()),
            source,
        })?;
        Ok(Compiled { name, source, filter })
    };
    wanted.into_iter().map(compile).collect()
}

/// A file's name for messages, and its contents.
pub(super) fn read_text(path: &Path) -> Result<(String, String), FilterError> {
    let stdin = path == Path::new("-");
    let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
    let failed = |source: io::Error| FilterError::Read { name: name.clone(), source: source.into() };
    let input: Box<dyn Read> =
        if stdin { Box::new(io::stdin().lock()) } else { Box::new(File::open(path).map_err(failed)?) };
    let mut bytes = Vec::new();
    input.take(MAX_TEXT + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_TEXT {
        return Err(FilterError::TooLong { name, most: MAX_TEXT });
    }
    match text_file::of_bytes(bytes) {
        Ok(text) => Ok((name, text)),
        Err(source) => Err(FilterError::Read { name, source }),
    }
}

/// Replaces comments by blanks, so that the columns of other text remain.
fn without_comments(text: &str) -> String {
    let mut in_comment = false;
    let blank = |c: char| {
        in_comment = (in_comment || c == '#') && c != '\n';
        if in_comment { " ".repeat(c.len_utf8()) } else { c.to_string() }
    };
    text.chars().map(blank).collect()
}

fn read_list(path: &Path) -> Result<Vec<Wanted>, FilterError> {
    let (file, text) = read_text(path)?;
    parse_list(file, &text)
}

/// The filters of a text.
pub(super) fn parse_list(file: String, text: &str) -> Result<Vec<Wanted>, FilterError> {
    let text = without_comments(text);
    let mut wanted = Vec::new();
    let mut lines: HashMap<String, usize> = HashMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let failed = |column: usize, problem| {
            let column = line.get(..column).map_or(column, |start| start.chars().count()) + 1;
            FilterError::List { name: file.clone(), line: number, column, problem }
        };
        let (name, span) = split(line).map_err(|(column, problem)| failed(column, problem))?;
        let column = name.start;
        let name = line.get(name).unwrap_or_default().to_owned();
        if wanted.len() == MAX_FILTERS {
            return Err(failed(column, ListProblem::TooMany { most: MAX_FILTERS }));
        }
        if let Some(line) = lines.insert(name.clone(), number) {
            return Err(failed(column, ListProblem::Twice { name, line }));
        }
        let passage = Passage { source: line.to_owned(), span, file: Some(file.clone()), line: number };
        wanted.push(Wanted { name: Some(name), source: Source::Expression(passage) });
    }
    if wanted.is_empty() { Err(FilterError::NoFilters { name: file }) } else { Ok(wanted) }
}

/// The ranges of name and expression in a line.
fn split(line: &str) -> Result<(Range<usize>, Range<usize>), (usize, ListProblem)> {
    let start = line.len() - line.trim_start().len();
    let Some(colon) = line.find(':') else { return Err((start, ListProblem::NoName)) };
    let name = line.get(start..colon).unwrap_or_default().trim_end();
    let is_in_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    // No hidden file, and no folder: outputs are named after it.
    let starts = |c: char| c.is_alphanumeric() || c == '_';
    if !name.starts_with(starts) {
        return Err((start, if name.is_empty() { ListProblem::NoName } else { ListProblem::Name }));
    }
    if let Some(at) = name.find(|c: char| !is_in_name(c)) {
        return Err((start + at, ListProblem::Name));
    }
    let rest = line.get(colon + 1..).unwrap_or_default();
    let from = line.len() - rest.trim_start().len();
    Ok((
        start..start + name.len(),
        from.min(line.trim_end().len()).max(colon + 1)..line.trim_end().len().max(colon + 1),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_names_and_expressions() {
        let found =
            |line: &str| split(line).map(|(name, span)| (line[name].to_owned(), line[span].to_owned()));
        assert_eq!(found(" ssh : tcp port 22 "), Ok(("ssh".to_owned(), "tcp port 22".to_owned())));
        assert_eq!(found("all:"), Ok(("all".to_owned(), String::new())));
        assert_eq!(found("all:   "), Ok(("all".to_owned(), String::new())));
        assert_eq!(found("  ether host 1"), Err((2, ListProblem::NoName)));
        assert_eq!(found("../x: ip"), Err((0, ListProblem::Name)));
        assert_eq!(found("a b: ip"), Err((1, ListProblem::Name)));
        assert_eq!(found(": ip"), Err((0, ListProblem::NoName)));
    }

    #[test]
    fn comments_leave_everything_in_its_place() {
        assert_eq!(without_comments("ip # \u{e4}\nor arp"), "ip     \nor arp");
    }
}
