//! A graph with its labels, and its arrows.

use paceline_frame::Verdict;
use paceline_spec::graph::{Edges, Graph, Next, Node};

/// A graph with its labels.
#[derive(Clone, Copy, Debug)]
pub struct Drawing<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The name of each node.
    pub names: &'a [String],
    /// The packets that took each edge, if they are to be shown; ends with the program's own verdict are then arrows as well.
    pub packets: Option<&'a [EdgePackets]>,
}

/// Packets of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgePackets {
    /// The program that they left.
    pub from: Node,
    /// Next program or end.
    pub to: Next,
    /// Their number.
    pub packets: u64,
}

impl Drawing<'_> {
    pub(super) fn name(&self, node: Node) -> &str {
        self.names.get(node.index()).map_or("", String::as_str)
    }
}

/// An arrow: all edges from a node to the same target, with a label.
pub(super) struct Arrow {
    pub(super) from: Node,
    pub(super) to: Next,
    pub(super) label: String,
}

/// The arrows of a graph, by node. For chains that end with the program's own verdict, one arrow per verdict.
pub(super) fn arrows(drawing: &Drawing<'_>) -> Vec<Arrow> {
    let mut arrows: Vec<_> =
        drawing.graph.iter().flat_map(|(node, edges)| arrows_from(node, edges)).collect();
    let Some(packets) = drawing.packets else { return arrows };
    for arrow in &mut arrows {
        let of_arrow = packets.iter().filter(|edge| (edge.from, edge.to) == (arrow.from, arrow.to));
        let count: u64 = of_arrow.map(|edge| edge.packets).sum();
        arrow.label.push_str(&format!(": {count}"));
    }
    for EdgePackets { from, to, packets } in packets {
        let is_drawn = arrows.iter().any(|arrow| (arrow.from, arrow.to) == (*from, *to));
        if let (false, Next::End(verdict)) = (is_drawn, to) {
            arrows.push(Arrow { from: *from, to: *to, label: format!("{}: {packets}", verdict.name()) });
        }
    }
    arrows
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
