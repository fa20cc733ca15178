//! Programs as commands take them: one, or a chain, loaded with their maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use paceline::chain::{EdgePackets, Graph, Next, Node};
use paceline::contents::MapContents;
use paceline::explain::{ChainExplainer, Explainer};
use paceline::isa::RawInsn;
use paceline::measure::Runner;
use paceline::{
    Burst, BurstFault, ChainWorker, Collection, Engine, Host, LiveChain, LoadOptions, Map, Meaning, Object,
    Program, ProgramKind, ProgramSpec, RanAs, Verdict,
};

use crate::chain::{self, ChainError, LoadHow, SourceArgs};
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::files::Taken;
use crate::common::suggest::closest;
use crate::object::{NamedObject, NamedProgramError, ObjectError, load, load_options, program_of};

/// `exit`
const EXIT: RawInsn = RawInsn { opcode: 0x95, dst: 0, src: 0, offset: 0, imm: 0 };

/// A program and its name in the chain.
pub(crate) struct SubjectProgram {
    pub(crate) name: String,
    pub(crate) program: Program,
    /// Index of its collection.
    pub(crate) part: usize,
}

/// A chain of one program or more.
pub(crate) struct Subject {
    /// For messages.
    pub(crate) name: String,
    /// By node.
    pub(crate) programs: Vec<SubjectProgram>,
    pub(crate) graph: Graph,
    /// The objects, by their names in messages.
    pub(crate) parts: Vec<(String, Collection)>,
    /// Whether it was given as a chain, so that programs are told by their names.
    pub(crate) is_chain: bool,
    /// The files that it was loaded from, which no output may replace.
    pub(crate) taken: Vec<Taken>,
    runner: Running,
    /// Where the counts of a chain are.
    live: Option<LiveChain>,
}

enum Running {
    Program(Program),
    Chain(ChainWorker),
}

impl Subject {
    /// Loads what the command line names, or the built-in firewall.
    pub(crate) fn load(source: &SourceArgs, how: &LoadHow) -> Result<Self, Failure> {
        Self::load_with(source, how, Vec::new())
    }

    /// Loads what the command line names, with contents of maps that come before those of `--map`.
    pub(crate) fn load_with(
        source: &SourceArgs,
        how: &LoadHow,
        given: Vec<MapContents>,
    ) -> Result<Self, Failure> {
        match source.targets.as_slice() {
            [] | [_] if source.chain_file().is_none() && source.calls.is_none() => {
                Self::of_one(source, how, given)
            }
            _ => {
                let subject = Self::of_chain(source, how)?;
                subject.fill(&given, how.unverified)?;
                Ok(subject)
            }
        }
    }

    /// Sets elements of maps of a chain, by their names.
    fn fill(&self, given: &[MapContents], unverified: bool) -> Result<(), Failure> {
        for file in given {
            let has_map = |(_, part): &&(String, Collection)| part.map(file.map()).is_some();
            let Some((_, part)) = self.parts.iter().find(has_map) else {
                let names = self.maps().map(|map| map.spec().name.as_str());
                let hint = closest(file.map(), names);
                return Err(ObjectError::NoMap { option: "maps", map: file.map().to_owned(), hint }.into());
            };
            part.set_elements([file], !unverified)?;
        }
        Ok(())
    }

    fn of_one(source: &SourceArgs, how: &LoadHow, given: Vec<MapContents>) -> Result<Self, Failure> {
        let named = match source.targets.first() {
            Some(target) => NamedObject::open(target, &how.opener)?,
            None => {
                console::note("no object is named: this is the built-in firewall (examples/firewall.o)");
                NamedObject::built_in(&how.opener)?
            }
        };
        named.programs()?;
        let NamedObject { name, object, program: wanted, file } = named;
        let taken = file.into_iter().chain(how.opener.args.identities()).collect();
        let options = load_options(how.engine, &source.object, how.cpus);
        let collection = load(&how.opener, &name, object, given, &options, how.unverified)?;
        let program = program_of(&collection, wanted.as_deref(), how.unverified)
            .map_err(|error| NamedProgramError::new(&name, collection.object(), error))?;
        Ok(Self { taken, ..Self::of_program(name, collection, program) })
    }

