//! Reading object files.

use std::fs;
use std::path::Path;

use paceline::contents::section_of;
use paceline::coverage::Counting;
use paceline::{GivenType, MapSpec, Object, ObjectOptions, OpenError};

use super::args::{MapArg, MapValue, ObjectArgs};
use super::error::ObjectError;
use super::kernel::KernelReader;
use crate::common::console;
use crate::common::suggest::closest;

/// Reads objects, and a kernel's types at most once, when the first object asks for them.
#[derive(Debug, Default)]
pub(crate) struct Opener {
    pub(crate) args: ObjectArgs,
    kernel: KernelReader,
    /// Counters of coverage that programs get, if any.
    counting: Option<Counting>,
    /// Whether local variables are read, which only explanations need.
    explains: bool,
}

impl Opener {
    pub(crate) fn new(args: &ObjectArgs) -> Self {
        Self { args: args.clone(), kernel: KernelReader::default(), counting: None, explains: false }
    }

    /// Gives programs counters of coverage.
    pub(crate) fn counting(self, counting: Option<Counting>) -> Self {
        Self { counting, ..self }
    }

    /// Reads local variables too, for explanations.
    pub(crate) fn explaining(self, explains: bool) -> Self {
        Self { explains, ..self }
    }

    /// The object, with counters if programs get some.
    pub(crate) fn with_counters(&self, name: &str, object: Object) -> Result<Object, ObjectError> {
        let Some(counting) = self.counting else { return Ok(object) };
        object
            .with_coverage(counting)
            .map_err(|source| ObjectError::Coverage { name: name.to_owned(), source: Box::new(source) })
    }

    /// Reads an object file of which a program is wanted, or any.
    pub(crate) fn open(&self, path: &Path, program: Option<&str>) -> Result<Object, ObjectError> {
        let name = || path.display().to_string();
        let failed = |source: OpenError| ObjectError::Open { name: name(), source: Box::new(source) };
        let bytes = fs::read(path).map_err(|error| failed(error.into()))?;
        let needs = Object::needs(&bytes).map_err(failed)?;
        let kernel = self.kernel.read(&self.args, &needs)?;
        let given_type = self.args.program_type.map(|kind| GivenType { kind, program });
        let options = ObjectOptions::default()
            .target_btf(kernel.types)
            .kernel_version(kernel.version)
            .config(kernel.config.as_ref())
            .given_type(given_type)
            .variables(self.explains);
        let mut object = Object::parse_with(&bytes, &options).map_err(failed)?;
        if let Some(used) = kernel.used(&needs) {
            console::note(format_args!("{}: {used}", name()));
        }
        self.shape_maps(&mut object)?;
        self.with_counters(&name(), object)
    }

    /// Applies the shapes of `--map` to maps.
    fn shape_maps(&self, object: &mut Object) -> Result<(), ObjectError> {
        for MapArg { name, value } in &self.args.map_args {
            let inner = match value {
                MapValue::File(_) => continue,
                MapValue::Entries(_) => None,
                MapValue::Inner(_) if object.map(name).is_none() => continue,
                MapValue::Inner(other) => {
                    let names = object.maps().iter().map(|spec| spec.name.as_str());
                    let hint = closest(other, names);
                    let spec = object.map(other).cloned();
                    Some(spec.ok_or_else(|| ObjectError::NoMap {
                        option: "--map",
                        map: other.clone(),
                        hint,
                    })?)
                }
            };
            let specs = object.specs_mut();
            match (value, inner) {
                (MapValue::Entries(entries), _) => drop(specs.set_entries(name, *entries)),
                (_, Some(inner)) => drop(specs.set_inner(name, MapSpec { contents: Vec::new(), ..inner })),
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses a shape for a map that none of the objects has, and what is given to a variable as if it were a map.
    pub(crate) fn check_shapes<'a>(
        &self,
        objects: impl Iterator<Item = &'a Object> + Clone,
    ) -> Result<(), ObjectError> {
        for MapArg { name, value } in &self.args.map_args {
            // Maps with files are checked with these.
            let is_there =
                |object: &Object| object.map(name.strip_suffix(".inner").unwrap_or(name)).is_some();
            if objects.clone().any(is_there) {
                continue;
            }
            if let Some(section) = objects.clone().find_map(|object| section_of(object, name)) {
                return Err(ObjectError::Variable {
                    variable: name.clone(),
                    section: section.to_owned(),
                    value: value.to_string(),
                });
            }
            if matches!(value, MapValue::File(_)) {
                continue;
            }
            let names = objects.clone().flat_map(|object| object.maps()).map(|spec| spec.name.as_str());
            let hint = closest(name, names);
            return Err(ObjectError::NoMap { option: "--map", map: name.clone(), hint });
        }
        Ok(())
    }
}
