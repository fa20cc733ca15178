//! Chain files, loaded: from the text to objects, maps and programs that can run.

mod error;
mod load;
mod source;

pub use error::{ChainFileCause, ChainFileError};
pub use load::{ChainLoadOptions, ChainPart, LoadedChain};
pub use source::{ChainSource, OpenedChain};
