//! Drawings of graphs.

mod dot;
mod svg;

use paceline_frame::Verdict;

use crate::{Edges, Graph, Next, Node};

pub use dot::dot;
pub use svg::svg;

/// A graph with its labels.
#[derive(Clone, Copy, Debug)]
pub struct Drawing<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The name of each node.
    pub names: &'a [String],
}

impl Drawing<'_> {
    fn name(&self, node: Node) -> &str {
        self.names.get(node.index()).map_or("", String::as_str)
    }
}

/// An arrow: all edges from a node to the same target, with a label.
struct Arrow {
    from: Node,
    to: Next,
    label: String,
}

/// The arrows of a graph, by node. For chains that end with the program's own verdict, one arrow per verdict.
fn arrows(graph: &Graph) -> Vec<Arrow> {
    graph.iter().flat_map(|(node, edges)| arrows_from(node, edges)).collect()
}

fn arrows_from(from: Node, edges: &Edges) -> Vec<Arrow> {
    let mut arrows: Vec<Arrow> = Vec::new();
    let own = Verdict::ALL.into_iter().map(|verdict| (edges.own(verdict), verdict.name()));
    for (to, label) in own.chain([(edges.wildcard(), "*")]) {
        let Some(to) = to else { continue };
        match arrows.iter_mut().find(|arrow| arrow.to == to) {
            Some(arrow) => {
                arrow.label.push_str(", ");
                arrow.label.push_str(label);
            }
            None => arrows.push(Arrow { from, to, label: label.to_owned() }),
        }
    }
    arrows
}
