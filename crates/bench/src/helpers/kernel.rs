//! The programs in the kernel, by test-run.

use std::error::Error;

use paceline::Object;
use paceline_testkit::kernel::{KernelObject, probe};

use super::inputs::{FILLED, packet, value};
use crate::kernel;
use crate::measure::Work;

/// The same programs in the kernel.
pub(super) struct Kernel(KernelObject);

/// `None` if the kernel is not available.
///
/// # Errors
/// The kernel refuses the programs, or an element of a map.
pub(super) fn in_kernel(object: &Object) -> Result<Option<Kernel>, Box<dyn Error>> {
    if probe().is_err() {
        return Ok(None);
    }
    let loaded = kernel::load(object)?;
    for (spec, map) in object.maps().iter().zip(&loaded.maps) {
        let filled = FILLED.iter().find(|(name, ..)| *name == spec.name);
        filled.map_or(Ok(()), |(_, key, len)| map.update(key, &value(*len), 0))?;
    }
    Ok(Some(Kernel(loaded)))
}

pub(super) fn kernel_name() -> String {
    kernel::name()
}

impl Kernel {
    pub(super) fn work(&self, index: usize, count: usize) -> Work<'_> {
        Box::new(move || {
            let program = self.0.programs.get(index).ok_or("no such program")?;
            program.time(&packet(), count as u32)?;
            Ok(count as u64)
        })
    }
}
