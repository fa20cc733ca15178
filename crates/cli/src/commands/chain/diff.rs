//! `paceline chain diff`: the changes when one chain file replaces another.

use std::process::ExitCode;

use paceline::chain::{Next, Node};
use paceline::{Change, Layout, Verdict};
use serde_json::{Value as Json, json};

use super::args::DiffArgs;
use crate::chain::{ChainError, LayoutAsJson, LoadHow, Part, file, target, write_warnings};
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::report;

/// Tries the change on a chain of its own: nothing is left out but the traffic.
pub(crate) fn diff(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let how = LoadHow::of(&args.how);
    let old = file::load(&args.old, &how)?;
    let new = file::make(&args.new, &how, Some(&old.parts))?;
    let before = old.live.layout();
    let name = args.new.display().to_string();
    let change = Change::All { members: new.members, order: new.order };
    let after = old.live.preview(Some(before.revision), vec![change]);
    let after = after.map_err(|source| ChainError::Change { name, source })?;
    let added: Vec<_> = after.names.iter().filter(|name| !before.names.contains(name)).collect();
    let removed: Vec<_> = before.names.iter().filter(|name| !after.names.contains(name)).collect();
    let changed = changed(&before, &after);
    let maps_of = |part: &Part| {
        let specs = part.collection.object().maps().iter();
        specs.map(|spec| (part.name.clone(), spec.name.clone())).collect::<Vec<_>>()
    };
    let all = new.parts.iter().flat_map(maps_of);
    let (kept, made): (Vec<_>, Vec<_>) = all.partition(|map| new.kept.contains(map));
    if args.json {
        let map = |(object, map): &(String, String)| json!({ "object": object, "map": map });
        let edges = |(name, after, old, new): &Edge| json!({ "program": name, "after": after, "old": old, "new": new });
        let json = json!({
            "added": added, "removed": removed,
            "edges": changed.iter().map(edges).collect::<Vec<Json>>(),
            "maps_kept": kept.iter().map(map).collect::<Vec<Json>>(),
            "maps_new": made.iter().map(map).collect::<Vec<Json>>(),
            "chain": LayoutAsJson(&after).to_json(),
        });
        return report::print(|out| writeln!(out, "{json}"));
    }
    report::print(|out| {
        added.iter().try_for_each(|name| writeln!(out, "added    {}", console::shown(name)))?;
        removed.iter().try_for_each(|name| writeln!(out, "removed  {}", console::shown(name)))?;
        for (name, verdict, old, new) in &changed {
            writeln!(out, "edge     {} after {verdict}: {old} -> {new}", console::shown(name))?;
        }
        for (what, maps) in [("map kept", &kept), ("map new", &made)] {
            maps.iter().try_for_each(|(object, map)| {
                writeln!(out, "{what:<8} {}: {}", console::shown(object), console::shown(map))
            })?;
        }
        write_warnings(out, &after)
    })
}

/// A program, a verdict, and its old and new successor.
type Edge = (String, &'static str, String, String);

/// Edges that would change, of the programs that are in both chains.
fn changed(before: &Layout, after: &Layout) -> Vec<Edge> {
    let mut edges = Vec::new();
    let (old, new) = (before.graph.meaning(), after.graph.meaning());
    for (name, meaning) in before.names.iter().zip(old) {
        let Some(now) = after.names.iter().position(|other| other == name).and_then(|node| new.get(node))
        else {
            continue;
        };
        let labels = Verdict::ALL.map(Verdict::name).into_iter().chain(["no verdict"]);
        for ((label, was), is) in labels.zip(meaning).zip(now) {
            let (was, is): (String, String) = (target(before, was), target(after, *is));
            if was != is {
                edges.push((name.clone(), label, was, is));
            }
        }
    }
    let entry = |layout: &Layout| target(layout, Next::Program(Node::ENTRY));
    if entry(before) != entry(after) {
        edges.insert(0, ("packets".to_owned(), "entry", entry(before), entry(after)));
    }
    edges
}
