//! Chains in files: programs, where they come from, their maps, and what runs after what. `docs/CHAINS.md` has the format.

mod error;
mod json;
mod read;
mod table;

use std::path::PathBuf;

use crate::{Actions, Edges, Placement};

pub use error::{FileError, FilePlace, FileProblem};

/// What a chain file says. Paths are as they stand in it; they are relative to its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainFile {
    /// Where programs come from, by name.
    pub objects: Vec<FileObject>,
    /// The programs, as they stand.
    pub programs: Vec<FileProgram>,
    /// What runs after what.
    pub order: FileOrder,
    /// The revision of a running chain that the file is meant to change.
    pub revision: Option<u64>,
    /// Where packets come from and go to.
    pub port: FilePort,
}

/// Something with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// The place.
    pub at: FilePlace,
    /// The thing.
    pub value: T,
}

/// Where programs and maps come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileObject {
    /// Its name in the file, and its place.
    pub name: Located<String>,
    /// What it is.
    pub source: ObjectSource,
    /// What is said of its maps.
    pub maps: Vec<FileMap>,
}

/// What an object is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectSource {
    /// `file`: an object file.
    Object(Located<PathBuf>),
    /// `classic`: a classic filter as text, in a file.
    Classic(Located<PathBuf>),
    /// `filter`: an expression of tcpdump's.
    Expression(Located<String>),
}

/// What is said of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMap {
    /// Its name in the object, and its place in the file.
    pub name: Located<String>,
    /// Where its contents come from.
    pub source: MapSource,
}

/// Where the contents of a map come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapSource {
    /// `file`: a JSON file as `paceline run --map` takes it.
    File(Located<PathBuf>),
    /// `elements`, or `variables`: the same in the chain file, as JSON.
    Inline(Located<String>),
    /// `from`: it is a map of another object.
    Shared {
        /// Index of the object, which does not have the map from elsewhere itself.
        object: usize,
        /// Name of the map there.
        map: Located<String>,
    },
}

/// A program of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProgram {
    /// Its name in the chain, and its place in the file.
    pub name: Located<String>,
    /// Index of its object.
    pub object: usize,
    /// Its name in the object; the object's only program without.
    pub function: Option<Located<String>>,
    /// Run priority, in the place of the object's own.
    pub priority: Option<u32>,
    /// The verdicts after which the next program runs, in the place of the object's own.
    pub actions: Option<Actions>,
    /// Where it goes by other programs, which are named by their index.
    pub placement: Option<Placement<usize>>,
}

/// What runs after what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOrder {
    /// One after the other: the programs by their index, as they stand, each then taken where its placement says. Those
    /// that were replaced are left out.
    Given(Vec<usize>),
    /// By run priority, as libxdp has it.
    Priority,
    /// By edges.
    Edges {
        /// Index of the program where packets enter.
        first: usize,
        /// The edges of each program, which lead to programs by their index.
        edges: Vec<Edges>,
    },
}

/// Captures; each may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePort {
    /// Where packets come from.
    pub input: Option<Located<PathBuf>>,
    /// Where packets go that are passed, sent or redirected.
    pub out: Option<Located<PathBuf>>,
    /// Where packets go that are dropped or aborted.
    pub drops: Option<Located<PathBuf>>,
}

impl ChainFile {
    /// Reads a chain file's text.
    ///
    /// # Errors
    /// [`FileError`] has the place of the first mistake.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        read::read(text)
    }

    /// The object of a name.
    #[must_use]
    pub fn object(&self, name: &str) -> Option<usize> {
        self.objects.iter().position(|object| object.name.value == name)
    }
}