    /// A program of a type that returns at once.
    pub(crate) fn empty(kind: ProgramKind, engine: Engine) -> Result<Self, Failure> {
        // r0 = XDP_PASS, or 0; exit
        let pass = if matches!(kind, ProgramKind::Xdp { .. }) { 2 } else { 0 };
        let (set, exit) = (RawInsn { opcode: 0xb7, imm: pass, ..EXIT }, EXIT);
        let name = "empty".to_owned();
        let object = Object::of_program(ProgramSpec::new(&name, kind, vec![set, exit]));
        let collection = object
            .load(&LoadOptions::default().engine(engine))
            .map_err(|source| ObjectError::setup(&name, source))?;
        let program = program_of(&collection, None, false)
            .map_err(|error| NamedProgramError::new(&name, collection.object(), error))?;
        Ok(Self::of_program(name, collection, program))
    }

    /// A program of a collection, without files.
    pub(crate) fn of_program(name: String, collection: Collection, program: Program) -> Self {
        let runner = Running::Program(program.clone());
        let of_node = SubjectProgram { name: program.spec().name.clone(), program, part: 0 };
        let (programs, parts) = (vec![of_node], vec![(name.clone(), collection)]);
        let (graph, taken) = (Graph::one(), Vec::new());
        Self { name, programs, graph, parts, is_chain: false, taken, runner, live: None }
    }

    fn of_chain(source: &SourceArgs, how: &LoadHow) -> Result<Self, Failure> {
        let loaded = chain::load(source, how)?;
        let (programs, graph) = loaded.programs();
        let programs =
            programs.into_iter().map(|(name, program, part)| SubjectProgram { name, program, part });
        let (programs, worker) = (programs.collect(), loaded.live.worker());
        let parts = loaded.parts.into_iter().map(|part| (part.name, part.collection)).collect();
        let runner = Running::Chain(worker);
        let live = Some(loaded.live);
        Ok(Self {
            name: loaded.name,
            programs,
            graph,
            parts,
            is_chain: true,
            taken: loaded.taken,
            runner,
            live,
        })
    }

    /// The same, with counts of what each program of a chain returns.
    pub(crate) fn counted(mut self) -> Result<Self, ChainError> {
        if let Some(live) = &self.live {
            let worker = live.worker().counted();
            let failed = |source| ChainError::Change { name: self.name.clone(), source };
            self.runner = Running::Chain(worker.map_err(failed)?);
        }
        Ok(self)
    }

    /// The packets that took each edge of a chain that is counted.
    pub(crate) fn edges(&mut self) -> Vec<EdgePackets> {
        let Some(live) = &self.live else { return Vec::new() };
        // A worker publishes its counts when it is dropped.
        self.runner = Running::Chain(live.worker());
        let status = live.status();
        let graph = &status.layout.graph;
        let mut edges: BTreeMap<(Node, Next), u64> = BTreeMap::new();
        for ((from, _), program) in graph.iter().zip(&status.programs) {
            let returned = Verdict::ALL.iter().map(|verdict| *verdict as u32).zip(program.verdicts);
            for (code, count) in returned.chain([(u32::MAX, program.others)]).filter(|(_, count)| *count > 0)
            {
                *edges.entry((from, graph.after(from, code))).or_default() += count;
            }
        }
        edges.into_iter().map(|((from, to), packets)| EdgePackets { from, to, packets }).collect()
    }

    /// Runs the packets of a burst on the engine that it was loaded for.
    pub(crate) fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        match &mut self.runner {
            Running::Program(program) => program.run_burst(burst, host),
            Running::Chain(worker) => worker.run_burst(burst, host),
        }
    }

    /// The program or chain, to be measured.
    pub(crate) fn runner(&mut self) -> Runner<'_> {
        match &mut self.runner {
            Running::Program(program) => Runner::Program(program),
            Running::Chain(worker) => Runner::Chain(worker),
        }
    }

    /// How its outcomes are read.
    pub(crate) fn ran_as(&self) -> RanAs {
        // Programs of a chain are of one type.
        let meaning =
            self.programs.first().map_or(Meaning::Verdict, |first| first.program.spec().kind.rules().meaning);
        if self.is_chain { RanAs::Chain(meaning) } else { RanAs::Program(meaning) }
    }

    /// An explainer of it, which runs it on the plain interpreter.
    pub(crate) fn explainer(&self) -> ChainExplainer {
        let explainer = |of: &SubjectProgram| {
            let btf = self.parts.get(of.part).and_then(|(_, collection)| collection.object().shared_btf());
            Explainer::new(of.program.clone(), btf)
        };
        match self.programs.as_slice() {
            [only] if !self.is_chain => ChainExplainer::of_program(explainer(only)),
            all => ChainExplainer::new(all.iter().map(explainer).collect(), self.graph.clone()),
        }
    }

    /// All its maps.
    pub(crate) fn maps(&self) -> impl Iterator<Item = &Arc<Map>> {
        self.parts.iter().flat_map(|(_, collection)| collection.maps())
    }
}
