//! What a chain file says.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use super::error::FilePlace;
use crate::chain_graph::actions::Actions;
use crate::chain_graph::sequence::Placement;
use paceline_spec::graph::Edges;

/// Contents of a chain file. Paths are as written, relative to the file's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainFile {
    /// Sources of programs, by name.
    pub objects: Vec<FileObject>,
    /// The programs, in file order.
    pub programs: Vec<FileProgram>,
    /// The order of execution.
    pub order: FileOrder,
    /// The expected revision of the running chain that the file changes.
    pub revision: Option<u64>,
    /// Sources and destinations of packets.
    pub port: FilePort,
}

/// A value with its position in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// The position.
    pub at: FilePlace,
    /// The value.
    pub value: T,
}

/// A source of programs and maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileObject {
    /// Its name in the file.
    pub name: Located<String>,
    /// Its source.
    pub source: ObjectSource,
    /// Settings of its maps.
    pub maps: Vec<FileMap>,
}

/// Source of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectSource {
    /// `file`: an object file.
    Object(Located<PathBuf>),
    /// `classic`: a classic filter as text, in a file.
    Classic(Located<PathBuf>),
    /// `filter`: an expression of tcpdump.
    Expression(Located<String>),
}

/// Settings of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMap {
    /// Its name in the object.
    pub name: Located<String>,
    /// Source of its contents.
    pub source: MapSource,
}

/// Source of a map's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapSource {
    /// `file`: a JSON file in the format of `paceline run --map`.
    File(Located<PathBuf>),
    /// `elements` or `variables`: contents within the chain file, as JSON.
    Inline(Located<String>),
    /// `from`: the map is shared with another object.
    Shared {
        /// Index of the object, which must own the map.
        object: usize,
        /// Name of the map in that object.
        map: Located<String>,
    },
}

/// A program of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProgram {
    /// Its name in the chain.
    pub name: Located<String>,
    /// Index of its object.
    pub object: usize,
    /// Its name in the object; `None` for the object's only program.
    pub function: Option<Located<String>>,
    /// Run priority, which overrides the object's.
    pub priority: Option<u32>,
    /// The verdicts after which the next program runs, which override the object's.
    pub actions: Option<Actions>,
    /// Placement relative to other programs, which are given by index.
    pub placement: Option<Placement<usize>>,
}

/// Order of execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOrder {
    /// A sequence: indices of the programs in file order, with placements applied and replaced programs removed.
    Given(Vec<usize>),
    /// Sorted by run priority, as in libxdp.
    Priority,
    /// By edges.
    Edges {
        /// Index of the first program.
        first: usize,
        /// The edges of each program, whose targets are indices of programs.
        edges: Vec<Edges<usize>>,
    },
}

/// Captures; all are optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePort {
    /// Source of packets.
    pub input: Option<Located<PathBuf>>,
    /// Destination of packets that are passed, sent or redirected.
    pub out: Option<Located<PathBuf>>,
    /// Destination of packets that are dropped or aborted.
    pub drops: Option<Located<PathBuf>>,
}

impl ChainFile {
    /// The indices of all objects in an order in which they can be loaded: each after those whose maps it shares.
    #[must_use]
    pub fn load_order(&self) -> Vec<usize> {
        load_order(&self.objects)
    }

    /// The programs in the order of the file, without those that others replaced.
    pub fn members(&self) -> impl Iterator<Item = &FileProgram> {
        let order = match &self.order {
            FileOrder::Given(order) => order.clone(),
            FileOrder::Priority | FileOrder::Edges { .. } => (0..self.programs.len()).collect(),
        };
        order.into_iter().filter_map(|index| self.programs.get(index))
    }

    /// Index of the object with a name.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<usize> {
        self.objects.iter().position(|object| object.name.value == name)
    }
}

/// Indices of objects, each after those whose maps it shares, and otherwise as in the file; without those that share maps in a circle.
pub(super) fn load_order(objects: &[FileObject]) -> Vec<usize> {
    let mut awaited = vec![0_usize; objects.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); objects.len()];
    for (index, object) in objects.iter().enumerate() {
        for map in &object.maps {
            if let MapSource::Shared { object: owner, .. } = map.source {
                awaited[index] += 1;
                users.get_mut(owner).into_iter().for_each(|users| users.push(index));
            }
        }
    }
    let ready = (0..objects.len()).filter(|&index| awaited[index] == 0);
    let mut ready: BinaryHeap<_> = ready.map(Reverse).collect();
    let mut order = Vec::with_capacity(objects.len());
    while let Some(Reverse(index)) = ready.pop() {
        order.push(index);
        for &user in &users[index] {
            awaited[user] -= 1;
            if awaited[user] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    order
}
