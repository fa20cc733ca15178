//! The programs of an object that are explored. Each is reported, also one of which nothing becomes known: only what was explored may count.

use std::ffi::OsStr;

use paceline::generate::GenerateError;
use paceline::{Collection, Engine, Object, ProgramError, ProgramSpec};
use serde_json::Value as Json;

use super::given::only_variables;
use crate::common::failure::Failure;
use crate::common::files::Taken;
use crate::maps::identities;
use crate::object::{NamedObject, NamedProgramError, ObjectError, Opener, load, load_options};

/// An object whose programs are explored.
pub(crate) struct Subjects {
    /// Name of the object.
    pub(crate) name: String,
    /// The programs, by name.
    pub(crate) programs: Vec<String>,
    /// The files that no output may replace.
    pub(crate) taken: Vec<Taken>,
    /// Whether the command line names one program.
    pub(crate) is_named: bool,
    collection: Collection,
}

impl Subjects {
    /// Opens an object as `OBJECT[:PROGRAM]` names it. Variables are set in it, which is what is explored.
    pub(crate) fn open(target: &OsStr, opener: &Opener) -> Result<Self, Failure> {
        let named = NamedObject::open(target, opener)?;
        let programs = named.programs()?.into_iter().map(|spec| spec.name.clone()).collect();
        let NamedObject { name, object, program, file } = named;
        let files = opener.args.files();
        only_variables(&opener.args, &files, &object)?;
        let taken = file.into_iter().chain(identities(&files)).collect();
        let options = load_options(Engine::Plain, &opener.args, 1);
        let collection = load(opener, &name, object, Vec::new(), &options, true)?;
        Ok(Self { name, programs, taken, is_named: program.is_some(), collection })
    }

    /// The object, without the maps that could not be made and the programs that name them.
    pub(crate) fn object(&self) -> &Object {
        self.collection.object()
    }

    /// A program of the object.
    pub(crate) fn program(&self, name: &str) -> Result<&ProgramSpec, GenerateError> {
        Ok(self.collection.program_spec(Some(name))?)
    }

    /// A program of which nothing becomes known.
    pub(crate) fn unexplored(&self, program: &str, error: GenerateError) -> Unexplored {
        let failure = match error {
            GenerateError::Refused(refused) => self.no_program(ProgramError::Refused(refused)),
            GenerateError::Program(error) => self.no_program(error),
            GenerateError::Setup(source) => ObjectError::setup(&self.name, source).into(),
        };
        Unexplored { program: program.to_owned(), failure }
    }

    /// The object's programs that are not explored because they are of other types, or could not be read; none where one is named.
    pub(crate) fn skipped(&self) -> Vec<Unexplored> {
        let skipped = self.object().skipped().iter().filter(|_| !self.is_named);
        let one = |skipped: &paceline::SkippedProgram| Unexplored {
            program: skipped.name.clone(),
            failure: self.no_program(ProgramError::Skipped(skipped.clone())),
        };
        skipped.map(one).collect()
    }

    fn no_program(&self, error: ProgramError) -> Failure {
        NamedProgramError::new(&self.name, self.object(), error).into()
    }
}

/// A program of which nothing becomes known, with the cause.
#[derive(Debug)]
pub(crate) struct Unexplored {
    pub(crate) program: String,
    pub(crate) failure: Failure,
}

impl Unexplored {
    /// Prints the cause to standard error.
    pub(crate) fn tell(&self) {
        self.failure.tell();
    }

    pub(crate) fn to_json(&self) -> Json {
        let mut json = self.failure.to_json();
        json["program"] = self.program.clone().into();
        json
    }
}
