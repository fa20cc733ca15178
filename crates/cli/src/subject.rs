//! Programs as commands take them: one, or a chain, loaded with their maps.

use paceline::chain::Graph;
use paceline::explain::{ChainExplainer, Explainer};
use paceline::{Collection, Map, Program};

use crate::chain::{self, LoadHow, SourceArgs};
use crate::common::failure::Failure;
use crate::common::files::Taken;
use crate::maps::{self, SavedMaps};
use crate::object::{NamedObject, check_action, load, load_options, program_of};

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
    /// Files that no output may replace.
    pub(crate) taken: Vec<Taken>,
    /// Whether it was given as a chain, so that programs are told by their names.
    pub(crate) is_chain: bool,
}

impl Subject {
    /// Loads what the command line names, or the built-in firewall.
    pub(crate) fn load(source: &SourceArgs, how: &LoadHow) -> Result<Self, Failure> {
        match source.targets.as_slice() {
            [] | [_] if source.chain_file().is_none() && source.calls.is_none() => Self::of_one(source, how),
            _ => Self::of_chain(source, how),
        }
    }

    fn of_one(source: &SourceArgs, how: &LoadHow) -> Result<Self, Failure> {
        let named = match source.targets.first() {
            Some(target) => NamedObject::open(target, &how.opener)?,
            None => NamedObject::built_in()?,
        };
        named.programs()?;
        let NamedObject { name, object, program: wanted, file } = named;
        let restored = match &how.restore {
            Some(path) => SavedMaps::read(path)?.of(&object, None)?,
            None => Vec::new(),
        };
        let options = load_options(how.budget, how.engine, source.object.map_memory, how.cpus);
        let collection = load(&how.opener, &name, object, restored, &options, how.unverified)?;
        let program = program_of(&collection, wanted.as_deref(), how.unverified)
            .map_err(|error| crate::object::ProgramError::new(&name, collection.object(), error))?;
        check_action(&name, &program)?;
        let taken = file.into_iter().chain(maps::identities(&source.object.files())).collect();
        let of_node = SubjectProgram { name: program.spec().name.clone(), program, part: 0 };
        let (programs, parts) = (vec![of_node], vec![(name.clone(), collection)]);
        Ok(Self { name, programs, graph: Graph::one(), parts, taken, is_chain: false })
    }

    fn of_chain(source: &SourceArgs, how: &LoadHow) -> Result<Self, Failure> {
        let loaded = chain::load(source, how)?;
        let layout = loaded.live.layout();
        let worker = loaded.live.worker();
        let (programs, graph) = worker.parts();
        let part = |name: &String| {
            loaded.origins.iter().find(|(origin, _)| origin == name).map_or(0, |(_, part)| *part)
        };
        let programs = layout.names.iter().zip(programs);
        let programs = programs.map(|(name, program)| SubjectProgram {
            name: name.clone(),
            program: program.clone(),
            part: part(name),
        });
        let (programs, graph) = (programs.collect(), graph.clone());
        let parts = loaded.parts.into_iter().map(|part| (part.name, part.collection)).collect();
        Ok(Self { name: loaded.name, programs, graph, parts, taken: loaded.taken, is_chain: true })
    }

    /// An explainer of it, which runs it on the plain interpreter.
    pub(crate) fn explainer(&self) -> ChainExplainer {
        let explainer = |of: &SubjectProgram| {
            let btf = self.parts.get(of.part).and_then(|(_, collection)| collection.object().shared_btf());
            Explainer::new(of.program.clone(), btf)
        };
        ChainExplainer::new(self.programs.iter().map(explainer).collect(), self.graph.clone())
    }

    /// All its maps.
    pub(crate) fn maps(&self) -> impl Iterator<Item = &std::sync::Arc<Map>> {
        self.parts.iter().flat_map(|(_, collection)| collection.maps())
    }
}
