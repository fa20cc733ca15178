//! Global variables: `.rodata`, `.data` and `.bss` become array maps with one value.

use std::collections::HashMap;

use paceline_btf::{Btf, Type, TypeId};
use paceline_spec::{InitialValue, MapFlags, MapKind, MapSpec};

use super::error::LoadError;
use crate::elf_file::{ElfFile, Section};
use crate::maps::{self, Maps};
use crate::section::{DataKind, data_section};

/// Adds a map for every nonempty data section. The maps have the full names of their sections; libbpf truncates them to the 15
/// characters that the kernel allows.
pub(crate) fn collect(elf: &ElfFile<'_>, btf: Option<&Btf>, maps: &mut Maps) -> Result<(), LoadError> {
    let types = btf.map(data_sections).unwrap_or_default();
    for (index, section) in elf.sections.iter().enumerate().filter(|(_, s)| s.size > 0) {
        let kind = match data_section(section.name) {
            Some(DataKind::Zero) if section.is_nobits() => DataKind::Zero,
            // Linkers that merge `.bss` write it as ordinary data.
            Some(_) if section.is_progbits() && section.name.starts_with(".bss") => DataKind::Data,
            Some(kind) if section.is_progbits() => kind,
            _ => continue,
        };
        let value_type = types.get(section.name).copied().unwrap_or(0);
        maps.add_section(index, data_map(section, kind, value_type)?);
    }
    Ok(())
}

/// Types of data sections by name.
fn data_sections(btf: &Btf) -> HashMap<&str, TypeId> {
    let sections = btf.types().filter(|(_, t)| matches!(t, Type::DataSection(_)));
    sections.map(|(id, _)| (btf.type_name(id), id)).collect()
}

fn data_map(section: &Section<'_>, kind: DataKind, value_type: u32) -> Result<MapSpec, LoadError> {
    let too_large = |_| LoadError::DataTooLarge { section: section.name.to_owned(), size: section.size };
    let value_size = u32::try_from(section.size).map_err(too_large)?;
    let contents = match kind {
        DataKind::Zero => Vec::new(),
        DataKind::Data | DataKind::ReadOnly => {
            vec![(0u32.to_ne_bytes().to_vec(), InitialValue::Bytes(section.data.to_vec()))]
        }
    };
    let read_only = kind == DataKind::ReadOnly;
    Ok(MapSpec {
        key_size: 4,
        value_size,
        max_entries: 1,
        flags: if read_only { MapFlags::RDONLY_PROG } else { MapFlags::default() },
        value_type,
        contents,
        frozen: read_only,
        ..maps::blank(section.name, MapKind::Array)
    })
}
