//! Chain files as text, with the files that they name.

use std::path::{Path, PathBuf};

use crate::chain_graph::{ChainFile, FileError, FileObject, FilePlace, MapSource, ObjectSource};

use super::error::{ChainFileCause, ChainFileError};
use crate::load::Object;
use crate::text_file::{self, TextFileError};

/// A chain file that was read: `docs/CHAINS.md` describes the format.
///
/// ```
/// use paceline::chain::{ChainLoadOptions, ChainSource};
/// use paceline::{Burst, FrameMeta, Host, Verdict};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
/// let text = r#"
/// objects.counter.file = "counter.o"
/// objects.firewall = { file = "firewall.o", maps.rules.elements = [{ key = { port = 22, protocol = 6 }, value = { action = 1 } }] }
/// program = [{ name = "counter" }, { name = "firewall" }]
/// "#;
/// let source = ChainSource::parse(format!("{examples}/chain.toml"), text)?; // or ChainSource::read(path)
/// let loaded = source.open()?.load(&ChainLoadOptions::default())?;
/// let chain = loaded.live()?;
///
/// let mut burst = Burst::default();
/// burst.push(&[0; 60], FrameMeta::default())?;
/// chain.worker().run_burst(&mut burst, &mut Host::default())?;
/// assert_eq!(burst.frame(0).verdict(), Verdict::Pass);
/// let counter = loaded.part("counter").ok_or("no such program")?;
/// assert_eq!(counter.collection.map("by_ethertype").map(|map| map.keys().map(Iterator::count)), Some(Ok(1)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ChainSource {
    pub(super) path: PathBuf,
    pub(super) file: ChainFile,
}

impl ChainSource {
    /// Reads a chain file. The files that it names are not read yet.
    ///
    /// # Errors
    /// [`ChainFileError::Read`], [`ChainFileError::NotText`], and [`ChainFileError::File`] for the first error in the text.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ChainFileError> {
        let path = path.as_ref().to_owned();
        match text_file::read(&path) {
            Ok(text) => Self::parse(path, &text),
            Err(TextFileError::Io(source)) => Err(ChainFileError::Read { file: path, source }),
            Err(TextFileError::NotText { format, line, column }) => {
                Err(ChainFileError::NotText { file: path, format, at: FilePlace { line, column } })
            }
        }
    }

    /// Reads the text of a chain file; the path is for messages, and its folder is where the paths in the text begin.
    ///
    /// # Errors
    /// [`ChainFileError::File`] for the first error in the text.
    pub fn parse(path: impl Into<PathBuf>, text: &str) -> Result<Self, ChainFileError> {
        let path = path.into();
        match ChainFile::parse(text) {
            Ok(file) => Ok(Self { path, file }),
            Err(error) => Err(ChainFileError::File { file: path, error }),
        }
    }

    /// What is in the file.
    #[must_use]
    pub fn file(&self) -> &ChainFile {
        &self.file
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path of the file as it is seen from the working directory.
    #[must_use]
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    /// The file of an object, as it is seen from the working directory; expressions have none.
    #[must_use]
    pub fn path_of(&self, object: &FileObject) -> Option<PathBuf> {
        match &object.source {
            ObjectSource::Object(file) | ObjectSource::Classic(file) => Some(self.resolve(&file.value)),
            ObjectSource::Expression(_) => None,
        }
    }

    /// The files that maps are filled from, each with the name of the map.
    pub fn map_files(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        self.file.objects.iter().flat_map(|object| &object.maps).filter_map(|map| match &map.source {
            MapSource::File(path) => Some((map.name.value.as_str(), self.resolve(&path.value))),
            MapSource::Inline(_) | MapSource::Shared { .. } => None,
        })
    }

    /// Opens all objects, without the types, version and configuration of a kernel.
    ///
    /// # Errors
    /// [`ChainFileError::At`].
    pub fn open(&self) -> Result<OpenedChain, ChainFileError> {
        self.open_with(|object, _| self.open_object(object))
    }

    /// Opens all objects in a way of the caller's: `open` gets each with its path, which expressions do not have.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn open_with<E>(
        &self,
        mut open: impl FnMut(&FileObject, Option<PathBuf>) -> Result<Object, E>,
    ) -> Result<OpenedChain, E> {
        let objects = self.file.objects.iter().map(|object| open(object, self.path_of(object)));
        let objects = objects.collect::<Result<_, E>>()?;
        Ok(OpenedChain { source: self.clone(), objects })
    }

    /// Opens an object of this file, without the types, version and configuration of a kernel.
    ///
    /// # Errors
    /// [`ChainFileError::At`].
    pub fn open_object(&self, object: &FileObject) -> Result<Object, ChainFileError> {
        let name = &object.name.value;
        let (at, opened) = match &object.source {
            ObjectSource::Object(file) => (file.at, opened(self.resolve(&file.value))),
            ObjectSource::Classic(file) => (file.at, of_classic(self.resolve(&file.value), name)),
            ObjectSource::Expression(expression) => (expression.at, of_expression(&expression.value, name)),
        };
        opened.map_err(|cause| self.at(at, cause))
    }

    pub(super) fn wrong(&self, error: FileError) -> ChainFileError {
        ChainFileError::File { file: self.path.clone(), error }
    }

    /// Adds file and place to a cause.
    pub(super) fn at(&self, at: FilePlace, cause: ChainFileCause) -> ChainFileError {
        ChainFileError::At { file: self.path.clone(), at, cause: Box::new(cause) }
    }
}

/// A chain file with its objects, of which nothing is made yet.
#[derive(Clone, Debug)]
pub struct OpenedChain {
    pub(super) source: ChainSource,
    /// In the order of the file.
    pub(super) objects: Vec<Object>,
}

impl OpenedChain {
    /// The objects, in the order of the file.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }
}

fn opened(path: PathBuf) -> Result<Object, ChainFileCause> {
    Object::open(&path).map_err(|source| ChainFileCause::Object { path, source: Box::new(source) })
}

fn of_classic(path: PathBuf, name: &str) -> Result<Object, ChainFileCause> {
    match text_file::read(&path) {
        Ok(text) => Object::of_filter(name, &text).map_err(|source| ChainFileCause::Classic { path, source }),
        Err(source) => Err(ChainFileCause::Read { path, source }),
    }
}

/// The program of an expression for Ethernet.
#[cfg(feature = "libpcap")]
fn of_expression(expression: &str, name: &str) -> Result<Object, ChainFileCause> {
    use std::time::Duration;

    use crate::filter::{ConvertOptions, Libpcap, Target, compile_checked, locate};

    const TIME: Duration = Duration::from_millis(300);

    let (libpcap, target) = (Libpcap::open().map_err(ChainFileCause::Libpcap)?, Target::default());
    let insns = compile_checked(&libpcap, expression, target, &ConvertOptions::default(), TIME);
    let insns = insns.map_err(|error| ChainFileCause::Expression {
        place: locate(&libpcap, expression, target, &error),
        message: error.message,
        expression: expression.to_owned(),
    })?;
    let no_program = |source| ChainFileCause::Filter { expression: expression.to_owned(), source };
    Object::of_classic(name, insns).map_err(no_program)
}

#[cfg(not(feature = "libpcap"))]
fn of_expression(_expression: &str, _name: &str) -> Result<Object, ChainFileCause> {
    Err(ChainFileCause::NoLibpcap)
}
