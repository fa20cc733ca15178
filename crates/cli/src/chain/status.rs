//! Counts of return values of the programs of a chain.

use std::io::{self, Write};

use paceline::chain::{Next, Node};
use paceline::{ProgramStatus, Status, Verdict};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use super::show::{name, target};

/// Return values and how often each was returned: `None` for values that are no verdict.
fn returned(program: &ProgramStatus) -> impl Iterator<Item = (Option<Verdict>, u64)> {
    let verdicts = Verdict::ALL.into_iter().map(Some).zip(program.verdicts);
    verdicts.chain([(None, program.others)]).filter(|(_, count)| *count > 0)
}

fn by_node(status: &Status) -> impl Iterator<Item = (Node, &ProgramStatus)> {
    status.layout.graph.iter().map(|(node, _)| node).zip(&status.programs)
}

fn next(status: &Status, node: Node, verdict: Option<Verdict>) -> Next {
    status.layout.graph.after(node, verdict.map_or(u32::MAX, |verdict| verdict as u32))
}

pub(crate) fn write_text(out: &mut dyn Write, status: &Status) -> io::Result<()> {
    for (node, program) in by_node(status) {
        let runs = program.runs();
        writeln!(out, "  {}: {runs} run{}", name(&status.layout, node), if runs == 1 { "" } else { "s" })?;
        for (verdict, count) in returned(program) {
            let percent = count as f64 * 100.0 / runs.max(1) as f64;
            let what = verdict.map_or("no verdict", Verdict::name);
            let target = target(&status.layout, next(status, node, verdict));
            writeln!(out, "    {what:<10} {count:>12} {percent:>6.1}% -> {target}")?;
        }
    }
    match status.overruns {
        0 => Ok(()),
        packets => {
            let most = paceline::chain::MAX_RUNS;
            writeln!(out, "  aborted because more than {most} programs would have run: {packets}")
        }
    }
}

/// As `--json` has it.
pub(crate) struct StatusAsJson<'a>(pub(crate) &'a Status);

impl Serialize for StatusAsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let status = self.0;
        let programs: Vec<Json> = by_node(status).map(|(node, program)| of(status, node, program)).collect();
        json!({ "programs": programs, "overruns": status.overruns }).serialize(serializer)
    }
}

fn of(status: &Status, node: Node, program: &ProgramStatus) -> Json {
    let verdicts: Map<String, Json> = Verdict::ALL
        .iter()
        .zip(program.verdicts)
        .map(|(verdict, n)| (verdict.name().to_owned(), n.into()))
        .collect();
    let edges: Vec<Json> = returned(program)
        .map(|(verdict, packets)| {
            let after = verdict.map(Verdict::name);
            match next(status, node, verdict) {
                Next::Program(to) => {
                    json!({ "after": after, "program": status.layout.names.get(to.index()), "packets": packets })
                }
                Next::End(end) => json!({ "after": after, "end": end.name(), "packets": packets }),
            }
        })
        .collect();
    json!({
        "name": status.layout.names.get(node.index()),
        "runs": program.runs(),
        "verdicts": verdicts,
        "unknown_verdicts": program.others,
        "edges": edges,
    })
}
