//! Contents of all maps of a run, as an earlier run saved them.

use std::path::Path;

use super::error::{ContentsCause, ContentsError, ContentsProblem};
use super::text::{MapContents, Part};
use crate::load::Object;

const FORM: &str = "saved maps are an object {\"maps\": {NAME: ...}}";
const BY_OBJECT: &str = "saved maps of several objects are an object {\"maps\": {OBJECT: {NAME: ...}}}";

/// Maps that an earlier run left, as `paceline run --save-maps` writes them: `{"maps": {NAME: ELEMENTS, ...}}`, and in chains of several
/// objects the same by object.
#[derive(Clone, Debug)]
pub struct SavedMaps(MapContents);

impl SavedMaps {
    /// Reads a file of saved maps. Only its syntax is checked.
    ///
    /// # Errors
    /// [`ContentsError`].
    pub fn read(path: &Path) -> Result<Self, ContentsError> {
        MapContents::read("", path).map(Self)
    }

    /// The saved contents of the maps of an object, which is one of several if it has a name. They replace what is in the maps. Also
    /// gives the names of maps of constants, which are left out: constants are the object's own.
    ///
    /// # Errors
    /// [`ContentsError`] if the file is not of this form, or has nothing about this object.
    pub fn of(
        &self,
        object: &Object,
        one_of: Option<&str>,
    ) -> Result<(Vec<MapContents>, Vec<String>), ContentsError> {
        self.contents(object, one_of).map_err(|failure| self.0.failure(failure))
    }

    fn contents(
        &self,
        object: &Object,
        one_of: Option<&str>,
    ) -> Result<(Vec<MapContents>, Vec<String>), ContentsCause> {
        let root = self.0.root()?;
        let maps = member(&root, "maps", FORM)?;
        let maps = match one_of {
            Some(name) => member(&maps, name, BY_OBJECT)?,
            None => maps,
        };
        let is_constant = |name: &str| object.map(name).is_some_and(|spec| spec.frozen);
        let (constant, kept): (Vec<_>, Vec<_>) =
            maps.members(FORM)?.into_iter().partition(|(name, _)| is_constant(name));
        let kept = kept.into_iter().map(|(name, part)| self.0.about(&name, &part)).collect();
        Ok((kept, constant.into_iter().map(|(name, _)| name).collect()))
    }
}

fn member<'a>(part: &Part<'a>, name: &str, form: &'static str) -> Result<Part<'a>, ContentsCause> {
    part.members(form)?.remove(name).ok_or_else(|| part.fail(ContentsProblem::Shape(form)))
}
