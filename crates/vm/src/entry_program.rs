//! Programs of device and CPU maps' entries, which those name by number.

use std::any::Any;
use std::sync::Arc;

use paceline_interpreter::image::Image;
use paceline_maps::{EntryProgram, Map, MapUser, announce, entry_program};

use crate::program::Program;
use crate::target::{Named, Target};
use crate::uses::Uses;

impl Program {
    /// Lets entries of maps name it, if it was made for some.
    pub(crate) fn announce(&self) {
        if self.image.attach_of_entries().is_some() {
            let image: Arc<dyn EntryProgram> = self.image.clone();
            announce(self.id(), Arc::downgrade(&image));
        }
    }
}

/// A program that an entry keeps, as a user of the maps that it names.
struct OfEntry {
    image: Arc<Image>,
    _users: Vec<MapUser>,
}

impl Named for OfEntry {
    fn name(&self) -> &str {
        &self.image.spec.name
    }

    fn maps(&self) -> Vec<Arc<Map>> {
        self.image.maps.to_vec()
    }
}

impl Target {
    /// The program that an entry of a device or CPU map names by this [number](Program::id), as long as the entry or somebody else
    /// has it.
    #[must_use]
    pub fn of_entry(number: u32) -> Option<Self> {
        let program: Arc<dyn Any + Send + Sync> = entry_program(number)?;
        let image = program.downcast::<Image>().ok()?;
        let Uses { tables, pins } = Uses::of(&image.code, &image.maps, image.kind()).ok()?;
        let (entry, burst_entry, token) =
            (image.verdict_entry(), image.burst_entry, Arc::as_ptr(&image) as u64);
        let owner = Arc::new(OfEntry { image, _users: tables });
        // SAFETY: the owner keeps the image, which is what the token points to.
        Some(unsafe { Self::new(entry, burst_entry, token, owner, pins) })
    }
}
