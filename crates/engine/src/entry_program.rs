//! Programs of entries of device and CPU maps, which name them by number.

use std::any::Any;
use std::sync::Arc;

use paceline_maps::{EntryProgram, Map, MapUser, announce, entry_program};
use paceline_runtime::interpreter::image::Image;

use crate::program::Program;
use crate::target::{Named, Target};
use crate::uses::Uses;

impl Program {
    /// Registers the program for entries of maps, if it was made for them.
    pub(crate) fn announce(&self) {
        if self.image.attach_of_entries().is_some() {
            let image: Arc<dyn EntryProgram> = self.image.clone();
            // SAFETY: the program is an image of this engine.
            unsafe { announce(self.id(), Arc::downgrade(&image)) };
        }
    }
}

/// A program of an entry, as a user of the maps that it names.
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
    /// The program that an entry of a device or CPU map names by this [number](Program::id), if the entry or another owner still
    /// keeps it.
    #[must_use]
    pub fn of_entry(number: u32) -> Option<Self> {
        let program: Arc<dyn Any + Send + Sync> = entry_program(number)?;
        let image = program.downcast::<Image>().ok()?;
        let Uses { tables, pins } = Uses::of(&image.code, &image.maps, image.kind()).ok()?;
        let (entry, burst_entry, token) =
            (image.verdict_entry(), image.entries.burst, Arc::as_ptr(&image) as u64);
        let per_cpu = image.per_cpu.clone();
        let owner = Arc::new(OfEntry { image, _users: tables });
        // SAFETY: the owner keeps the image, which the token points to.
        Some(unsafe { Self::new(entry, burst_entry, token, owner, pins, per_cpu) })
    }
}
