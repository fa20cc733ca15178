//! Object files.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use paceline_btf::{Btf, BtfExt, Type};
use paceline_spec::{MapSpec, ProgramSpec};

use super::error::LoadError;
use crate::core::{self, CoreRelocations};
use crate::debug_info::DebugInfo;
use crate::elf_file::{ElfFile, Place};
use crate::externs::{Externs, needed_config};
use crate::function::Functions;
use crate::kernel::Needs;
use crate::link::Linker;
use crate::maps::{self, Maps};
use crate::numbered::Numbered;
use crate::options::ObjectOptions;
use crate::relocate::Relocator;
use crate::section::program_section;
use crate::variables::Variables;
use crate::{btf_maps, data_maps, legacy_maps, tagged};

/// A program that is not in [`Object::programs`].
#[derive(Clone, Debug)]
pub struct SkippedProgram {
    /// Name of its function.
    pub name: String,
    /// Its section, which determines its type.
    pub section: String,
    /// The error of a program in a section with `?`: such programs are optional. `None` for programs of types that Paceline does
    /// not run.
    pub error: Option<Arc<LoadError>>,
}

/// A pointer in initialized data, such as an element of an array of strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPointer {
    /// Section of the pointer.
    pub section: String,
    /// Its offset in bytes.
    pub offset: u64,
    /// Its target: a symbol, or a section.
    pub symbol: String,
}

/// The programs and maps of an object file.
#[derive(Clone, Debug)]
pub struct Object {
    /// Programs of the types that Paceline runs, in file order.
    pub programs: Vec<ProgramSpec>,
    /// Maps; programs refer to them by index.
    pub maps: Vec<MapSpec>,
    /// Types, with the sizes of data sections and the offsets of their variables filled in.
    pub btf: Option<Arc<Btf>>,
    /// License, empty if missing.
    pub license: String,
    /// Programs of other types, and optional ones with errors.
    pub skipped: Vec<SkippedProgram>,
    /// Pointers in data that are not relocated, as with libbpf: maps have no addresses before a program runs. A program that uses
    /// them reads offsets. At most the first 1024.
    pub data_pointers: Vec<DataPointer>,
}

impl Object {
    /// Reads an object file with default options.
    ///
    /// # Errors
    /// If the file is not a BPF object of this machine's byte order, or is malformed.
    pub fn parse(bytes: &[u8]) -> Result<Self, LoadError> {
        Self::parse_with(bytes, &ObjectOptions::default())
    }

    /// Reads an object file.
    ///
    /// # Errors
    /// As [`Object::parse`]; also if a program depends on a kernel property that the options lack.
    pub fn parse_with(bytes: &[u8], options: &ObjectOptions<'_>) -> Result<Self, LoadError> {
        let elf = ElfFile::parse_with(bytes, options.variables)?;
        let license = license(&elf);
        let mut btf = parse_types(&elf)?;
        let functions = Functions::find_all(&elf)?;
        let mut maps = collect_maps(&elf, btf.as_ref(), &functions)?;
        let (externs, config) = Externs::collect(&elf, btf.as_ref(), options)?;
        if let Some(config) = config {
            if let Some(btf) = &mut btf
                && let Some((id, _)) = btf.data_section(".kconfig")
            {
                btf.lay_out_section(id, config.value_size, |name| externs.config_offset(name));
            }
            maps.add_config(config);
        }
        let numbered = Numbered::collect(&elf, &functions, &mut maps)?;
        let mut tagged = HashSet::new();
        if let Some(btf) = &btf {
            tagged = tagged::collect(btf, &functions, &mut maps.specs)?;
            maps.specs.iter_mut().for_each(|spec| spec.find_special_fields(btf));
        }
        let records = parse_records(&elf)?;
        let debug = btf.as_ref().map(|btf| DebugInfo::new(btf, &records));
        let core = btf.as_ref().map(|local| CoreRelocations::new(local, &records, options.target_btf));
        let relocator = Relocator {
            elf: &elf,
            functions: &functions,
            maps: &maps,
            externs: &externs,
            core,
            kfuncs: options.kfuncs,
        };
        let variables = if options.variables { Variables::new(&elf) } else { Variables::default() };
        let mut linker = Linker::new(relocator, debug, variables, &license);
        let (mut programs, mut skipped) = (Vec::new(), Vec::new());
        for (index, function) in functions.iter().filter(|(_, f)| f.exported || tagged.contains(f.name)) {
            let name = elf.section_name(function.section);
            if name == ".text" {
                continue;
            }
            let given = options.given_type.filter(|given| given.program == Some(function.name));
            let given = given.or(options.given_type.filter(|_| program_section(name).is_none()));
            let own = || numbered.section(function.name).or_else(|| program_section(name));
            let section = given.and_then(|given| given.section(function.name)).or_else(own);
            let error = match section.map(|section| linker.link(index, function, section)) {
                Some(Ok(program)) => {
                    programs.push(program);
                    continue;
                }
                Some(Err(error)) if section.is_some_and(|s| s.autoload) => return Err(error),
                Some(Err(error)) => Some(Arc::new(error)),
                None => None,
            };
            skipped.push(SkippedProgram { name: function.name.to_owned(), section: name.to_owned(), error });
        }
        drop(linker);
        if programs.is_empty() {
            // Without a program that calls them, they are programs whose author forgot the section.
            let forgotten =
                functions.iter().filter(|(_, f)| f.exported && elf.section_name(f.section) == ".text");
            let skip = |name: &str| SkippedProgram {
                name: name.to_owned(),
                section: ".text".to_owned(),
                error: None,
            };
            skipped.extend(forgotten.map(|(_, function)| skip(function.name)));
        }
        let data_pointers = data_pointers(&elf, &maps);
        Ok(Self { programs, maps: maps.specs, btf: btf.map(Arc::new), license, skipped, data_pointers })
    }

