//! SVG: programs in a row, forward edges above it, backward edges below it, ends under their program.

use std::fmt::Write;

use super::drawing::{Arrow, Drawing, arrows};
use paceline_spec::graph::Next;

/// Width of a character in SVG units.
const LETTER: usize = 8;
/// Space between elements.
const GAP: usize = 40;
/// Height of a program's box.
const BOX: usize = 36;
/// Additional height of an arrow for each program that it spans.
const RISE: usize = 26;
/// Height of a line of text.
const LINE: usize = 18;

const STYLE: &str = "text{font:13px monospace;text-anchor:middle}rect,path{fill:none;stroke:#333}\
    .l{font-size:11px;fill:#06c}marker path{fill:#333}";

/// The graph as a standalone SVG image. Verdicts without an edge, which end the chain with themselves, are omitted.
#[must_use]
pub fn svg(drawing: &Drawing<'_>) -> String {
    let nodes = || drawing.graph.iter().map(|(node, _)| node);
    let arrows = arrows(drawing);
    let longest = |longest: usize, text: &str| longest.max(text.chars().count());
    let width = LETTER * nodes().map(|node| drawing.name(node)).fold(6, longest) + 2 * LETTER;
    let gap = GAP.max(LETTER * arrows.iter().map(|arrow| arrow.label.as_str()).fold(0, longest));
    let reach =
        |forward: bool| arrows.iter().filter_map(move |arrow| span(arrow, forward)).max().unwrap_or(0);
    let ends = nodes().map(|node| arrows.iter().filter(|a| a.from == node && end_of(a).is_some()).count());
    let ends = ends.max().unwrap_or(0);
    let top = GAP + RISE * reach(true);
    let row = Row { top, width, gap, under: top + BOX + LINE * (ends + 1) };
    let (whole, height) = (row.left(nodes().len()), row.under + RISE * reach(false) + GAP);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{whole}\" height=\"{height}\">\n<style>{STYLE}</style>\n\
         <marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker>\n"
    );
    let _ = writeln!(text, "<path d=\"M0 {y}H{gap}\" marker-end=\"url(#a)\"/>", y = top + BOX / 2);
    for node in nodes() {
        row.draw_box(&mut text, node.index(), drawing.name(node));
        let ends = arrows.iter().filter(|arrow| arrow.from == node).filter_map(|a| Some((end_of(a)?, a)));
        for (line, (verdict, arrow)) in (1..).zip(ends) {
            let y = top + BOX + LINE * line;
            let _ = writeln!(
                text,
                "<text class=\"l\" x=\"{}\" y=\"{y}\">{} \u{2192} {verdict}</text>",
                row.middle(node.index()),
                arrow.label
            );
        }
    }
    arrows.iter().for_each(|arrow| row.draw_arrow(&mut text, arrow));
    text.push_str("</svg>\n");
    text
}

fn end_of(arrow: &Arrow) -> Option<paceline_frame::Verdict> {
    match arrow.to {
        Next::End(verdict) => Some(verdict),
        Next::Program(_) => None,
    }
}

/// Number of programs that an arrow spans, if it is forward, or backward (including to its own program).
fn span(arrow: &Arrow, forward: bool) -> Option<usize> {
    match arrow.to {
        Next::Program(to) if forward && to > arrow.from => Some(to.index() - arrow.from.index() - 1),
        Next::Program(to) if !forward && to <= arrow.from => Some(arrow.from.index() - to.index() + 1),
        _ => None,
    }
}

/// Layout of the row of programs.
struct Row {
    /// Top edge of the boxes.
    top: usize,
    /// Width of a box.
    width: usize,
    /// Space between two boxes.
    gap: usize,
    /// Vertical position at which backward arrows start and end.
    under: usize,
}

impl Row {
    fn left(&self, node: usize) -> usize {
        self.gap + node * (self.width + self.gap)
    }

    fn middle(&self, node: usize) -> usize {
        self.left(node) + self.width / 2
    }

    fn draw_box(&self, text: &mut String, node: usize, name: &str) {
        let (x, y, width) = (self.left(node), self.top, self.width);
        let _ = writeln!(text, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BOX}\" rx=\"4\"/>");
        let (x, y, name) = (self.middle(node), y + BOX / 2 + 5, escaped(name));
        let _ = writeln!(text, "<text x=\"{x}\" y=\"{y}\">{name}</text>");
    }

    fn draw_arrow(&self, text: &mut String, arrow: &Arrow) {
        let Next::Program(to) = arrow.to else { return };
        let (from, to, label) = (arrow.from.index(), to.index(), &arrow.label);
        let (path, x, y) = if to == from + 1 {
            let (start, end, y) = (self.left(from) + self.width, self.left(to), self.top + BOX / 2);
            (format!("M{start} {y}H{end}"), start.midpoint(end), y - 4)
        } else if to > from {
            let (start, end) = (self.middle(from) + LETTER, self.middle(to) - LETTER);
            let y = self.top - RISE * (to - from - 1);
            (format!("M{start} {top}V{y}H{end}V{top}", top = self.top), start.midpoint(end), y - 4)
        } else {
            let (start, end) = (self.left(from) + LETTER, self.left(to) + self.width - LETTER);
            let (bottom, y) = (self.top + BOX, self.under + RISE * (from - to + 1) - RISE);
            (format!("M{start} {bottom}V{y}H{end}V{bottom}"), start.midpoint(end), y - 4)
        };
        let _ = writeln!(text, "<path d=\"{path}\" marker-end=\"url(#a)\"/>");
        let _ = writeln!(text, "<text class=\"l\" x=\"{x}\" y=\"{y}\">{label}</text>");
    }
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // Most control characters are invalid in XML.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
