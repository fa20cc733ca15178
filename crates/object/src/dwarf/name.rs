//! Names and types of locals, which for inlined functions are in the entry that they are copies of.

use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, Result, Unit, UnitOffset};

use crate::dwarf::local::Reader;

/// Copies of copies, at most: hostile entries may be cyclic.
const MOST_STEPS: usize = 8;

/// Longest name in bytes that is kept.
pub(crate) const LONGEST: usize = 256;

type Entry<'a, 'u> = DebuggingInformationEntry<'u, 'u, Reader<'a>>;

/// Name and type of an entry.
pub(crate) fn name_and_type<'a>(
    dwarf: &Dwarf<Reader<'a>>,
    unit: &Unit<Reader<'a>>,
    entry: &Entry<'a, '_>,
) -> Result<Option<(String, UnitOffset)>> {
    let (mut entry, mut name, mut ty) = (entry.clone(), None, None);
    for _ in 0..MOST_STEPS {
        if let (None, Some(value)) = (&name, entry.attr_value(gimli::DW_AT_name)?) {
            name = Some(dwarf.attr_string(unit, value)?);
        }
        if let (None, Some(AttributeValue::UnitRef(to))) = (ty, entry.attr_value(gimli::DW_AT_type)?) {
            ty = Some(to);
        }
        match entry.attr_value(gimli::DW_AT_abstract_origin)? {
            Some(AttributeValue::UnitRef(origin)) => entry = unit.entry(origin)?,
            _ => break,
        }
    }
    let name = name.and_then(|name| name.to_string().ok()).filter(|name| name.len() <= LONGEST);
    Ok(name.map(str::to_owned).zip(ty))
}
