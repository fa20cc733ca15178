//! Chain files: programs with their sources, maps, and order. `docs/CHAINS.md` describes the format.

mod contents;
mod error;
mod json;
mod places;
mod read;
mod typed;

pub use contents::{
    ChainFile, FileMap, FileObject, FileOrder, FilePort, FileProgram, Located, MapSource, ObjectSource,
};
pub use error::{FileError, FilePlace, FileProblem};
