//! The kernel as a contender.

use std::error::Error;

use paceline::Object;
use paceline_testkit::kernel::{KernelObject, LoadOptions, probe};

/// `Linux 6.1 test-run`
pub(crate) fn name() -> String {
    format!("Linux {} JIT, test-run", crate::machine::kernel())
}

/// An object in the kernel.
pub(crate) fn load(object: &Object) -> Result<KernelObject, Box<dyn Error>> {
    probe()?;
    let options = LoadOptions { btf: object.btf(), leave_out_types: true, cpu: 0 };
    Ok(KernelObject::load(object.maps(), object.programs(), options)?)
}
