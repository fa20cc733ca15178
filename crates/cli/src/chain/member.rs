//! Programs of loaded objects as members of a chain.

use paceline::{Collection, Member, NoMember};

use super::error::ChainError;
use super::loaded::LoadHow;
use crate::common::failure::Failure;
use crate::object::{NamedProgramError, check_action, noting_unfilled};

/// A program of an object, as a member of a chain; named like its function.
pub(super) fn member(
    collection: &Collection,
    object: &str,
    program: Option<&str>,
    how: &LoadHow,
) -> Result<Member, Failure> {
    let member = noting_unfilled(collection, || match how.unverified {
        true => collection.member_unverified("", program),
        false => collection.member("", program),
    });
    let member = member.map_err(|error| match error {
        NoMember::Program(error) => Failure::from(NamedProgramError::new(object, collection.object(), error)),
        NoMember::Config(source) => ChainError::Config { name: object.to_owned(), source }.into(),
    })?;
    check_action(object, member.program())?;
    let name = member.program().spec().name.clone();
    Ok(member.renamed(name))
}