    /// The kernel properties that an object depends on.
    ///
    /// # Errors
    /// As [`Object::parse`], for the parts that are read.
    pub fn needs(bytes: &[u8]) -> Result<Needs, LoadError> {
        let elf = ElfFile::parse(bytes)?;
        let btf = parse_types(&elf)?;
        let records = parse_records(&elf)?;
        let relocations = btf.as_ref().map(|btf| core::needed(btf, &records)).unwrap_or_default();
        Ok(Needs { relocations, config: needed_config(&elf, btf.as_ref()) })
    }

    /// The program with a name.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<&ProgramSpec> {
        self.programs.iter().find(|p| p.name == name)
    }

    /// Sets the number of entries of a map before it is created (`bpf_map__set_max_entries`); the inner maps of a map are called
    /// `NAME.inner`. The size of a ring buffer is rounded up as by libbpf. Returns false if the map does not exist.
    pub fn set_entries(&mut self, map: &str, entries: u32) -> bool {
        let spec = match self.maps.iter().position(|spec| spec.name == map) {
            Some(index) => self.maps.get_mut(index),
            None => self
                .maps
                .iter_mut()
                .filter_map(|spec| spec.inner.as_deref_mut())
                .find(|spec| spec.name == map),
        };
        let Some(spec) = spec else { return false };
        spec.max_entries = if spec.kind.is_ring_buffer() { maps::ring_size(entries) } else { entries };
        true
    }

    /// Sets the definition of the inner maps of a map of maps before it is created (`bpf_map__set_inner_map_fd`). Returns false if
    /// no map of maps has this name.
    pub fn set_inner(&mut self, map: &str, inner: MapSpec) -> bool {
        let found = self.maps.iter_mut().find(|spec| spec.name == map && spec.kind.holds_maps());
        let Some(spec) = found else { return false };
        let name = format!("{map}.inner");
        spec.inner = Some(Box::new(MapSpec { name, inner: None, ..inner }));
        true
    }

    /// The map with a name.
    #[must_use]
    pub fn map(&self, name: &str) -> Option<&MapSpec> {
        self.maps.iter().find(|m| m.name == name)
    }
}

/// All maps of an object in libbpf's order: legacy definitions, BTF definitions, then data sections.
fn collect_maps(elf: &ElfFile<'_>, btf: Option<&Btf>, functions: &Functions<'_>) -> Result<Maps, LoadError> {
    let mut maps = Maps::default();
    legacy_maps::collect(elf, btf, &mut maps)?;
    btf_maps::collect(elf, btf, functions, &mut maps)?;
    data_maps::collect(elf, btf, &mut maps)?;
    Ok(maps)
}

fn data_pointers(elf: &ElfFile<'_>, maps: &Maps) -> Vec<DataPointer> {
    let data = elf.sections.iter().enumerate().filter(|(index, _)| maps.of_section(*index).is_some());
    let pointers = data.flat_map(|(_, section)| section.relocations.iter().map(move |r| (section.name, r)));
    let label = |symbol: u32| elf.symbols.get(symbol as usize).map_or("", |s| elf.symbol_label(s));
    pointers
        .map(|(section, relocation)| DataPointer {
            section: section.to_owned(),
            offset: relocation.offset,
            symbol: label(relocation.symbol).to_owned(),
        })
        .take(1024)
        .collect()
}

/// The text of section `license`, truncated to the 127 bytes that the kernel uses.
fn license(elf: &ElfFile<'_>) -> String {
    let text = elf.section("license").map(|(_, s)| s.data).unwrap_or_default();
    let end = text.iter().take(127).position(|&b| b == 0).unwrap_or(text.len().min(127));
    String::from_utf8_lossy(text.get(..end).unwrap_or_default()).into_owned()
}

fn parse_types(elf: &ElfFile<'_>) -> Result<Option<Btf>, LoadError> {
    let Some((_, section)) = elf.section(".BTF") else { return Ok(None) };
    let mut btf = Btf::parse(section.data).map_err(|source| LoadError::Btf { section: ".BTF", source })?;
    let sections: HashMap<_, _> = (0..).zip(&elf.sections).map(|(i, s)| (s.name, (i, s.size))).collect();
    let exported = elf.symbols.iter().filter(|s| !s.local);
    let places: HashMap<_, _> = exported.map(|s| ((s.place, s.name), s.value)).collect();
    let data_sections: Vec<_> = btf
        .types()
        .filter_map(|(id, t)| match t {
            Type::DataSection(s) => sections.get(btf.name(s.name)).map(|section| (id, *section)),
            _ => None,
        })
        .collect();
    for (id, (index, size)) in data_sections {
        let Ok(size) = u32::try_from(size) else { continue };
        // Offsets of static variables, whose symbols are local, are already in the types.
        let offset_of = |name: &str| u32::try_from(*places.get(&(Place::Section(index), name))?).ok();
        btf.lay_out_section(id, size, offset_of);
    }
    Ok(Some(btf))
}

fn parse_records(elf: &ElfFile<'_>) -> Result<BtfExt, LoadError> {
    let Some((_, section)) = elf.section(".BTF.ext") else { return Ok(BtfExt::default()) };
    BtfExt::parse(section.data).map_err(|source| LoadError::Btf { section: ".BTF.ext", source })
}
