//! Objects as the running kernel gets them from libbpf.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use paceline::btf::Btf;
use paceline::{Object, ObjectOptions, OpenError, kernel};

/// Reads an object that is compared with the kernel's result, with CO-RE relocations by the kernel's types if they are
/// available.
///
/// # Errors
/// As [`Object::open`].
pub fn open(path: &Path) -> Result<Object, OpenError> {
    static TYPES: OnceLock<Option<Btf>> = OnceLock::new();
    let types = || kernel::types(kernel::running_types()?).ok();
    let bytes = fs::read(path)?;
    let needs = Object::needs(&bytes)?;
    let target_btf = TYPES.get_or_init(types).as_ref().filter(|_| needs.relocations > 0);
    let kernel_version = kernel::running_version().unwrap_or(kernel::KernelVersion::DEFAULT);
    Object::parse_with(
        &bytes,
        &ObjectOptions::default().target_btf(target_btf).kernel_version(kernel_version),
    )
}
