//! Expressions of libpcap, and their errors.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use paceline::filter::{self, CompileError, ConvertOptions, Libpcap, SockFilter, Target, locate};

use crate::common::failure::CommandError;

/// An expression, and the text that it is a part of.
#[derive(Clone, Debug)]
pub(crate) struct Passage {
    pub(crate) source: String,
    pub(crate) span: Range<usize>,
    /// The file that it is from.
    pub(crate) file: Option<String>,
    /// Line of the text's start.
    pub(crate) line: usize,
}

impl Passage {
    /// A text that is an expression.
    pub(crate) fn of_text(text: String) -> Self {
        Self { span: 0..text.len(), source: text, file: None, line: 1 }
    }

    pub(crate) fn expression(&self) -> &str {
        self.source.get(self.span.clone()).unwrap_or_default()
    }
}

/// An error of libpcap in an expression, with its place.
#[derive(Debug)]
pub(crate) struct ExpressionError {
    pub(crate) message: String,
    pub(crate) passage: Passage,
    /// In the text.
    pub(crate) place: Option<Range<usize>>,
}

/// Compiles an expression.
pub(crate) fn compile(
    libpcap: &Libpcap,
    passage: &Passage,
    target: Target,
) -> Result<Vec<SockFilter>, ExpressionError> {
    let compiled = libpcap.compile(passage.expression(), target);
    compiled.map_err(|error| located(libpcap, passage, target, &error))
}

/// Compiles an expression for many packets: with libpcap's optimizer, if it is proved in time that it changes nothing.
pub(crate) fn compile_checked(
    libpcap: &Libpcap,
    passage: &Passage,
    target: Target,
    options: &ConvertOptions,
) -> Result<Vec<SockFilter>, ExpressionError> {
    const TIME: Duration = Duration::from_millis(300);
    let compiled = filter::compile_checked(libpcap, passage.expression(), target, options, TIME);
    compiled.map_err(|error| located(libpcap, passage, target, &error))
}

fn located(libpcap: &Libpcap, passage: &Passage, target: Target, error: &CompileError) -> ExpressionError {
    let place = locate(libpcap, passage.expression(), target, error);
    ExpressionError::new(&error.message, passage.clone(), place)
}

impl std::error::Error for ExpressionError {}

impl CommandError for ExpressionError {
    /// The error with the line that it is in; ends without a line break.
    fn render(&self, color: bool) -> Option<String> {
        let Passage { source, file, line, span } = &self.passage;
        let mut snippet = Snippet::source(source.as_str()).line_start(*line).path(file.as_deref());
        let shown = shown(source, self.place.as_ref().unwrap_or(span));
        let mut annotation = AnnotationKind::Primary.span(shown.clone());
        if shown.is_empty() {
            annotation = annotation.label("something is missing here");
        }
        snippet = snippet.annotation(annotation);
        let group = Level::ERROR.primary_title(self.title()).element(snippet);
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        Some(renderer.term_width(120).render(&[group]))
    }

    /// Advice if a word is the name of a file: an expression names none.
    fn hint(&self) -> Option<String> {
        let file = self.passage.expression().split_whitespace().find(|word| Path::new(word).is_file())?;
        Some(format!("`{file}` is a file: a capture is given with --in, an expression in a file with -F"))
    }
}

impl ExpressionError {
    /// libpcap's message about an expression, and its place there.
    pub(crate) fn new(message: &str, passage: Passage, place: Option<Range<usize>>) -> Self {
        let message = message.strip_prefix("can't parse filter expression: ").unwrap_or(message).to_owned();
        let start = passage.span.start;
        let place = place.map(|place| start + place.start..start + place.end);
        Self { message, passage, place }
    }

    fn title(&self) -> String {
        format!("in the expression: {}", self.message)
    }
}

/// Most characters of an expression that are shown, so that a long one does not hide the message.
const LONGEST: usize = 80;

/// An expression as messages name it.
pub(crate) fn brief(expression: &str) -> String {
    let mut text: String = expression.chars().take(LONGEST).collect();
    if text.len() < expression.len() {
        text.push_str("...");
    }
    text
}

/// The start of a place, to be shown.
fn shown(source: &str, place: &Range<usize>) -> Range<usize> {
    let text = source.get(place.clone()).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let len = line.char_indices().nth(LONGEST).map_or(line.len(), |(at, _)| at);
    // A place that starts with a line break has nothing else on its line.
    let len = if line.is_empty() { text.len().min(1) } else { len };
    place.start..place.start + len
}

/// In one line, with the place: in the file if there is one.
impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Passage { source, file, line, span } = &self.passage;
        if let Some(file) = file {
            let at = self.place.as_ref().unwrap_or(span).start;
            let before = source.get(..at).unwrap_or_default();
            let line = line + before.matches('\n').count();
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            write!(f, "{file}:{line}:{column}: ")?;
        }
        f.write_str(&self.title())?;
        let guilty = self.place.as_ref().and_then(|place| source.get(shown(source, place)));
        match guilty.filter(|_| file.is_none()) {
            Some("") => f.write_str(" at its end"),
            Some(guilty) => write!(f, " at `{guilty}`"),
            None => Ok(()),
        }
    }
}
