//! Chains in memory, and how they are loaded.

use std::path::PathBuf;
use std::rc::Rc;

use paceline::chain::{Graph, Placement, Reason};
use paceline::contents::{ContentsError, SavedMaps};
use paceline::explain::{ChainExplainer, Explainer};
use paceline::{Engine, Layout, LiveChain, LoadOptions, Meaning, Program, RanAs};

use crate::common::files::Taken;
use crate::object::{ObjectArgs, Opener, load_options};

/// Options for loading programs.
#[derive(Clone, Debug)]
pub(crate) struct LoadHow {
    pub(crate) engine: Engine,
    pub(crate) unverified: bool,
    pub(crate) opener: Rc<Opener>,
    /// CPUs that maps have values for.
    pub(crate) cpus: usize,
}

impl LoadHow {
    /// The options where nothing is run.
    pub(crate) fn of(args: &ObjectArgs) -> Self {
        Self {
            engine: Engine::best(),
            unverified: false,
            opener: Rc::new(Opener::new(args)),
            cpus: LoadOptions::default().limits.cpus,
        }
    }

    /// The maps of an earlier run.
    pub(super) fn saved(&self) -> Result<Option<SavedMaps>, ContentsError> {
        self.opener.args.restore_maps.as_deref().map(SavedMaps::read).transpose()
    }

    pub(super) fn options(&self) -> LoadOptions {
        load_options(self.engine, &self.opener.args, self.cpus)
    }
}

/// An object of a chain, loaded, with its name for messages; in a chain file, its name there.
pub(crate) use paceline::chain::ChainPart as Part;

/// A chain, ready to run.
pub(crate) struct Loaded {
    /// For messages.
    pub(crate) name: String,
    pub(crate) live: LiveChain,
    pub(crate) parts: Vec<Part>,
    /// Index of each program's part, by its name in the chain.
    pub(crate) origins: Vec<(String, usize)>,
    /// Programs that were placed by others, and how.
    pub(super) placed: Vec<(String, Placement<String>)>,
    /// Files that no output may replace.
    pub(crate) taken: Vec<Taken>,
    /// Captures that a chain file names.
    pub(crate) input: Option<PathBuf>,
    pub(crate) out: Option<PathBuf>,
    pub(crate) drops: Option<PathBuf>,
}

impl Loaded {
    /// The programs by node, each with its name and the index of its part, and the graph.
    pub(crate) fn programs(&self) -> (Vec<(String, Program, usize)>, Graph) {
        let (worker, layout) = (self.live.worker(), self.live.layout());
        let (programs, graph) = worker.parts();
        let part = |name: &String| {
            self.origins.iter().find(|(origin, _)| origin == name).map_or(0, |(_, part)| *part)
        };
        let programs = layout.names.iter().zip(programs);
        let programs = programs.map(|(name, program)| (name.clone(), program.clone(), part(name)));
        (programs.collect(), graph.clone())
    }

    /// How outcomes of the chain are read.
    pub(crate) fn ran_as(&self) -> RanAs {
        // Programs of a chain are of one type.
        let members = self.live.members();
        let meaning =
            members.first().map_or(Meaning::Verdict, |first| first.program().spec().kind.rules().meaning);
        RanAs::Chain(meaning)
    }

    /// An explainer of the chain as it is now.
    pub(crate) fn explainer(&self) -> ChainExplainer {
        let (programs, graph) = self.programs();
        let explainers = programs.into_iter().map(|(_, program, part)| {
            let part = self.parts.get(part);
            Explainer::new(program, part.and_then(|part| part.collection.object().shared_btf()))
        });
        ChainExplainer::new(explainers.collect(), graph)
    }

    /// The order of the programs, with reasons.
    pub(crate) fn layout(&self) -> Layout {
        let mut layout = self.live.layout();
        for (name, reason) in layout.names.iter().zip(&mut layout.reasons) {
            let placed = self.placed.iter().find(|(placed, _)| placed == name);
            if let (Reason::Placed, Some((_, placement))) = (&*reason, placed) {
                *reason = Reason::PlacedBy(placement.clone());
            }
        }
        layout
    }
}
