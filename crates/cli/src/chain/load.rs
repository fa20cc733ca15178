//! From the command line to a chain that can run.

use paceline::Change;

use super::args::SourceArgs;
use super::error::ChainError;
use super::loaded::{LoadHow, Loaded, Part};
use super::{file, objects};
use crate::common::console;
use crate::common::failure::Failure;

/// Loads a chain.
pub(crate) fn load(source: &SourceArgs, how: &LoadHow) -> Result<Loaded, Failure> {
    match source.chain_file() {
        Some(path) => {
            let conflict = [
                ("--order", source.order.is_some()),
                ("--calls", source.calls.is_some()),
                ("--place", !source.places.is_empty()),
                ("--set", how.opener.args.sets_variables()),
                ("--map NAME=FILE", !how.opener.args.files().is_empty()),
            ];
            if let Some((option, _)) = conflict.into_iter().find(|(_, given)| *given) {
                return Err(ChainError::NotWithFile(option).into());
            }
            file::load(path, how)
        }
        None => match source.file_among_objects() {
            Some(path) => Err(ChainError::FileAmongObjects(path.display().to_string()).into()),
            None => objects::load(source, how),
        },
    }
}

/// Reads a chain file again and applies its changes, with the contents of its maps. An error is reported, and the chain
/// remains unchanged. `prepare` gets the new parts before packets run through them.
pub(crate) fn reload(
    source: &SourceArgs,
    how: &LoadHow,
    loaded: &mut Loaded,
    packets: u64,
    prepare: impl FnOnce(&[Part]) -> Result<(), Failure>,
) {
    let Some(path) = source.chain_file() else { return };
    let changed = file::make(path, how, Some(&loaded.parts)).and_then(|made| {
        prepare(&made.parts)?;
        let (origins, placed) = (file::origins(&made), made.placed());
        let revision = made.source().file().revision;
        let change = Change::All { members: made.members, order: made.order };
        let name = loaded.name.clone();
        let layout = loaded.live.change(revision, vec![change]);
        let layout = layout.map_err(|source| ChainError::Change { name, source })?;
        loaded.parts = made.parts;
        loaded.placed = placed;
        loaded.origins = origins;
        Ok(layout)
    });
    match changed {
        Ok(layout) => {
            let (names, revision) = (layout.names.join(", "), layout.revision);
            console::note(format_args!("from packet {} on, revision {revision}: {names}", packets + 1));
        }
        Err(failure) => {
            failure.tell();
            console::note("the chain goes on as it is");
        }
    }
}
