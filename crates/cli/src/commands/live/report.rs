//! The counts of a live run.

use std::io::{self, Write};
use std::time::Duration;

use paceline::chain::Next;
use paceline::{FollowCounts, Pipeline, PipelineCounts, PortCounts, Verdict};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use crate::common::report::Report;
use crate::control::counts::{self, PORT, WORKER, members};
use crate::control::write_counts;
use crate::ports::PortSpec;

/// Names of the ports of a run, and the numbers that they have in a pipeline. Ports that are opened again may have other numbers.
pub(super) struct PortNames {
    /// As the command line has them; that of `--pass` is last.
    names: Vec<String>,
    has_pass: bool,
    rounds: Vec<PortNumbers>,
}

/// Numbers of the ports from one opening to the next.
struct PortNumbers {
    /// Number of the pipeline's port counts before.
    before: usize,
    /// By port, in the order of the names.
    numbers: Vec<u32>,
}

impl PortNames {
    pub(super) fn new(specs: &[&PortSpec], has_pass: bool) -> Self {
        let names = specs.iter().map(|spec| spec.text.clone()).collect();
        Self { names, has_pass, rounds: Vec::new() }
    }

    /// The ports were opened, with these numbers.
    pub(super) fn begin_round(&mut self, pipeline: &Pipeline, mut numbers: Vec<u32>) {
        if let (true, Some(pass)) = (self.has_pass, numbers.last_mut()) {
            // The port of passed packets is attached as number 0.
            *pass = 0;
        }
        self.rounds.push(PortNumbers { before: pipeline.ports().len(), numbers });
    }

    /// Interface numbers that the ports have now, and their names; without the port of passed packets.
    pub(super) fn numbers(&self) -> Vec<(u32, String)> {
        let numbers = self.rounds.last().map_or(&[][..], |round| &round.numbers);
        let ports = numbers.iter().copied().zip(self.names.iter().cloned());
        ports.take(self.names.len() - usize::from(self.has_pass)).collect()
    }

    /// Name of the port that has a number now.
    pub(super) fn of(&self, number: u32) -> &str {
        let numbers = self.rounds.last().map_or(&[][..], |round| &round.numbers);
        let index = numbers.iter().position(|other| *other == number);
        index.and_then(|index| self.names.get(index)).map_or("the port of --pass", String::as_str)
    }

    /// Sums by port: queues, workers and rounds are added up.
    fn sums(&self, pipeline: &Pipeline) -> Vec<(&str, PortCounts)> {
        let all = pipeline.ports();
        let mut sums: Vec<_> = self.names.iter().map(|name| (name.as_str(), PortCounts::default())).collect();
        let ends = self.rounds.iter().skip(1).map(|next| next.before).chain([all.len()]);
        for (round, end) in self.rounds.iter().zip(ends) {
            for counts in all.get(round.before..end).unwrap_or_default() {
                let index = round.numbers.iter().position(|number| *number == counts.number);
                if let Some((_, sum)) = index.and_then(|index| sums.get_mut(index)) {
                    *sum = *sum + *counts;
                }
            }
        }
        sums
    }
}

/// Counts of a pipeline and its ports, with the names of these.
pub(super) struct Counts<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) ports: &'a PortNames,
    pub(super) time: Duration,
    /// The failure that ended the run.
    pub(super) error: Option<String>,
}

impl Counts<'_> {
    /// As `--json` and the control socket have it.
    pub(super) fn to_json(&self) -> Json {
        let counts = self.pipeline.counts();
        let verdicts: Map<String, Json> = Verdict::ALL
            .iter()
            .map(|verdict| (verdict.name().to_owned(), counts.of(*verdict).into()))
            .collect();
        let sums = self.ports.sums(self.pipeline);
        let ports: Vec<Json> = sums.into_iter().map(|(name, port)| port_json(name, port)).collect();
        let mut workers = self.pipeline.workers();
        workers.sort_by_key(|(number, _)| *number);
        let mut object = Map::new();
        let mut set = |name: &str, value: Json| drop(object.insert(name.to_owned(), value));
        set("packets", counts.packets().into());
        set("seconds", self.time.as_secs_f64().into());
        set("verdicts", verdicts.into());
        members(counts::run(), &counts).into_iter().for_each(|(name, count)| set(&name, count));
        set("followed", followed(&self.pipeline.followed()));
        set("ports", ports.into());
        set("workers", workers.into_iter().map(worker_json).collect());
        if let Some(error) = &self.error {
            set("error", error.as_str().into());
        }
        object.into()
    }
}

/// Packets of the sample by the place where they were aborted, and by the ways that they took from program to program.
fn followed(counts: &FollowCounts) -> Json {
    let (mut aborted, mut edges) = (json!({}), json!({}));
    for (place, packets) in &counts.aborted {
        aborted[&*place.program][&place.branch] = (*packets).into();
    }
    for (edge, packets) in &counts.edges {
        let from = &mut edges[&*edge.from];
        match &edge.to {
            Next::Program(to) => from["programs"][&**to] = (*packets).into(),
            Next::End(verdict) => from["verdicts"][verdict.name()] = (*packets).into(),
        }
    }
    json!({ "packets": counts.packets, "aborted": aborted, "edges": edges })
}

fn worker_json((number, counts): (usize, PipelineCounts)) -> Json {
    labeled("number", number.into(), members(&WORKER, &counts))
}

fn port_json(name: &str, counts: PortCounts) -> Json {
    labeled("name", name.into(), members(&PORT, &counts))
}

fn labeled(label: &str, value: Json, counts: Map<String, Json>) -> Json {
    [(label.to_owned(), value)].into_iter().chain(counts).collect::<Map<_, _>>().into()
}

impl Report for Counts<'_> {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        write_counts(out, &self.to_json())
    }
}

impl Serialize for Counts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}
