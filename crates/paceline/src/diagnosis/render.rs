//! Diagnoses as text, in the form of rustc's.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use paceline_isa::Reg;

use super::advice;
use super::data::{Diagnosis, Source};

/// Lines further apart than this are shown as two pieces.
const NEAR: u32 = 100;

/// The text of a diagnosis; ends without a line break.
#[must_use]
pub fn render(diagnosis: &Diagnosis, color: bool) -> String {
    let mut error = Group::with_title(Level::ERROR.primary_title(diagnosis.to_string()));
    error = match &diagnosis.at.line {
        Some(line) => error.elements(snippets(diagnosis, line)),
        None => error
            .element(listing(diagnosis))
            .elements(diagnosis.marks.iter().map(|mark| Level::NOTE.message(mark.text.clone()))),
    };
    error = error.elements(notes(diagnosis).into_iter().map(|note| Level::NOTE.message(note)));
    let mut groups = vec![error];
    if let Some(hint) = diagnosis.hint() {
        let title = Level::HELP.secondary_title(hint.to_string());
        groups.push(match advice::example(hint) {
            Some(code) => {
                title.element(Snippet::<Annotation<'_>>::source(code).fold(false).line_numbering(false))
            }
            None => Group::with_title(title),
        });
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.term_width(120).render(&groups)
}

/// Notes: known values, the function, the map entry that needs the program.
fn notes(diagnosis: &Diagnosis) -> Vec<String> {
    let mut notes = Vec::new();
    let known = |(reg, value): &(Reg, String)| format!("{reg} is {value}");
    if !diagnosis.registers.is_empty() {
        let known: Vec<_> = diagnosis.registers.iter().map(known).collect();
        notes.push(known.join("\n"));
    }
    let function = &diagnosis.function;
    if *function != diagnosis.program {
        notes.push(format!("in function {function}"));
    }
    let shown = diagnosis.marks.iter().filter(|mark| mark.is_branch).count();
    notes.extend(diagnosis.wanted.clone());
    if diagnosis.path.len() > shown {
        notes.push("earlier branches are not shown, `paceline verify --log` shows all".to_owned());
    }
    notes
}

/// The instructions around the guilty one, where no source lines are known.
fn listing(diagnosis: &Diagnosis) -> Snippet<'static, Annotation<'static>> {
    let mut text = String::new();
    let mut span = 0..0;
    for (slot, insn) in &diagnosis.listing {
        let start = text.len() + 7;
        text.push_str(&format!("{slot:5}: {insn}\n"));
        if *slot == diagnosis.at.slot {
            span = start..text.len() - 1;
        }
    }
    Snippet::source(text)
        .line_numbering(false)
        .fold(false)
        .annotation(AnnotationKind::Primary.span(span).label("this instruction"))
}

/// A label of a source line.
struct Note<'a> {
    line: &'a Source,
    kind: AnnotationKind,
    label: String,
}

/// The source lines that matter: those of the guilty file first, and in it those near the guilty line.
fn snippets(diagnosis: &Diagnosis, line: &Source) -> Vec<Snippet<'static, Annotation<'static>>> {
    let gave_up = if diagnosis.refusal.cause.is_too_complex() { "given up at " } else { "" };
    let label = format!("{gave_up}instruction {}: {}", diagnosis.at.slot, diagnosis.at.insn);
    let mut notes = vec![Note { line, kind: AnnotationKind::Primary, label }];
    for mark in &diagnosis.marks {
        if let Some(line) = &mark.place.line {
            notes.push(Note { line, kind: AnnotationKind::Context, label: mark.text.clone() });
        }
    }
    let mut pieces: Vec<Vec<Note<'_>>> = Vec::new();
    for note in notes {
        let fits = |piece: &&mut Vec<Note<'_>>| {
            piece.iter().any(|other| {
                other.line.file == note.line.file && other.line.line.abs_diff(note.line.line) <= NEAR
            })
        };
        match pieces.iter_mut().find(fits) {
            Some(piece) => piece.push(note),
            None => pieces.push(vec![note]),
        }
    }
    pieces.into_iter().map(|piece| snippet(&piece)).collect()
}

