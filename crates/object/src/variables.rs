//! Local variables of functions, by the object's DWARF.

use std::collections::HashMap;
use std::sync::Arc;

use crate::dwarf::Local;
use paceline_isa::RawInsn;
use paceline_spec::Variable;

use crate::elf_file::{ElfFile, Place, Relocation, reloc};
use crate::function::Function;

/// Bits of an address below the section's number: sections of code are relocated to addresses of their own, which tell them apart.
const SECTION_SHIFT: u32 = 32;

/// Variables by section, sorted by the first slot.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    by_section: HashMap<usize, Vec<Variable>>,
}

impl Variables {
    /// Reads the variables of an object that was parsed with its debug information.
    pub(crate) fn new(elf: &ElfFile<'_>) -> Self {
        let mut sections: HashMap<&str, Vec<u8>> = HashMap::new();
        for section in elf.sections.iter().filter(|section| section.name.starts_with(".debug_")) {
            sections
                .entry(section.name)
                .or_insert_with(|| relocated(elf, section.data, &section.relocations));
        }
        let mut variables = Self::default();
        for local in crate::dwarf::locals(|name| sections.get(name).map(Vec::as_slice).unwrap_or_default()) {
            variables.add(local);
        }
        variables.by_section.values_mut().for_each(|of| of.sort_by_key(|variable| variable.slots.start));
        variables
    }

    fn add(&mut self, Local { name, range, register, scalar, enumerators }: Local) {
        let Some(section) = (range.start >> SECTION_SHIFT).checked_sub(1) else { return };
        let slot = |address: u64| {
            let offset = address.checked_sub((section + 1) << SECTION_SHIFT)?;
            usize::try_from(offset / RawInsn::BYTES as u64).ok()
        };
        let (Some(start), Some(end), Ok(section)) =
            (slot(range.start), slot(range.end), usize::try_from(section))
        else {
            return;
        };
        let variable = Variable { name: Arc::from(name), slots: start..end, register, scalar, enumerators };
        self.by_section.entry(section).or_default().push(variable);
    }

    /// Variables of a function, by slots of its section.
    pub(crate) fn of<'v>(&'v self, function: &Function<'_>) -> &'v [Variable] {
        let all = self.by_section.get(&function.section).map(Vec::as_slice).unwrap_or_default();
        let position = |slot| all.partition_point(|variable| variable.slots.start < slot);
        all.get(position(function.start)..position(function.end)).unwrap_or_default()
    }
}

/// Bytes of a section after relocation. Addends are in the bytes.
fn relocated(elf: &ElfFile<'_>, data: &[u8], relocations: &[Relocation]) -> Vec<u8> {
    let mut data = data.to_vec();
    for relocation in relocations {
        let Some(symbol) = elf.symbols.get(relocation.symbol as usize) else { continue };
        let base = match symbol.place {
            Place::Section(section) if elf.sections.get(section).is_some_and(|section| section.is_code()) => {
                (section as u64 + 1) << SECTION_SHIFT
            }
            _ => 0,
        };
        relocate(&mut data, *relocation, base.wrapping_add(symbol.value));
    }
    data
}

/// Adds a symbol's value to the bytes at a relocation.
fn relocate(data: &mut [u8], Relocation { offset, kind, .. }: Relocation, value: u64) {
    let Some(rest) = usize::try_from(offset).ok().and_then(|offset| data.get_mut(offset..)) else { return };
    if let (reloc::R_64_ABS64, Some(field)) = (kind, rest.first_chunk_mut()) {
        *field = u64::from_ne_bytes(*field).wrapping_add(value).to_ne_bytes();
    } else if let (reloc::R_64_ABS32, Some(field)) = (kind, rest.first_chunk_mut()) {
        *field = u32::from_ne_bytes(*field).wrapping_add(value as u32).to_ne_bytes();
    }
}
