//! Cases with chains: on each engine with the whole chain, program by program as traces run, and with libxdp's dispatcher in
//! the kernel.

use std::path::Path;
use std::sync::Arc;

use paceline::chain::{Graph, Node};
use paceline::{Object, RedirectTarget, step};
use paceline_engine::{Chain, Engine as VmEngine, Host, LookAhead, OptLevel, Program};
use paceline_frame::{Burst, FrameMeta, Verdict};
use paceline_maps::Map;
use paceline_spec::InitialValue;
use paceline_verifier::{Options, Verified, verify};

use super::interface::{Engine, Unsupported};
use super::maps::{create_maps, map_contents, set_program};
use super::ours::load_native_chain;
use crate::case::{Case, CaseChain, Run};
use crate::dispatcher::{self, Component, fill_slots};
use crate::kernel::{self, KernelObject, LoadOptions, Packet};
use crate::outcome::{Finished, Outcome, Ran, Refusal, Return};

/// How a chain runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The whole chain on an interpreter, with counts of verdicts, which give the path.
    Whole(VmEngine),
    /// One function of native code, with counts or without: then verdicts that have the same successor are not computed.
    Native(OptLevel, bool),
    /// Program after program, as traces run.
    Steps,
    /// As libxdp's dispatcher, in the kernel.
    Dispatcher,
}

/// An engine for chains of cases, one way to run them.
#[derive(Clone, Copy, Debug)]
pub struct ChainEngine(Way);

impl ChainEngine {
    /// All engines of ours.
    pub fn all() -> impl Iterator<Item = Self> {
        let engines = [VmEngine::Plain, VmEngine::Threaded].map(Way::Whole);
        let native = [OptLevel::Full, OptLevel::None];
        let native =
            native.into_iter().flat_map(|level| [true, false].map(|counts| Way::Native(level, counts)));
        engines.into_iter().chain([Way::Steps]).chain(native).map(Self)
    }

    /// The kernel with libxdp's dispatcher.
    #[must_use]
    pub fn dispatcher() -> Self {
        Self(Way::Dispatcher)
    }
}

impl Engine for ChainEngine {
    fn name(&self) -> &str {
        match self.0 {
            Way::Whole(VmEngine::Plain) => "chain-plain",
            Way::Whole(_) => "chain-threaded",
            Way::Native(OptLevel::Full, true) => "chain-jit",
            Way::Native(OptLevel::Full, false) => "chain-jit-uncounted",
            Way::Native(OptLevel::None, true) => "chain-jit-o0",
            Way::Native(OptLevel::None, false) => "chain-jit-o0-uncounted",
            Way::Steps => "chain-steps",
            Way::Dispatcher => "chain-dispatcher",
        }
    }

    fn runs_chains(&self) -> bool {
        true
    }

    fn verifies(&self) -> bool {
        true
    }

