//! Errors of opening and loading objects.

use paceline::coverage::CoverageError;
use paceline::kernel::KernelFileError;
use paceline::{LoadError, OpenError, SetupError};

use super::hints::setup_hint;
use crate::common::failure::CommandError;

/// The reason why an object cannot be opened or loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    #[error("{name}")]
    Open { name: String, source: Box<OpenError> },
    #[error("{option} {name}")]
    Kernel { option: &'static str, name: String, source: Box<KernelFileError> },
    #[error("{option}: the object has no map `{map}`")]
    NoMap { option: &'static str, map: String, hint: Option<String> },
    #[error("--restore-maps {0}: this command makes no maps")]
    NoMaps(String),
    #[error("--set {name}: there is no global variable of this name")]
    NoVariable { name: String, hint: Option<String> },
    #[error("--map {variable}={value}: `{variable}` is no map but a variable of {section}")]
    Variable { variable: String, section: String, value: String },
    #[error("{name}: no coverage")]
    Coverage { name: String, source: Box<CoverageError> },
    #[error("{name}")]
    Setup { name: String, source: Box<SetupError> },
}

impl CommandError for ObjectError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Open { name, source } => match **source {
                OpenError::Parse(LoadError::NotElf(Some(format))) if format.ends_with(" capture") => {
                    Some(format!("captures are given by --in: `paceline run OBJECT --in {name}`"))
                }
                OpenError::Parse(LoadError::NotElf(Some("LLVM bitcode"))) => Some(format!(
                    "compile without -emit-llvm and -flto, or let llc make the object: `llc -march=bpf -filetype=obj {name} -o \
                     program.o`"
                )),
                OpenError::Parse(LoadError::NotElf(_) | LoadError::NotBpf { .. }) => Some(
                    "objects are made by `clang -O2 -g -target bpf -c program.bpf.c -o program.o`".to_owned(),
                ),
                _ => None,
            },
            Self::Kernel { .. } | Self::Coverage { .. } => None,
            Self::NoMap { hint, .. } | Self::NoVariable { hint, .. } => hint.clone(),
            Self::Variable { variable, section, value } => Some(format!(
                "`--set {variable}={value}` sets it, or `--map {section}=FILE` with {{\"{variable}\": VALUE}} in the file"
            )),
            Self::Setup { name, source } => Some(setup_hint(name, source)),
            Self::NoMaps(_) => None,
        }
    }
}

impl ObjectError {
    /// The maps of an object cannot be created.
    pub(crate) fn setup(name: &str, source: SetupError) -> Self {
        Self::Setup { name: name.to_owned(), source: Box::new(source) }
    }
}
