//! `--place NAME=WHERE`: the place of a program relative to others.

use paceline::chain::{Place, Placement};

/// A program's place relative to others.
#[derive(Clone, Debug)]
pub(super) struct PlaceArg {
    pub(super) name: String,
    pub(super) to: Placement<String>,
    /// As it was given.
    pub(super) text: String,
}

impl PlaceArg {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str =
            "say NAME=first, NAME=last, NAME=before:OTHER, NAME=after:OTHER or NAME=replace:OTHER";
        let (name, place) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or(FORM)?;
        let other = |given: &str| if given.is_empty() { Err(FORM) } else { Ok(given.to_owned()) };
        let to = match place.split_once(':') {
            None if place == "first" => Placement::At(Place::First),
            None if place == "last" => Placement::At(Place::Last),
            Some(("before", given)) => Placement::At(Place::Before(other(given)?)),
            Some(("after", given)) => Placement::At(Place::After(other(given)?)),
            Some(("replace", given)) => Placement::Replacing(other(given)?),
            _ => return Err(FORM.to_owned()),
        };
        Ok(Self { name: name.to_owned(), to, text: text.to_owned() })
    }

    /// The program it is placed relative to, if any.
    pub(super) fn other(&self) -> Option<&String> {
        match &self.to {
            Placement::At(Place::Before(other) | Place::After(other)) | Placement::Replacing(other) => {
                Some(other)
            }
            Placement::At(Place::First | Place::Last) => None,
        }
    }
}