    fn run(&self, case: &Case) -> Result<Outcome, Unsupported> {
        let Some(chain) = &case.chain else { return Err(Unsupported::NothingToRun) };
        if self.0 == Way::Dispatcher {
            return by_dispatcher(case, chain);
        }
        let unasked = |reason: &dyn std::fmt::Display| Ok(Outcome::Unasked(reason.to_string()));
        let (plan, nodes) = match chain.plan(&case.programs) {
            Ok(planned) => planned,
            Err(error) => return unasked(&error),
        };
        for (number, other) in (1..).zip(&case.also) {
            if chain.meaning(&case.programs) != other.meaning(&case.programs) {
                let reason = format!("description {number} below `also` is of another graph");
                return Ok(Outcome::Refused(reason.into()));
            }
        }
        let verified = match verify_all(case) {
            Ok(verified) => verified,
            Err(refusal) => return Ok(Outcome::Refused(refusal)),
        };
        let cpu = kernel::pin().cpu();
        let maps = match create_maps(&case.maps, cpu)? {
            Ok(maps) => maps,
            Err(reason) => return Ok(Outcome::Refused(reason.into())),
        };
        let engine = match self.0 {
            Way::Whole(engine) => engine,
            Way::Native(..) => VmEngine::Jit,
            Way::Steps | Way::Dispatcher => VmEngine::best(),
        };
        // Programs of the case that are no nodes may be those of a program array.
        let all = verified.iter().map(|verified| Program::load(verified, maps.clone(), engine));
        let all: Vec<Program> = match all.collect() {
            Ok(programs) => programs,
            Err(error) => return unasked(&error),
        };
        if let Err(reason) = install_initial(case, &maps, &all) {
            return Ok(Outcome::Refused(reason.into()));
        }
        let parts: Vec<_> = nodes.iter().map(|program| (&verified[*program], maps.clone())).collect();
        let programs = nodes.iter().map(|program| all[*program].clone()).collect();
        let chain = match self.0 {
            Way::Native(level, _) => {
                load_native_chain(&parts, plan.graph.clone(), LookAhead::default(), level)
            }
            _ => Chain::load(&parts, plan.graph.clone(), engine),
        };
        let chain = match chain {
            Ok(chain) => chain,
            Err(error) => return unasked(&error),
        };
        let names: Vec<_> = nodes.iter().map(|program| case.programs[*program].name.as_str()).collect();
        let mut loaded =
            Loaded { way: self.0, chain, programs, graph: plan.graph, names, maps, host: Host::new(cpu) };
        let runs = case.runs.iter().map(|run| loaded.run(run)).collect::<Result<_, _>>()?;
        let maps = loaded.maps.iter().map(|map| map_contents(map, cpu)).collect();
        Ok(Outcome::Ran(Ran { runs, maps }))
    }
}

/// Puts programs into the program arrays of a case.
fn install_initial(case: &Case, maps: &[Arc<Map>], programs: &[Program]) -> Result<(), String> {
    for (map, spec) in maps.iter().zip(&case.maps) {
        for (key, value) in &spec.contents {
            if let InitialValue::Program(name) = value {
                set_program(map, key, programs, name)?;
            }
        }
    }
    Ok(())
}

fn verify_all(case: &Case) -> Result<Vec<Verified>, Refusal> {
    let verify = |(program, spec)| {
        verify(spec, &case.maps, Some(&case.btf), &Options::default()).map_err(|refusal| Refusal {
            reason: refusal.to_string(),
            place: Some((program, refusal.slot)),
            in_our_words: true,
        })
    };
    case.programs.iter().enumerate().map(verify).collect()
}

struct Loaded<'a> {
    way: Way,
    chain: Chain,
    programs: Vec<Program>,
    graph: Graph,
    /// Names of the programs, by node.
    names: Vec<&'a str>,
    maps: Vec<Arc<Map>>,
    host: Host,
}

