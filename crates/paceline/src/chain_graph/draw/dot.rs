//! DOT, the language of Graphviz.

use std::fmt::Write;

use super::drawing::{Drawing, arrows};
use paceline_spec::graph::Next;

/// The graph in DOT. Verdicts without an edge, which end the chain with themselves, are omitted.
#[must_use]
pub fn dot(drawing: &Drawing<'_>) -> String {
    let mut text = "digraph chain {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for (node, _) in drawing.graph.iter() {
        let _ = writeln!(text, "  n{node} [label={}];", quoted(drawing.name(node)));
    }
    text.push_str("  in [shape=point];\n  in -> n0;\n");
    for arrow in arrows(drawing) {
        let label = quoted(&arrow.label);
        let _ = match arrow.to {
            Next::Program(to) => writeln!(text, "  n{} -> n{to} [label={label}];", arrow.from),
            Next::End(verdict) => {
                let end = format!("n{}_{verdict}", arrow.from);
                let _ = writeln!(text, "  {end} [label=\"{verdict}\", shape=plaintext];");
                writeln!(text, "  n{} -> {end} [label={label}];", arrow.from)
            }
        };
    }
    text.push_str("}\n");
    text
}

/// A quoted string in DOT. Backslashes would start escapes in labels.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push('\u{fffd}'),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
