//! Programs whose bursts run in stages.

use std::sync::Arc;

use paceline_isa::Code;
use paceline_maps::Map;
use paceline_runtime::interpreter::image::{Entries, Image};
use paceline_runtime::interpreter::staged::{Ahead, Staged, staged_entry};
use paceline_spec::ProgramSpec;

use crate::engine::Engine;
use crate::look_ahead::{LookAhead, NoSlice};
use crate::native;
use crate::program::Program;
use crate::slice::Slice;

impl Program {
    /// Changes whether bursts run in stages. Program arrays, maps and call sites that have the program already keep it as it was:
    /// this is another program, with a [number](Self::id) of its own.
    #[must_use]
    pub fn with_look_ahead(self, look_ahead: LookAhead) -> Self {
        if self.engine() != Engine::Jit || self.look_ahead() == look_ahead {
            return self;
        }
        let (image, no_slice) = staged(&self.image, look_ahead);
        self.with_bursts_of(image, look_ahead, no_slice)
    }
}

/// The image of a program that runs in stages, if it has a slice that is asked for; otherwise why it has none.
fn staged(image: &Image, look_ahead: LookAhead) -> (Image, Option<NoSlice>) {
    let burst_entry = image.staged.as_ref().map_or(image.entries.burst, |staged| staged.burst_entry);
    let with_bursts = |burst| Entries { burst, ..image.entries };
    let plain = Image { staged: None, entries: with_bursts(burst_entry), ..image.clone() };
    match ahead(&plain.spec, &plain.code, &plain.maps, look_ahead) {
        Ok(ahead) => {
            let staged = Some(Staged { ahead: Arc::new(ahead), burst_entry });
            (Image { staged, entries: with_bursts(staged_entry), ..plain }, None)
        }
        Err(no_slice) => (plain, Some(no_slice)),
    }
}

/// The stages before a program; without them it runs packet by packet.
pub(crate) fn ahead(
    spec: &ProgramSpec,
    code: &Code,
    maps: &[Arc<Map>],
    look_ahead: LookAhead,
) -> Result<Ahead, NoSlice> {
    let slice = Slice::of(spec, code, maps, look_ahead)?;
    native::ahead(slice, maps, look_ahead).map_err(|error| NoSlice::Compile(error.to_string()))
}