impl Loaded<'_> {
    /// Runs a packet. The inner error is the fault, or a path that differs from the case's.
    fn run(&mut self, run: &Run) -> Result<Result<Finished, String>, Unsupported> {
        let mut burst = Burst::new(1);
        burst.push(&run.data, FrameMeta::default()).map_err(|_| Unsupported::PacketLength(run.data.len()))?;
        burst.frame_mut(0).set_ingress(run.context.ingress_ifindex, 0);
        let mut path = Vec::new();
        let tells = !matches!(self.way, Way::Native(_, false));
        let ended = if !tells {
            self.chain.run_burst(&mut burst, &mut self.host).map_err(|fault| fault.to_string())
        } else if self.way == Way::Steps {
            let note = |step: paceline::Step, _: &_| path.push(self.names[step.node.index()].to_owned());
            let chain = (self.programs.as_slice(), &self.graph);
            step(chain, &mut burst.frame_mut(0), &mut self.host, |_, _| {}, note)
                .map_err(|fault| fault.to_string())
                .map(drop)
        } else {
            let mut counts = match self.chain.counts() {
                Ok(counts) => counts,
                Err(error) => return Ok(Err(error.to_string())),
            };
            let ran = self.chain.run_burst_counted(&mut burst, &mut self.host, &mut counts);
            // The number of runs of each program, without an order.
            for (node, name) in (0..).map(Node::new).zip(&self.names) {
                let verdicts = Verdict::ALL.into_iter().map(Some).chain([None]);
                let runs: u64 = verdicts.map(|verdict| counts.of(node, verdict)).sum();
                path.extend((0..runs).map(|_| (*name).to_owned()));
            }
            path.sort();
            ran.map_err(|fault| fault.to_string())
        };
        if let Err(error) = ended {
            return Ok(Err(error));
        }
        if let Some(mut expected) = run.expect.path.clone().filter(|_| tells) {
            if self.way != Way::Steps {
                expected.sort();
            }
            if path != expected {
                return Ok(Err(format!("went by {}, expected {}", path.join(" "), expected.join(" "))));
            }
        }
        let frame = burst.frame(0);
        let redirect = frame.redirect().map(|redirect| match redirect.target {
            RedirectTarget::Interface { ifindex } => format!("interface {ifindex}"),
            RedirectTarget::Map { key, .. } => format!("a map {key}"),
        });
        Ok(Ok(Finished {
            data: frame.packet().to_vec(),
            meta: frame.metadata().to_vec(),
            // `nowhere` if the final verdict is not redirect; cases can state it.
            redirect: Some(redirect.unwrap_or_else(|| "nowhere".to_owned())),
            ..Finished::new(Return::Low(frame.code()))
        }))
    }
}

/// The chain in libxdp's dispatcher.
fn by_dispatcher(case: &Case, chain: &CaseChain) -> Result<Outcome, Unsupported> {
    let CaseChain::Priority(members) = chain else {
        return Err(Unsupported::NoDispatcher("is not ordered by priority"));
    };
    if !Path::new(dispatcher::OBJECT).exists() {
        return Err(Unsupported::NoDispatcher("has no dispatcher: libxdp1 is not installed"));
    }
    if members.len() > dispatcher::SLOTS {
        return Err(Unsupported::NoDispatcher("has more programs than slots"));
    }
    let unasked = |reason: &dyn std::fmt::Display| Ok(Outcome::Unasked(reason.to_string()));
    let mut sorted: Vec<_> =
        members.iter().map(|(program, config)| (&case.programs[*program], *config)).collect();
    sorted.sort_by_key(|(spec, config)| (config.priority, spec.name.as_bytes(), spec.insns.len()));
    let component = sorted.iter().map(|(program, config)| Component {
        program,
        maps: &[],
        actions: config.actions,
        priority: config.priority,
    });
    if !case.maps.is_empty() {
        return Err(Unsupported::NoDispatcher("has maps that its programs share"));
    }
    let object = Object::open(dispatcher::OBJECT).map_err(|error| paceline::with_causes(&error));
    let object = object.and_then(|object| {
        fill_slots(&object, &component.collect::<Vec<_>>()).map_err(|error| paceline::with_causes(&error))
    });
    let object = match object {
        Ok(object) => object,
        Err(error) => return unasked(&error),
    };
    let main = object.program(dispatcher::PROGRAM);
    let options = LoadOptions { btf: object.btf(), ..LoadOptions::default() };
    let loaded = match KernelObject::load(object.maps(), main, options) {
        Ok(loaded) => loaded,
        Err(error) => return unasked(&error),
    };
    let mut runs = Vec::new();
    for run in &case.runs {
        if run.data.len() < 14 {
            return Err(Unsupported::PacketLength(run.data.len()));
        }
        let ran = loaded.programs.first().map(|program| program.test_run(&Packet::new(&run.data)));
        runs.push(match ran {
            Some(Ok(ran)) => {
                Ok(Finished { data: ran.data, meta: ran.meta, ..Finished::new(Return::Low(ran.retval)) })
            }
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the kernel has no program".to_owned()),
        });
    }
    Ok(Outcome::Ran(Ran { runs, maps: Vec::new() }))
}
