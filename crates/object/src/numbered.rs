//! Programs that their section's name puts into a program array: `SEC("5/2")` is entry 2 of the map whose definition has `.id = 5`, as
//! iproute2 reads it (`bpf_fill_prog_arrays` in `lib/bpf_legacy.c`).

use std::collections::HashSet;

use paceline_spec::InitialValue;

use super::error::LoadError;
use crate::elf_file::ElfFile;
use crate::error::MapProblem;
use crate::function::Functions;
use crate::maps::Maps;
use crate::section::{ProgramSection, program_section};

/// The programs of such sections by their names, and their type: that of the first program whose section has one, since iproute2 loads
/// all of an object as one type.
#[derive(Debug, Default)]
pub(crate) struct Numbered {
    names: HashSet<String>,
    section: Option<ProgramSection>,
}

impl Numbered {
    /// Adds the programs to the initial values of their maps.
    pub(crate) fn collect(
        elf: &ElfFile<'_>,
        functions: &Functions<'_>,
        maps: &mut Maps,
    ) -> Result<Self, LoadError> {
        let mut numbered = Self::default();
        for (_, function) in functions.iter().filter(|(_, function)| function.exported) {
            let name = elf.section_name(function.section);
            numbered.section = numbered.section.or_else(|| program_section(name));
            let Some((id, index)) = entry(name) else { continue };
            let Some(spec) = maps.by_id.get(&id).and_then(|map| maps.specs.get_mut(*map)) else { continue };
            if !spec.kind.holds_programs() {
                continue;
            }
            let key = index.to_ne_bytes().to_vec();
            if spec.contents.iter().any(|(known, _)| *known == key) {
                let map = spec.name.clone();
                return Err(LoadError::Map { map, problem: MapProblem::TwoPrograms(index) });
            }
            spec.contents.push((key, InitialValue::Program(function.name.to_owned())));
            numbered.names.insert(function.name.to_owned());
        }
        Ok(numbered)
    }

    /// The type of a program that is an entry of a program array.
    pub(crate) fn section(&self, function: &str) -> Option<ProgramSection> {
        self.section.filter(|_| self.names.contains(function))
    }
}

/// Map and index of a section's name.
fn entry(section: &str) -> Option<(u32, u32)> {
    let (id, index) = section.split_once('/')?;
    Some((number(id)?, number(index)?))
}

/// A number as `%i` of `sscanf` reads it, without a sign.
fn number(text: &str) -> Option<u32> {
    let digits = |text: &str, radix| {
        let is_digits = text.chars().all(|c| c.is_digit(radix));
        is_digits.then(|| u32::from_str_radix(text, radix).ok()).flatten()
    };
    match (text.strip_prefix("0x"), text.strip_prefix('0')) {
        (Some(hexadecimal), _) => digits(hexadecimal, 16),
        (None, Some(octal)) if !octal.is_empty() => digits(octal, 8),
        _ => digits(text, 10),
    }
}

#[cfg(test)]
mod tests {
    use super::entry;

    #[test]
    fn names_of_sections_are_two_numbers() {
        assert_eq!(entry("5/2"), Some((5, 2)));
        assert_eq!(entry("0x10/010"), Some((16, 8)));
        assert_eq!(entry("1/0"), Some((1, 0)));
        for other in ["5", "5/", "/2", "a/2", "5/2/1", "-1/2", "5/+2", "xdp/devmap", "99999999999/1", ""] {
            assert_eq!(entry(other), None, "{other}");
        }
    }
}
