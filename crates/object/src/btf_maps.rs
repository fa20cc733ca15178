//! BTF-defined maps: variables in section `.maps` whose structure describes the map (`__uint`, `__type`, `__array` and `__ulong` of
//! libbpf's `bpf_helpers.h`).

use paceline_btf::{Btf, Composite, Member, Type, TypeId};
use paceline_spec::{InitialValue, MapFlags, MapKind, MapSpec, Pinning};

use super::error::LoadError;
use crate::elf_file::{ElfFile, Place, Relocation, Section, reloc};
use crate::error::MapProblem;
use crate::function::Functions;
use crate::maps::{self, Maps};

/// Cilium's value of `pinning` for maps that each load makes anew, and pins in the place of the one before.
const CILIUM_PIN_REPLACE: u32 = 1 << 4;

/// Adds the maps of section `.maps`.
pub(crate) fn collect(
    elf: &ElfFile<'_>,
    btf: Option<&Btf>,
    functions: &Functions<'_>,
    maps: &mut Maps,
) -> Result<(), LoadError> {
    let Some((section, s)) = elf.section(".maps").filter(|(_, s)| s.size > 0) else { return Ok(()) };
    let btf = btf.ok_or(LoadError::MapsWithoutTypes)?;
    let (_, variables) = btf.data_section(".maps").ok_or(LoadError::MapsWithoutTypes)?;
    let mut placed = Vec::new();
    for variable in &variables.vars {
        let Some(Type::Var { name, ty, .. }) = btf.get(variable.ty) else { continue };
        let name = btf.name(*name);
        let definition = Definition::parse(btf, *ty, name, true)
            .map_err(|problem| LoadError::Map { map: name.to_owned(), problem })?;
        let offset = u64::from(variable.offset);
        let map = maps.add_at(section, offset, definition.spec);
        placed.push(Placed { offset, map, values: definition.values });
    }
    placed.sort_by_key(|p| p.offset);
    for relocation in &s.relocations {
        add_initial_value(elf, functions, maps, (section, s), &placed, relocation)?;
    }
    Ok(())
}

/// A map with the position of its definition.
struct Placed {
    /// Offset in bytes into the section.
    offset: u64,
    map: usize,
    /// Offset in bytes of `values` in the definition.
    values: Option<u64>,
}

