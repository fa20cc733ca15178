//! The programs in the kernel, by test-run.

use paceline::Object;
use paceline_testkit::kernel::KernelObject;

use super::inputs::{FILLED, packet, value};
use crate::kernel;
use crate::measure::Work;

/// The same programs in the kernel.
pub(super) struct Kernel(KernelObject);

/// `None` if the kernel is not available.
pub(super) fn in_kernel(object: &Object) -> Option<Kernel> {
    let loaded = kernel::load(object).ok()?;
    for (spec, map) in object.maps().iter().zip(&loaded.maps) {
        let filled = FILLED.iter().find(|(name, ..)| *name == spec.name);
        filled.map_or(Ok(()), |(_, key, len)| map.update(key, &value(*len), 0)).ok()?;
    }
    Some(Kernel(loaded))
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