/// One piece of source. Lines between that the object does not have are dots.
fn snippet(notes: &[Note<'_>]) -> Snippet<'static, Annotation<'static>> {
    let numbers = || notes.iter().map(|note| note.line.line);
    let (first, last) = (numbers().min().unwrap_or(1), numbers().max().unwrap_or(1));
    let mut text = String::new();
    let mut starts = Vec::new();
    for number in first..=last {
        starts.push(text.len());
        let known = notes.iter().find(|note| note.line.line == number);
        text.push_str(known.map_or("...", |note| note.line.text.trim_end()));
        text.push('\n');
    }
    let file = notes.first().map_or("", |note| &note.line.file).to_owned();
    let mut annotations = Vec::new();
    for note in notes {
        let start = starts.get((note.line.line - first) as usize).copied().unwrap_or(0);
        let Range { start: from, end } = span(note.line);
        annotations.push(note.kind.span(start + from..start + end).label(note.label.clone()));
    }
    Snippet::source(text).path(file).line_start(first as usize).annotations(annotations)
}

/// The bytes of a line that its column is about: the word that starts there, or the whole line.
fn span(line: &Source) -> Range<usize> {
    let text = line.text.trim_end();
    let indent = text.len() - text.trim_start().len();
    let from = (line.column as usize).wrapping_sub(1);
    let Some(rest) = text.get(from..).filter(|rest| !rest.trim_start().is_empty()) else {
        return indent..text.len();
    };
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let word: usize = rest.chars().take_while(|&c| is_word(c)).map(char::len_utf8).sum();
    let first = rest.chars().next().map_or(1, char::len_utf8);
    from..from + word.max(first)
}

#[cfg(test)]
mod tests {
    use crate::Object;

    use super::*;

    fn refusal(name: &str, change: impl Fn(&mut crate::LineInfo) -> bool) -> String {
        let path = format!("{}/../cli/tests/fixtures/{name}.o", env!("CARGO_MANIFEST_DIR"));
        let mut object = Object::open(path).unwrap();
        for program in &mut object.specs_mut().programs {
            program.lines.retain_mut(&change);
        }
        let refused = object.verify(&object.programs()[0]).unwrap_err();
        render(&Diagnosis::new("x.o", &object, &refused), false)
    }

    #[test]
    fn without_source_lines_the_instructions_around_are_shown() {
        let expected = " |
 |     2: r1 = *(u32 *)(r1 + 0)
 |     3: r3 = r1
 |     4: r3 += 14
 |     5: if r3 > r2 goto L10
 |     6: r1 = *(u8 *)(r1 + 23)
 |        ^^^^^^^^^^^^^^^^^^^^^ this instruction
 |     7: w0 = 1
 |     8: if w1 == 6 goto L10
 |     9: w0 = 2
 |    10: exit
 |
 = note: r1 is set by instruction 2: r1 = *(u32 *)(r1 + 0)
 = note: instruction 5 does not jump: if r3 > r2 goto L10
 = note: r1 is pointer to packet, 14 bytes checked
";
        let text = refusal("wrong_pointer", |_| false);
        let (title, rest) = text.split_once('\n').unwrap();
        assert!(title.starts_with("error: x.o: program wrong_pointer is refused: "), "{title}");
        assert_eq!(rest.split("help:").next(), Some(expected), "{text}");
    }

    #[test]
    fn lines_may_say_anything() {
        for (line, column, source) in [
            (0, 0, "if (x)"),
            (1, u32::MAX, "if (x)"),
            (u32::MAX, 3, "\u{e4}\u{e4}\u{e4}"),
            (7, 2, "\u{e4}\u{e4}\u{e4}"),
            (7, 4, "\u{1f600}\u{1f600}\t\u{1f600}"),
            (7, 4, "a\nb\x1b[31m\nc"),
            (7, 1, ""),
            (7, 3, "a   "),
        ] {
            let text = refusal("wrong_pointer", |info| {
                (info.line, info.column, info.text) = (line, column, source.into());
                info.file = "\x1b[31mred\n.c".into();
                true
            });
            assert!(text.contains("offset 23 size 1"), "{text}");
            assert!(!text.contains('\x1b'), "{text}");
        }
    }

    #[test]
    fn lines_far_apart_are_shown_as_pieces() {
        let text = refusal("wrong_pointer", |info| {
            info.line += if info.line > 14 { 100_000 } else { 0 };
            true
        });
        assert!(text.contains("100017 |") && text.contains("11 |"), "{text}");
        assert!(text.lines().count() < 40, "{text}");
    }
}
