//! Parts that runs of programs and runs of chains share.

use super::args::RunArgs;
use super::events::Events;
use super::report::Run;
use crate::common::capture::Capture;
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::files::{FileError, Taken};
use crate::maps::SaveTo;

/// Prints the defaults in use, if the user names no program or no capture.
pub(super) fn announce(args: &RunArgs, subject: &str, capture: &Capture) {
    let is_named = args.source.chain_file().is_some() || !args.source.targets.is_empty();
    match (is_named, &args.input) {
        (true, Some(_)) => {}
        (false, None) => console::note(
            "running the built-in firewall (examples/firewall.o) over the built-in capture (examples/traffic.pcap); \
             for your own: paceline run OBJECT --in CAPTURE",
        ),
        (true, None) => console::note(format_args!(
            "running {} over the {} (examples/traffic.pcap); for your own: --in CAPTURE",
            subject, capture.name
        )),
        (false, Some(_)) => console::note(format_args!(
            "running the {} (examples/firewall.o) over {}; for your own: paceline run OBJECT --in CAPTURE",
            subject, capture.name
        )),
    }
}

/// The file that maps are saved to, and the files that no output may replace: that one and the one that maps are restored from
/// are added, and mostly they are the same.
pub(super) fn save_to(
    args: &RunArgs,
    mut taken: Vec<Taken>,
) -> Result<(Option<SaveTo>, Vec<Taken>), FileError> {
    let save = args.save_maps.as_deref().map(|path| SaveTo::open(path, &taken)).transpose()?;
    taken.extend(save.as_ref().and_then(SaveTo::standard_output));
    taken.extend(args.source.object.restored());
    let saved = args.save_maps.as_deref();
    taken.extend(saved.and_then(|path| Taken::of_path(path, &format!("--save-maps {}", path.display()))));
    Ok((save, taken))
}

/// Whether packets must run one by one to be logged or explained: what else than frames tells of them is that of the last one.
pub(super) fn log_by_packet(args: &RunArgs) -> bool {
    args.verdicts.is_some() || args.print || args.why
}

/// Writes the events that are left, and counts them.
pub(super) fn finish(
    events: Option<Events>,
    run: &mut Run,
    ended: Result<(), Failure>,
) -> Result<(), Failure> {
    match events.map(Events::finish).transpose() {
        Ok(count) => {
            run.events = count;
            ended
        }
        Err(error) => ended.and(Err(error.into())),
    }
}
