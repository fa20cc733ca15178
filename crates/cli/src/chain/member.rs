//! Programs of loaded objects as members of a chain.

use paceline::{Collection, Member, NoMember};

use super::error::ChainError;
use super::loaded::LoadHow;
use crate::common::failure::Failure;
use crate::maps::{self, JsonFile, MapFileError};
use crate::object::{NotXdp, ProgramError, check_action, program_of};

/// The reason why a program is no member of a chain.
pub(super) enum MemberError {
    Program(ProgramError),
    Config(ChainError),
    NotXdp(NotXdp),
}

impl From<MemberError> for Failure {
    fn from(error: MemberError) -> Self {
        match error {
            MemberError::Program(error) => error.into(),
            MemberError::Config(error) => error.into(),
            MemberError::NotXdp(error) => error.into(),
        }
    }
}

/// Fills maps of an object from files.
pub(super) fn fill<'a>(
    collection: &Collection,
    files: impl IntoIterator<Item = &'a JsonFile>,
    how: &LoadHow,
) -> Result<(), MapFileError> {
    let load = |name: &str| program_of(collection, Some(name), how.unverified);
    maps::set_elements(files, collection, &load)
}

/// A program of an object, as a member of a chain; named like its function if no other name is given.
pub(super) fn member(
    collection: &Collection,
    object: &str,
    program: Option<&str>,
    name: Option<&str>,
    how: &LoadHow,
) -> Result<Member, MemberError> {
    let given = name.unwrap_or_default();
    let member = match how.unverified {
        true => collection.member_unverified(given, program),
        false => collection.member(given, program),
    };
    let member = member.map_err(|error| match error {
        NoMember::Program(error) => {
            MemberError::Program(ProgramError::new(object, collection.object(), error))
        }
        NoMember::Config(source) => {
            MemberError::Config(ChainError::Config { name: object.to_owned(), source })
        }
    })?;
    check_action(object, member.program()).map_err(MemberError::NotXdp)?;
    let name = name.map_or_else(|| member.program().spec().name.clone(), str::to_owned);
    Ok(member.renamed(name))
}
