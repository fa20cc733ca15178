//! Programs of an object as a chain, on all ways to run one.

use paceline::chain::{Graph, Node};
use paceline::{Chain, LookAhead};
use paceline_frame::Verdict;
use paceline_verifier::Verified;

use super::observation::{Observation, Trial};
use super::ours::{Machine, collection, contents};
use crate::compare::{ChainWay, Stopped};
use crate::engine::load_native_chain;

/// A chain of programs of one object, which share its maps.
pub struct ChainTrial<'a> {
    /// The object, packets and seed; its program is ignored.
    pub trial: Trial<'a>,
    /// The programs by node.
    pub programs: Vec<&'a Verified>,
    /// The graph.
    pub graph: Graph,
}

/// The first difference between the ways to run a chain.
#[must_use]
pub fn chain_difference(chain: &ChainTrial<'_>) -> Option<String> {
    let ways = ChainWay::ALL.into_iter();
    let mut first: Option<(ChainWay, Observation, Option<Vec<u64>>)> = None;
    for way in ways.filter(|way| way.engine().is_available() && chain.trial.engines.contains(&way.engine())) {
        let (observation, counts) = match run(chain, way) {
            Ok(ran) => ran,
            Err(stopped) => return Some(format!("{way:?}: {stopped}")),
        };
        let Some((reference, expected, expected_counts)) = &first else {
            first = Some((way, observation, counts));
            continue;
        };
        let names = [&*format!("{reference:?}"), &*format!("{way:?}")];
        if let Some(text) = expected.difference(&observation, names, &chain.trial) {
            return Some(format!("{} and {}: {text}", names[0], names[1]));
        }
        if counts.is_some() && *expected_counts != counts {
            return Some(format!("counts of {} and {}: {expected_counts:?} {counts:?}", names[0], names[1]));
        }
    }
    None
}

fn run(chain: &ChainTrial<'_>, way: ChainWay) -> Result<(Observation, Option<Vec<u64>>), Stopped> {
    let refused = |error: &dyn std::error::Error| Stopped::Refused(paceline::with_causes(error));
    let (trial, engine) = (&chain.trial, way.engine());
    let collection = collection(trial.object, engine)?;
    let maps = || collection.maps().to_vec();
    let graph = chain.graph.clone();
    let built = match way {
        ChainWay::Called(_) => {
            let load = |verified: &&Verified| engine.load(verified, maps());
            let programs = chain.programs.iter().map(load).collect::<Result<Vec<_>, _>>();
            Chain::new(programs.map_err(|error| refused(&error))?, graph)
        }
        ChainWay::Fused(level, _) => {
            let parts: Vec<_> = chain.programs.iter().map(|verified| (*verified, maps())).collect();
            load_native_chain(&parts, graph, LookAhead::default(), level)
        }
    };
    let built = built.map_err(|error| refused(&error))?;
    let mut counts = built.counts().map_err(|error| refused(&error))?;
    let mut observation = Observation::default();
    Machine::new(trial).feed(trial, true, &mut observation.packets, |burst, host| {
        let run = if way.counts() {
            built.run_burst_counted(burst, host, &mut counts)
        } else {
            built.run_burst(burst, host)
        };
        run.map(|()| None).map_err(|fault| (fault.index, fault.fault.to_string()))
    })?;
    observation.maps = contents(collection.maps(), trial.cpu);
    let verdicts = || Verdict::ALL.map(Some).into_iter().chain([None]);
    let all =
        (0..counts.nodes()).map(Node::new).flat_map(|node| verdicts().map(move |verdict| (node, verdict)));
    let all = all.map(|(node, verdict)| counts.of(node, verdict)).chain([counts.overruns()]);
    Ok((observation, way.counts().then(|| all.collect())))
}
