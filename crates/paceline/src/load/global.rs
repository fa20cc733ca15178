//! Global variables, set to values of Rust types before the object is loaded.

use paceline_btf::{Btf, Type};
use paceline_maps::Plain;
use paceline_spec::{InitialValue, MapSpec};

use super::object::Object;

/// A global variable cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GlobalError {
    /// The object was compiled without types, which name its variables.
    #[error("the object has no BTF, which names its variables")]
    NoTypes,
    /// The object has no variable of this name.
    #[error("no variable {name} (available: {})", .names.join(", "))]
    NoVariable {
        /// The name.
        name: String,
        /// The names of its variables.
        names: Vec<String>,
    },
    /// The variable is of another size.
    #[error("variable {name} has {expected} bytes, the value has {found}")]
    Size {
        /// Name of the variable.
        name: String,
        /// Its size in bytes.
        expected: usize,
        /// The size of the value in bytes.
        found: usize,
    },
}

/// A variable: index of its map, offset and size in the map's value.
type Found = (usize, usize, usize);

impl Object {
    /// Sets the initial value of a global variable, constants (`.rodata`) too: they cannot be changed once the object is loaded.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vlan.o");
    /// let mut object = paceline::Object::open(path)?;
    /// object.set_global("push_vid", &7_u16)?;
    /// assert!(object.set_global("push_vid", &7_u64).is_err(), "it has two bytes");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GlobalError`].
    pub fn set_global<T: Plain>(&mut self, name: &str, value: &T) -> Result<(), GlobalError> {
        let btf = self.shared_btf().ok_or(GlobalError::NoTypes)?;
        let (map, offset, size) = self.global(&btf, name)?;
        let value = value.as_bytes();
        if value.len() != size {
            return Err(GlobalError::Size { name: name.to_owned(), expected: size, found: value.len() });
        }
        let spec = &mut self.specs_mut().maps[map];
        let mut bytes = vec![0; spec.value_size as usize];
        if let Some((_, InitialValue::Bytes(initial))) = spec.contents.first() {
            bytes.iter_mut().zip(initial).for_each(|(byte, initial)| *byte = *initial);
        }
        if let Some(place) = bytes.get_mut(offset..offset + size) {
            place.copy_from_slice(value);
        }
        spec.contents = vec![(0_u32.to_ne_bytes().to_vec(), InitialValue::Bytes(bytes))];
        Ok(())
    }

    fn global(&self, btf: &Btf, name: &str) -> Result<Found, GlobalError> {
        let mut names = Vec::new();
        for (index, spec) in self.maps().iter().enumerate() {
            for var in section(btf, spec) {
                let (start, end) = (var.offset as usize, var.offset as usize + var.size as usize);
                if end > spec.value_size as usize {
                    continue;
                }
                if btf.type_name(var.ty) == name {
                    return Ok((index, start, end - start));
                }
                names.push(btf.type_name(var.ty).to_owned());
            }
        }
        Err(GlobalError::NoVariable { name: name.to_owned(), names })
    }
}

/// The variables of a map that is a section of global data.
fn section<'a>(btf: &'a Btf, spec: &MapSpec) -> &'a [paceline_btf::SectionVar] {
    match btf.get(spec.value_type) {
        Some(Type::DataSection(section)) if spec.max_entries == 1 => &section.vars,
        _ => &[],
    }
}
