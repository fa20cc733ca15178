//! Socket filters of objects (`SEC("socket")`).

use std::ffi::OsStr;

use paceline::Engine;
use paceline::filter::PacketFilter;

use super::args::FilterArgs;
use super::error::FilterError;
use super::wanted::Loaded;
use crate::common::failure::Failure;
use crate::common::files::Taken;
use crate::object::{self, NamedObject, NamedProgramError, Opener, load_options};

/// Loads a program as `OBJECT[:PROGRAM]` names it. The file of the object is one that no output may replace.
pub(super) fn load(
    args: &FilterArgs,
    target: &OsStr,
    engine: Engine,
) -> Result<(Loaded, Option<Taken>), Failure> {
    let opener = Opener::new(&args.object);
    let named = NamedObject::open(target, &opener)?;
    named.programs()?;
    let NamedObject { name, object, program: wanted, file } = named;
    let options = load_options(engine, &args.object, 1);
    let collection = object::load(&opener, &name, object, Vec::new(), &options, false)?;
    let program = collection
        .program(wanted.as_deref())
        .map_err(|error| NamedProgramError::new(&name, collection.object(), error))?;
    let (of, kind) = (program.spec().name.clone(), program.spec().kind.rules().name);
    match PacketFilter::of_program(program) {
        Some(filter) => Ok((Loaded { name: None, title: name, expression: None, filter }, file)),
        None => Err(FilterError::NoFilter { name, program: of, kind }.into()),
    }
}
