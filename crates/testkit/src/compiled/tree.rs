//! The text of a program as a tree of statements, so that it can be shrunk.

use std::fmt::Write;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// Text that is never removed: declarations and returns.
    Fixed(String),
    /// A statement without nested statements.
    Line(String),
    /// A statement with nested ones: parts with the text before each, and the text after all.
    Block {
        /// Heads and bodies, such as those of `if` and `else`.
        parts: Vec<(String, Vec<Node>)>,
        /// Text after the last body.
        tail: String,
        /// Whether the nested statements are valid without the surrounding text.
        unwraps: bool,
    },
}

impl Node {
    /// A statement whose nested statements are valid without it.
    pub(super) fn block(head: impl Into<String>, body: Vec<Self>) -> Self {
        Self::Block { parts: vec![(head.into(), body)], tail: "}".to_owned(), unwraps: true }
    }

    /// A statement whose nested statements use its declarations.
    pub(super) fn scope(head: impl Into<String>, body: Vec<Self>, tail: impl Into<String>) -> Self {
        Self::Block { parts: vec![(head.into(), body)], tail: tail.into(), unwraps: false }
    }
}

/// The text of statements.
#[must_use]
pub fn render(nodes: &[Node]) -> String {
    let mut text = String::new();
    write_nodes(&mut text, nodes, 0);
    text
}

fn write_nodes(text: &mut String, nodes: &[Node], depth: usize) {
    let indent = "\t".repeat(depth);
    for node in nodes {
        match node {
            Node::Fixed(line) | Node::Line(line) => {
                let _ = writeln!(text, "{indent}{line}");
            }
            Node::Block { parts, tail, .. } => {
                for (head, body) in parts {
                    let _ = writeln!(text, "{indent}{head}");
                    write_nodes(text, body, depth + 1);
                }
                let _ = writeln!(text, "{indent}{tail}");
            }
        }
    }
}

/// The smallest tree found for which `fails` still holds: removes statements, and replaces blocks by their contents, until
/// nothing more can be removed or `most` trees were tried.
pub fn shrink(nodes: &[Node], most: usize, mut fails: impl FnMut(&[Node]) -> bool) -> Vec<Node> {
    let mut best = nodes.to_vec();
    let mut tried = 0;
    loop {
        let before = best.clone();
        // Later statements first: they depend on earlier ones.
        let mut index = count(&best);
        while index > 0 {
            index -= 1;
            for unwrap in [false, true] {
                let mut smaller = best.clone();
                if !edit(&mut smaller, &mut { index }, unwrap) {
                    continue;
                }
                if tried == most {
                    return best;
                }
                tried += 1;
                if fails(&smaller) {
                    best = smaller;
                    break;
                }
            }
        }
        if best == before {
            return best;
        }
    }
}

fn count(nodes: &[Node]) -> usize {
    let inside = |node: &Node| match node {
        Node::Block { parts, .. } => parts.iter().map(|(_, body)| count(body)).sum(),
        Node::Fixed(_) | Node::Line(_) => 0,
    };
    nodes.iter().map(|node| 1 + inside(node)).sum()
}

/// Removes the statement of a number, in the order of the text, or only the text around its nested statements.
fn edit(nodes: &mut Vec<Node>, index: &mut usize, unwrap: bool) -> bool {
    for place in 0..nodes.len() {
        if *index == 0 {
            let body = match &mut nodes[place] {
                Node::Fixed(_) => return false,
                Node::Block { parts, unwraps: true, .. } if unwrap => {
                    parts.iter_mut().flat_map(|(_, body)| std::mem::take(body)).collect()
                }
                _ if unwrap => return false,
                _ => Vec::new(),
            };
            nodes.splice(place..=place, body);
            return true;
        }
        *index -= 1;
        if let Node::Block { parts, .. } = &mut nodes[place] {
            for (_, body) in parts {
                let inside = count(body);
                if *index < inside {
                    return edit(body, index, unwrap);
                }
                *index -= inside;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinks_to_what_matters() {
        let line = |text: &str| Node::Line(text.to_owned());
        let tree = [
            line("a"),
            Node::block("if (x) {", vec![line("b"), Node::block("if (y) {", vec![line("c"), line("d")])]),
            Node::scope("for (;;) {", vec![line("e"), line("kept")], "}"),
            Node::Fixed("end".to_owned()),
        ];
        let text = |wanted: [&'static str; 2]| {
            let small = shrink(&tree, 1000, |nodes| {
                let text = render(nodes);
                wanted.iter().all(|wanted| text.contains(wanted))
            });
            render(&small)
        };
        assert_eq!(text(["c", "end"]), "c\nend\n");
        assert_eq!(text(["kept", "a"]), "a\nfor (;;) {\n\tkept\n}\nend\n");
    }
}
