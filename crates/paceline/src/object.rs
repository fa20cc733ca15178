//! Object files.

use std::fs;
use std::io;
use std::ops::Deref;
use std::path::Path;

use paceline_load::classic::{
    CheckError, ConvertError, ConvertOptions, Filter, Purpose, Returns, SockFilter, text,
};
use paceline_spec::ProgramSpec;

/// Why a file gives no object.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What is in it is no object that Paceline understands.
    #[error(transparent)]
    Parse(#[from] paceline_load::LoadError),
}

/// Why a text gives no classic filter.
#[derive(Debug, thiserror::Error)]
pub enum FilterTextError {
    /// It is no classic program.
    #[error(transparent)]
    Text(#[from] text::TextError),
    /// The kernel would not take it.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// It cannot be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),
}

/// The programs and maps of an object file, as specs: nothing is made yet.
///
/// Derefs to [`paceline_load::Object`], whose fields can be read.
#[derive(Clone, Debug)]
pub struct Object {
    inner: paceline_load::Object,
}

impl Object {
    /// Reads an object file.
    ///
    /// # Errors
    /// [`OpenError`]; it does not repeat the path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::parse(&fs::read(path)?)
    }

    /// Reads an object from memory.
    ///
    /// # Errors
    /// [`OpenError::Parse`].
    pub fn parse(bytes: &[u8]) -> Result<Self, OpenError> {
        Ok(Self { inner: paceline_load::Object::parse(bytes)? })
    }

    /// An object of one program, without maps and types.
    #[must_use]
    pub fn of_program(program: ProgramSpec) -> Self {
        let license = program.license.clone();
        let inner = paceline_load::Object {
            programs: vec![program],
            maps: Vec::new(),
            btf: None,
            license,
            skipped: Vec::new(),
            data_pointers: Vec::new(),
        };
        Self { inner }
    }

    /// A classic filter, in any of its forms as text (what `tcpdump -d`, `-dd` and `-ddd` print), as an XDP program of
    /// this name that passes what matches and drops the rest: a link of a chain.
    ///
    /// # Errors
    /// [`FilterTextError`].
    pub fn of_filter(name: &str, text: &str) -> Result<Self, FilterTextError> {
        Self::of_classic(name, text::parse(text)?)
    }

    /// The same of the filter's instructions, such as [`Libpcap::compile`](crate::filter::Libpcap::compile) gives. Its
    /// rules are those of a filter that a socket has: the length is that of what there is.
    ///
    /// # Errors
    /// [`FilterTextError::Check`] and [`FilterTextError::Convert`].
    pub fn of_classic(name: &str, insns: Vec<SockFilter>) -> Result<Self, FilterTextError> {
        let filter = Filter::new(insns, Purpose::Socket)?;
        let options = ConvertOptions { returns: Returns::PASS_OR_DROP, ..ConvertOptions::default() };
        Ok(Self::of_program(filter.to_xdp(name, &options)?))
    }

    /// The specs, to change before the object is loaded.
    pub fn specs_mut(&mut self) -> &mut paceline_load::Object {
        &mut self.inner
    }
}

impl Deref for Object {
    type Target = paceline_load::Object;
    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}
