//! The kernel that objects are loaded for: the running one, with overrides from the command line.

use std::cell::OnceCell;
use std::path::Path;

use paceline::btf::Btf;
use paceline::kernel::{self, Config, KernelVersion, Needs};

use super::args::ObjectArgs;
use super::error::ObjectError;

/// The word for no types; a file of that name is `./none`.
const NONE: &str = "none";

/// Types, and the file that they are from.
#[derive(Debug, Default)]
struct Types(Option<(Btf, String)>);

/// Reads files of a kernel; its types once.
#[derive(Debug, Default)]
pub(super) struct KernelReader {
    types: OnceCell<Types>,
}

/// The parts of a kernel that an object uses.
pub(super) struct Kernel<'a> {
    pub(super) types: Option<&'a Btf>,
    pub(super) version: KernelVersion,
    pub(super) config: Option<Config>,
    types_file: Option<&'a str>,
    config_file: Option<String>,
}

impl KernelReader {
    /// Reads the parts of a kernel that an object needs, and every file that the command line names, so that a wrong name
    /// is an error.
    pub(super) fn read(&self, args: &ObjectArgs, needs: &Needs) -> Result<Kernel<'_>, ObjectError> {
        let reads_types = needs.relocations > 0 || args.btf.is_some();
        let types = if reads_types { self.types(args)?.0.as_ref() } else { None };
        let version = args.kernel_version.or_else(kernel::running_version);
        let running = || kernel::running_config().filter(|_| needs.options());
        let file = args.kconfig.clone().or_else(running);
        let config = file.as_deref().map(|path| read("--kconfig", path, kernel::config)).transpose()?;
        Ok(Kernel {
            types: types.map(|(types, _)| types),
            version: version.unwrap_or(KernelVersion::DEFAULT),
            config,
            types_file: types.map(|(_, name)| name.as_str()),
            config_file: file.map(|path| path.display().to_string()),
        })
    }

    fn types(&self, args: &ObjectArgs) -> Result<&Types, ObjectError> {
        if let Some(types) = self.types.get() {
            return Ok(types);
        }
        let path = match args.btf.as_deref() {
            Some(path) if path == Path::new(NONE) => None,
            Some(path) => Some(path),
            None => kernel::running_types(),
        };
        let types = path.map(|path| read("--btf", path, kernel::types)).transpose()?;
        let types = Types(types.zip(path.map(|path| path.display().to_string())));
        Ok(self.types.get_or_init(|| types))
    }
}

fn read<T>(
    option: &'static str,
    path: &Path,
    read: impl FnOnce(&Path) -> Result<T, kernel::KernelFileError>,
) -> Result<T, ObjectError> {
    read(path).map_err(|source| ObjectError::Kernel {
        option,
        name: path.display().to_string(),
        source: Box::new(source),
    })
}

impl Kernel<'_> {
    /// The parts that an object used, in a line.
    pub(super) fn used(&self, needs: &Needs) -> Option<String> {
        let mut used = Vec::new();
        match (needs.relocations, self.types_file) {
            (0, _) => {}
            (n, Some(file)) => used.push(format!("{n} CO-RE relocations are by the types of {file}")),
            (n, None) => used.push(format!(
                "{n} CO-RE relocations have no types of a kernel, fields are where the object has them; --btf FILE gives types"
            )),
        }
        if needs.version() {
            used.push(format!("the kernel's version is {}", self.version));
        }
        match &self.config_file {
            Some(file) if needs.options() => used.push(format!("its configuration is {file}")),
            None if needs.options() => {
                used.push("it has no configuration; --kconfig FILE gives one".to_owned())
            }
            Some(_) | None => {}
        }
        (!used.is_empty()).then(|| used.join("; "))
    }
}