/// Adds the map or program to which a relocation in a definition's `values` refers to the map's initial values.
fn add_initial_value(
    elf: &ElfFile<'_>,
    functions: &Functions<'_>,
    maps: &mut Maps,
    (section, s): (usize, &Section<'_>),
    placed: &[Placed],
    relocation: &Relocation,
) -> Result<(), LoadError> {
    let nowhere = || LoadError::RelocationNowhere {
        section: s.name.to_owned(),
        offset: relocation.offset,
        symbol: relocation.symbol,
    };
    let addend = usize::try_from(relocation.offset)
        .ok()
        .and_then(|at| s.data.get(at..)?.first_chunk())
        .map(|bytes| i64::from_ne_bytes(*bytes))
        .ok_or_else(nowhere)?;
    if relocation.kind == reloc::NONE {
        return Ok(());
    }
    let symbol = elf.symbols.get(relocation.symbol as usize).ok_or_else(nowhere)?;
    let before = placed.partition_point(|p| p.offset <= relocation.offset);
    let holder = before.checked_sub(1).and_then(|i| placed.get(i)).ok_or_else(nowhere)?;
    let spec = maps.specs.get(holder.map).ok_or_else(nowhere)?;
    let wrong = || LoadError::Map {
        map: spec.name.clone(),
        problem: MapProblem::Initial(relocation.offset.wrapping_sub(holder.offset)),
    };
    let first = holder.values.and_then(|values| holder.offset.checked_add(values)).ok_or_else(wrong)?;
    let distance = relocation.offset.checked_sub(first).filter(|d| d % 8 == 0).ok_or_else(wrong)?;
    let key = u32::try_from(distance / 8).map_err(|_| wrong())?;
    let target = symbol.value.checked_add_signed(addend);
    let value = match (symbol.place, target) {
        (Place::Section(at), Some(target)) if at == section && spec.kind.holds_maps() => {
            maps.at(at, target).map(InitialValue::Map)
        }
        (Place::Section(at), Some(target)) if spec.kind.holds_programs() && target % 8 == 0 => {
            let function = i64::try_from(target / 8).ok().and_then(|slot| functions.starting_at(at, slot));
            function.and_then(|f| functions.get(f)).map(|f| InitialValue::Program(f.name.to_owned()))
        }
        _ => None,
    };
    let value = value.ok_or_else(wrong)?;
    if let Some(spec) = maps.specs.get_mut(holder.map) {
        spec.contents.push((key.to_ne_bytes().to_vec(), value));
    }
    Ok(())
}

/// Maximum number of members; hostile types could share thousands of members between thousands of maps.
const MOST_MEMBERS: usize = 32;

/// Contents of a definition's structure.
struct Definition {
    spec: MapSpec,
    /// Offset in bytes of `values`.
    values: Option<u64>,
}

impl Definition {
    fn parse(btf: &Btf, ty: TypeId, name: &str, outermost: bool) -> Result<Self, MapProblem> {
        let (_, Type::Struct(definition)) = btf.resolve(ty)? else { return Err(MapProblem::NotStruct) };
        if definition.members.len() > MOST_MEMBERS {
            return Err(MapProblem::NotStruct);
        }
        // The kind decides the meaning of the other members, so it is read first, regardless of their order.
        let kind = match member(btf, definition, "type") {
            Some(m) => number(btf, m, "type")?,
            None => return Err(MapProblem::NoKind),
        };
        let kind = MapKind::from_number(kind).ok_or(MapProblem::UnknownKind(kind))?;
        let mut parsed = Self { spec: maps::blank(name, kind), values: None };
        for m in &definition.members {
            parsed.read_member(btf, m, outermost)?;
        }
        if kind.is_ring_buffer() {
            parsed.spec.max_entries = maps::ring_size(parsed.spec.max_entries);
        }
        Ok(parsed)
    }

    fn read_member(&mut self, btf: &Btf, m: &Member, outermost: bool) -> Result<(), MapProblem> {
        let spec = &mut self.spec;
        let name = btf.name(m.name);
        match name {
            "type" => {}
            "max_entries" => spec.max_entries = number(btf, m, name)?,
            "map_flags" => spec.flags = MapFlags(number(btf, m, name)?),
            // Ignored: memory is allocated on the node of its user.
            "numa_node" => {
                number(btf, m, name)?;
            }
            "key_size" => set_size(&mut spec.key_size, "key", u64::from(number(btf, m, name)?))?,
            "value_size" => set_size(&mut spec.value_size, "value", u64::from(number(btf, m, name)?))?,
            "key" => {
                spec.key_type = pointee(btf, m, name, "type")?;
                set_size(&mut spec.key_size, "key", btf.size_of(spec.key_type)?)?;
            }
            "value" => {
                spec.value_type = pointee(btf, m, name, "type")?;
                set_size(&mut spec.value_size, "value", btf.size_of(spec.value_type)?)?;
            }
            "pinning" => {
                spec.pinning = match number(btf, m, name)? {
                    0 => Pinning::None,
                    1 if outermost => Pinning::ByName,
                    CILIUM_PIN_REPLACE if outermost => Pinning::None,
                    1 => return Err(MapProblem::Inner),
                    other => return Err(MapProblem::Pinning(other)),
                }
            }
            "map_extra" => spec.extra = long_number(btf, m, name)?,
            "values" => self.read_values(btf, m, outermost)?,
            other => return Err(MapProblem::UnknownMember(other.to_owned())),
        }
        Ok(())
    }

    /// `__array(values, struct { ... })`: the definition of inner maps, or the declaration of a program array.
    fn read_values(&mut self, btf: &Btf, m: &Member, outermost: bool) -> Result<(), MapProblem> {
        let form = || MapProblem::Form { member: "values".to_owned(), form: "array" };
        let (_, Type::Array { element, .. }) = btf.resolve(m.ty)? else { return Err(form()) };
        let (_, Type::Ptr(target)) = btf.resolve(*element)? else { return Err(form()) };
        match self.spec.kind {
            kind if kind.holds_maps() => {
                if !outermost {
                    return Err(MapProblem::Inner);
                }
                let inner = Self::parse(btf, *target, &format!("{}.inner", self.spec.name), false)?;
                if inner.values.is_some() {
                    return Err(MapProblem::Inner);
                }
                self.spec.inner = Some(Box::new(inner.spec));
            }
            kind if kind.holds_programs() => match btf.resolve(*target)?.1 {
                Type::FuncProto { .. } => {}
                _ => return Err(form()),
            },
            kind => return Err(MapProblem::Values(kind.name())),
        }
        set_size(&mut self.spec.value_size, "value", 4)?;
        self.values = Some(u64::from(m.bit_offset / 8));
        Ok(())
    }
}

fn member<'a>(btf: &Btf, definition: &'a Composite, name: &str) -> Option<&'a Member> {
    definition.members.iter().find(|m| btf.name(m.name) == name)
}

/// The number of `__uint(name, number)`: `int (*name)[number]`.
fn number(btf: &Btf, m: &Member, name: &str) -> Result<u32, MapProblem> {
    let array = pointee(btf, m, name, "uint")?;
    match btf.resolve(array)? {
        (_, Type::Array { count, .. }) => Ok(*count),
        _ => Err(MapProblem::Form { member: name.to_owned(), form: "uint" }),
    }
}

/// The number of `__ulong(name, number)`: an enumeration of one value; or of `__uint`.
fn long_number(btf: &Btf, m: &Member, name: &str) -> Result<u64, MapProblem> {
    match btf.resolve(m.ty)? {
        (_, Type::Enum(e)) => match &e.values[..] {
            [only] => Ok(only.value.cast_unsigned()),
            _ => Err(MapProblem::Form { member: name.to_owned(), form: "ulong" }),
        },
        _ => number(btf, m, name).map(u64::from),
    }
}

/// The type of `__type(name, type)`: `typeof(type) *name`.
fn pointee(btf: &Btf, m: &Member, name: &str, form: &'static str) -> Result<TypeId, MapProblem> {
    match btf.resolve(m.ty)? {
        (_, Type::Ptr(target)) => Ok(*target),
        _ => Err(MapProblem::Form { member: name.to_owned(), form }),
    }
}

/// Sets the size of a key or value; a second definition must agree with the first.
fn set_size(place: &mut u32, what: &'static str, size: u64) -> Result<(), MapProblem> {
    if *place != 0 && u64::from(*place) != size {
        return Err(MapProblem::SizeConflict { what, first: u64::from(*place), second: size });
    }
    *place = u32::try_from(size).map_err(|_| MapProblem::Size { what, size })?;
    Ok(())
}
