//! Chains as text and JSON.

use std::io::{self, Write};

use paceline::chain::{Actions, Edges, Lead, MAX_RUNS, Next, Node, Place, Placement, Reason, Tie, Warning};
use paceline::{Layout, Verdict};
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::loaded::Loaded;
use crate::common::console;

/// The name of a node, fit for a terminal.
pub(super) fn name(layout: &Layout, node: Node) -> String {
    layout.names.get(node.index()).map(|name| console::shown(name)).unwrap_or_default()
}

/// Edges by verdict; the wildcard is `*`.
fn edges(edges: &Edges) -> impl Iterator<Item = (&'static str, Next)> {
    let own = Verdict::ALL.into_iter().map(|verdict| (verdict.name(), edges.own(verdict)));
    own.chain([("*", edges.wildcard())]).filter_map(|(after, next)| Some((after, next?)))
}

/// The place that an edge leads to, fit for a terminal.
pub(crate) fn target(layout: &Layout, next: Next) -> String {
    match next {
        Next::Program(node) => name(layout, node),
        Next::End(verdict) => format!("end with {verdict}"),
    }
}

/// Each program with its successors.
pub(crate) fn write_text(out: &mut dyn Write, layout: &Layout) -> io::Result<()> {
    for (node, of) in layout.graph.iter() {
        writeln!(out, "{}", name(layout, node))?;
        for (after, next) in edges(of) {
            writeln!(out, "  {after:<8} -> {}", target(layout, next))?;
        }
    }
    write_warnings(out, layout)
}

/// Each program, and why it is where it is.
pub(crate) fn write_reasons(out: &mut dyn Write, layout: &Layout) -> io::Result<()> {
    for ((node, _), reason) in layout.graph.iter().zip(&layout.reasons) {
        writeln!(out, "{}. {}: {}", node.index() + 1, name(layout, node), reason_text(layout, node, reason))?;
    }
    write_warnings(out, layout)
}

/// Warnings about a chain.
pub(crate) fn write_warnings(out: &mut dyn Write, layout: &Layout) -> io::Result<()> {
    layout.warnings.iter().try_for_each(|warning| writeln!(out, "warning: {}", warning_text(layout, warning)))
}

fn reason_text(layout: &Layout, node: Node, reason: &Reason) -> String {
    let actions = layout.configs.get(node.index()).map(|config| config.actions).unwrap_or_default();
    let goes_on = |actions: Actions| match actions.is_empty() {
        true => "never goes on".to_owned(),
        false => format!("goes on after {actions}"),
    };
    match reason {
        Reason::Placed => format!("placed there; {}", goes_on(actions)),
        Reason::PlacedBy(placement) => format!("{}; {}", placement_text(placement), goes_on(actions)),
        Reason::Entry => "packets enter there".to_owned(),
        Reason::Unreached => "nothing leads to it".to_owned(),
        Reason::Led(leads) => leads.iter().map(|lead| lead_text(layout, lead)).collect::<Vec<_>>().join(", "),
        Reason::Priority { priority, tie } => {
            let before = node.index().checked_sub(1).map(|before| name(layout, Node::new(before)));
            let before = before.unwrap_or_default();
            let tie = tie.map(|tie| format!(", behind {before} {}", tie_text(tie))).unwrap_or_default();
            format!("run priority {priority}{tie}; {}", goes_on(actions))
        }
    }
}

fn placement_text(placement: &Placement<String>) -> String {
    match placement {
        Placement::At(Place::First) => "placed first".to_owned(),
        Placement::At(Place::Last) => "placed last".to_owned(),
        Placement::At(Place::Before(other)) => format!("placed before {}", console::shown(other)),
        Placement::At(Place::After(other)) => format!("placed after {}", console::shown(other)),
        Placement::Replacing(other) => format!("in the place of {}", console::shown(other)),
    }
}

fn tie_text(tie: Tie) -> &'static str {
    match tie {
        Tie::Name => "by the name of its function",
        Tie::Attached => "because that was in the chain before",
        Tie::Size => "because that is shorter",
        Tie::Time => "because that came first",
        Tie::Given => "as given",
    }
}

fn lead_text(layout: &Layout, lead: &Lead) -> String {
    format!("after {} of {}", lead.after.map_or("*", Verdict::name), name(layout, lead.from))
}

fn warning_text(layout: &Layout, warning: &Warning) -> String {
    match warning {
        Warning::LastPasses { node, verdict } => format!(
            "{verdict} of {} becomes pass: it is one of its chain call actions, and the last program's pass, as with libxdp",
            name(layout, *node)
        ),
        Warning::Endless { node } => format!(
            "nothing leads to an end from {} on: its packets are aborted after {MAX_RUNS} programs",
            name(layout, *node)
        ),
        Warning::Unreached { node } => format!("no packet can come to {}", name(layout, *node)),
    }
}

/// A layout, as `--json` has it.
pub(crate) struct LayoutAsJson<'a>(pub(crate) &'a Layout);

impl Serialize for LayoutAsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl LayoutAsJson<'_> {
    pub(crate) fn to_json(&self) -> Json {
        let layout = self.0;
        let programs: Vec<Json> = layout.graph.iter().map(|(node, of)| program(layout, node, of)).collect();
        let warnings = layout.warnings.iter().map(|warning| warning_text(layout, warning));
        let warnings: Vec<_> = warnings.collect();
        json!({ "revision": layout.revision, "programs": programs, "warnings": warnings })
    }
}

fn program(layout: &Layout, node: Node, of: &Edges) -> Json {
    let name_of = |node: Node| layout.names.get(node.index()).cloned().unwrap_or_default();
    let config = layout.configs.get(node.index()).copied().unwrap_or_default();
    let actions: Vec<_> = config.actions.iter().map(Verdict::name).collect();
    let edge = |(after, next)| {
        let after = if after == "*" { "wildcard" } else { after };
        match next {
            Next::Program(to) => json!({ "after": after, "program": name_of(to) }),
            Next::End(verdict) => json!({ "after": after, "end": verdict.name() }),
        }
    };
    let edges: Vec<Json> = edges(of).map(edge).collect();
    let reason = layout.reasons.get(node.index()).map(|reason| reason_text(layout, node, reason));
    json!({
        "name": name_of(node), "priority": config.priority, "actions": actions, "edges": edges, "reason": reason,
    })
}

/// A layout and the object of each program, as one JSON object.
pub(crate) fn to_json(loaded: &Loaded, layout: &Layout) -> Json {
    let mut json = LayoutAsJson(layout).to_json();
    if let Some(programs) = json.get_mut("programs").and_then(Json::as_array_mut) {
        for program in programs {
            let part = loaded.origins.iter().find(|(name, _)| program["name"] == name.as_str());
            let part = part.and_then(|(_, part)| loaded.parts.get(*part));
            program["object"] = part.map(|part| part.name.clone()).into();
        }
    }
    json
}
