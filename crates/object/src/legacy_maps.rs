//! Legacy map definitions: `struct bpf_map_def` in section `maps`.
//!
//! libbpf dropped these in version 1.0; such objects are still in use, and iproute2's own loader supports them.

use std::collections::HashMap;

use paceline_btf::{Btf, Composite, Type, TypeId};
use paceline_spec::{MapFlags, MapKind, MapSpec, Pinning};

use super::error::LoadError;
use crate::elf_file::{ElfFile, Symbol, SymbolKind};
use crate::error::MapProblem;
use crate::maps::{self, Maps};

/// Size in bytes of libbpf's `struct bpf_map_def`: type, key size, value size, entries, flags.
const DEF_SIZE: usize = 20;
/// Size in bytes of iproute2's `struct bpf_elf_map`, which adds id, pinning, inner id and inner index.
const IPROUTE2_SIZE: usize = 36;
/// `PIN_GLOBAL_NS` of iproute2: shared by all objects with a map of this name.
const PIN_GLOBAL: u32 = 2;

/// Adds the maps of section `maps`, one per symbol in it.
pub(crate) fn collect(elf: &ElfFile<'_>, btf: Option<&Btf>, maps: &mut Maps) -> Result<(), LoadError> {
    let Some((section, s)) = elf.section("maps").filter(|(_, s)| s.is_progbits()) else { return Ok(()) };
    let is_map =
        |s: &&Symbol<'_>| !s.name.is_empty() && matches!(s.kind, SymbolKind::Object | SymbolKind::Untyped);
    let mut symbols: Vec<_> = elf.symbols_in(section).filter(is_map).collect();
    symbols.sort_by_key(|s| s.value);
    symbols.dedup_by_key(|s| s.value);
    let (size, count) = (s.data.len(), symbols.len());
    if count == 0 {
        return Ok(());
    }
    // The number of definitions is that of the symbols; `st_size` differs between compilers, so the size is the section's divided
    // by it.
    if size == 0 || size % count != 0 {
        return Err(LoadError::LegacyMaps { size: s.size, count });
    }
    let annotations = btf.map(annotations).unwrap_or_default();
    let mut definitions = Vec::new();
    for symbol in symbols {
        let problem = |problem| LoadError::Map { map: symbol.name.to_owned(), problem };
        let bytes = usize::try_from(symbol.value)
            .ok()
            .and_then(|at| s.data.get(at..at.checked_add(size / count)?))
            .ok_or(problem(MapProblem::Bounds))?;
        let definition = Definition::read(bytes).map_err(problem)?;
        let spec = definition.to_spec(symbol.name, &annotations).map_err(problem)?;
        let index = maps.add_at(section, symbol.value, spec);
        if definition.id != 0 {
            maps.by_id.entry(definition.id).or_insert(index);
        }
        definitions.push((index, definition));
    }
    resolve_inner(&definitions, maps)
}

/// The members of a definition; those after `flags` exist in iproute2's format only.
#[derive(Clone, Copy, Debug)]
struct Definition {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    id: u32,
    pinning: u32,
    inner_id: u32,
}

impl Definition {
    fn read(bytes: &[u8]) -> Result<Self, MapProblem> {
        let word = |i: usize| bytes.as_chunks().0.get(i).copied().map_or(0, u32::from_ne_bytes);
        let known = if bytes.len() == IPROUTE2_SIZE { IPROUTE2_SIZE } else { DEF_SIZE };
        if let Some(at) = bytes.iter().skip(known).position(|&b| b != 0) {
            return Err(MapProblem::Unknown(known + at));
        }
        let extra = |i| if known == IPROUTE2_SIZE { word(i) } else { 0 };
        Ok(Self {
            kind: word(0),
            key_size: word(1),
            value_size: word(2),
            max_entries: word(3),
            flags: word(4),
            id: extra(5),
            pinning: extra(6),
            inner_id: extra(7),
        })
    }

    fn to_spec(self, name: &str, annotations: &Annotations<'_>) -> Result<MapSpec, MapProblem> {
        let kind = match self.kind {
            0 => return Err(MapProblem::NoKind),
            number => MapKind::from_number(number).ok_or(MapProblem::UnknownKind(number))?,
        };
        let (key_type, value_type) = annotations.get(name).copied().unwrap_or_default();
        Ok(MapSpec {
            key_size: self.key_size,
            value_size: self.value_size,
            max_entries: self.max_entries,
            flags: MapFlags(self.flags),
            pinning: if self.pinning == PIN_GLOBAL { Pinning::ByName } else { Pinning::None },
            key_type,
            value_type,
            ..maps::blank(name, kind)
        })
    }
}

/// Types of key and value by map name.
type Annotations<'a> = HashMap<&'a str, (TypeId, TypeId)>;

/// The annotations of `BPF_ANNOTATE_KV_PAIR(name, key, value)`, in `struct ____btf_map_NAME`.
fn annotations(btf: &Btf) -> Annotations<'_> {
    let annotation = |t| match t {
        &Type::Struct(Composite { name, ref members, .. }) => match members[..] {
            [key, value] => Some((btf.name(name).strip_prefix("____btf_map_")?, (key.ty, value.ty))),
            _ => None,
        },
        _ => None,
    };
    btf.types().filter_map(|(_, t)| annotation(t)).collect()
}

/// Resolves iproute2's references to inner map definitions by `id`.
fn resolve_inner(definitions: &[(usize, Definition)], maps: &mut Maps) -> Result<(), LoadError> {
    for (outer, definition) in definitions {
        let Some(spec) = maps.specs.get(*outer) else { continue };
        if !spec.kind.holds_maps() || definition.inner_id == 0 {
            continue;
        }
        let inner = maps.by_id.get(&definition.inner_id).and_then(|index| maps.specs.get(*index)).cloned();
        let inner = inner.ok_or_else(|| LoadError::Map {
            map: spec.name.clone(),
            problem: MapProblem::NoInner(definition.inner_id),
        })?;
        if inner.kind.holds_maps() {
            return Err(LoadError::Map { map: spec.name.clone(), problem: MapProblem::Inner });
        }
        if let Some(spec) = maps.specs.get_mut(*outer) {
            spec.inner = Some(Box::new(inner));
        }
    }
    Ok(())
}
