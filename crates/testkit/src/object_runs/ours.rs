//! A trial on an engine.

use std::sync::Arc;

use paceline::{
    Burst, Collection, FrameMeta, FrameRef, Host, Limits, LoadOptions, MAX_BURST, Map, Object, Program,
};
use paceline_verifier::Verified;

use super::observation::{Observation, Trial};
use crate::AnyEngine;
use crate::compare::{Input, Left, Stopped, records, redirect_of};
use crate::engine::map_contents;
use crate::kernel;

/// Ingress interface, as in the kernel's test runs.
const LOOPBACK: u32 = 1;

/// Runs an accepted program on an engine, each packet alone or all of them in bursts of random lengths.
///
/// # Errors
/// [`Stopped::Refused`] if the engine refuses the program or a map cannot be created, [`Stopped::Run`] for a fault.
pub fn on_engine(
    trial: &Trial<'_>,
    verified: &Verified,
    engine: AnyEngine,
    bursts: bool,
) -> Result<Observation, Stopped> {
    run(trial, verified, engine, bursts).map(|(observation, _)| observation)
}

/// The memory that a run occupies.
type Taken = (Collection, Machine);

fn run(
    trial: &Trial<'_>,
    verified: &Verified,
    engine: AnyEngine,
    bursts: bool,
) -> Result<(Observation, Taken), Stopped> {
    let collection = collection(trial.object, engine)?;
    let program = load(&collection, verified, engine)?;
    let mut machine = Machine::new(trial);
    let mut observation = Observation::default();
    machine.feed(trial, bursts, &mut observation.packets, |burst, host| {
        if bursts {
            let run = program.run_burst(burst, host);
            return run.map(|()| None).map_err(|fault| (fault.index, fault.fault.to_string()));
        }
        let run = program.run_raw(&mut burst.frame_mut(0), host);
        run.map(Some).map_err(|fault| (0, fault.to_string()))
    })?;
    observation.maps = contents(collection.maps(), trial.cpu);
    Ok((observation, (collection, machine)))
}

/// Whether the result does not depend on the addresses of maps and packets: the program makes no number of an address, reads
/// no uninitialized stack, and a second run by the first engine has the same result as the first.
#[must_use]
pub fn is_pure(trial: &Trial<'_>, verified: &Verified) -> bool {
    let reads_unwritten = verified.functions().iter().any(|function| function.zeroed != 0);
    if reads_unwritten || verified.facts().iter().any(|fact| fact.leaks) {
        return false;
    }
    let Some(&engine) = trial.engines.first() else { return true };
    // The memory of the first run stays allocated, so that the second one has other addresses.
    let one = run(trial, verified, engine, false);
    let other = run(trial, verified, engine, false);
    let observed = |run: &Result<(Observation, Taken), Stopped>| match run {
        Ok((observation, _)) => Ok(observation.clone()),
        Err(stopped) => Err(stopped.clone()),
    };
    observed(&one) == observed(&other)
}

/// The object's maps for one run.
pub(super) fn collection(object: &Object, engine: AnyEngine) -> Result<Collection, Stopped> {
    let limits = Limits { cpus: kernel::possible_cpus(), ..LoadOptions::default().limits };
    engine.collection(object, LoadOptions::default().limits(limits)).map_err(Stopped::Refused)
}

fn load(collection: &Collection, verified: &Verified, engine: AnyEngine) -> Result<Program, Stopped> {
    // The collection loads the programs of program arrays with the program that it verifies. A program without its maps has
    // other map indices.
    if verified.has_tail_calls() || !collection.missing().is_empty() {
        return engine.program(collection, &verified.program().name).map_err(Stopped::Refused);
    }
    let program = engine.load(verified, collection.maps().to_vec());
    program.map_err(|error| Stopped::Refused(paceline::with_causes(&error)))
}

/// Contents of all maps.
pub(super) fn contents(maps: &[Arc<Map>], cpu: usize) -> Vec<Option<crate::Contents>> {
    maps.iter().map(|map| records(map).or_else(|| map_contents(map, cpu))).collect()
}

/// A host, and the burst for the packets.
pub(super) struct Machine {
    burst: Burst,
    host: Host,
}

impl Machine {
    pub(super) fn new(trial: &Trial<'_>) -> Self {
        let mut host = Host::new(trial.cpu);
        host.seed(trial.seed);
        host.set_trace(std::io::sink());
        if let Some(network) = trial.network {
            host.set_network(Arc::clone(network));
        }
        Self { burst: Burst::default(), host }
    }

    /// Passes all packets to `run`, in bursts of random lengths or one by one, and collects the results. `run` returns all
    /// of `r0`, or the packet that stopped it and the reason.
    pub(super) fn feed(
        &mut self,
        trial: &Trial<'_>,
        bursts: bool,
        left: &mut Vec<Left>,
        mut run: impl FnMut(&mut Burst, &mut Host) -> Result<Option<u64>, (usize, String)>,
    ) -> Result<(), Stopped> {
        let mut lengths = fastrand::Rng::with_seed(trial.seed);
        let mut inputs = trial.inputs;
        while !inputs.is_empty() {
            let len = if bursts { lengths.usize(1..=MAX_BURST).min(inputs.len()) } else { 1 };
            let (these, later) = inputs.split_at(len);
            inputs = later;
            let first = left.len();
            let stopped = |(index, reason)| Stopped::Run { run: first + index, reason };
            self.fill(these).map_err(stopped)?;
            let r0 = run(&mut self.burst, &mut self.host).map_err(stopped)?;
            left.extend(self.burst.iter().map(|frame| observed(&frame, r0)));
        }
        Ok(())
    }

    fn fill(&mut self, inputs: &[Input]) -> Result<(), (usize, String)> {
        self.burst.clear();
        for (index, input) in inputs.iter().enumerate() {
            let failed = |error: &dyn std::fmt::Display| (index, error.to_string());
            self.burst.push(&input.data, FrameMeta::default()).map_err(|error| failed(&error))?;
            let mut frame = self.burst.frame_mut(index);
            frame.set_ingress(LOOPBACK, 0);
            frame.set_metadata(&input.meta).map_err(|error| failed(&error))?;
        }
        Ok(())
    }
}

fn observed(frame: &FrameRef<'_>, r0: Option<u64>) -> Left {
    Left {
        code: frame.code(),
        r0,
        data: frame.packet().to_vec(),
        meta: frame.metadata().to_vec(),
        redirect: Some(redirect_of(frame.redirect())),
    }
}
