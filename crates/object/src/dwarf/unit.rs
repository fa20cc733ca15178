//! The entries of a unit.

use std::ops::Range;

use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, Expression, Operation, Result, Unit};

use crate::dwarf::enumeration::Enumerations;
use crate::dwarf::local::{Local, Reader};
use crate::dwarf::name::name_and_type;
use crate::dwarf::scalar::scalar;
use crate::dwarf::scope::Scopes;

/// Entries that are read.
const MOST_ENTRIES: usize = 1 << 20;
/// Ranges of locations and scopes that are read.
const MOST_RANGES: usize = 1 << 16;

type Entry<'a, 'u> = DebuggingInformationEntry<'u, 'u, Reader<'a>>;

/// The locals so far, and the work that they took.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) locals: Vec<Local>,
    entries: usize,
    ranges: usize,
    enumerations: Enumerations,
}

/// Reads the locals of a unit, up to the first malformed entry.
pub(crate) fn read<'a>(dwarf: &Dwarf<Reader<'a>>, unit: &Unit<Reader<'a>>, found: &mut Found) -> Result<()> {
    let (mut entries, mut depth, mut scopes) = (unit.entries(), 0, Scopes::default());
    found.enumerations.enter_unit();
    while let Some((delta, entry)) = entries.next_dfs()? {
        found.entries += 1;
        if found.entries > MOST_ENTRIES || found.ranges > MOST_RANGES {
            break;
        }
        depth += delta;
        scopes.leave(depth);
        match entry.tag() {
            gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_lexical_block => {
                scopes.enter(depth, ranges(dwarf, unit, entry, found)?);
            }
            gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter => {
                local(dwarf, unit, entry, &scopes, found)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Addresses of a function or block.
fn ranges<'a>(
    dwarf: &Dwarf<Reader<'a>>,
    unit: &Unit<Reader<'a>>,
    entry: &Entry<'a, '_>,
    found: &mut Found,
) -> Result<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    let Some(list) = entry.attr_value(gimli::DW_AT_ranges)? else {
        // Two addresses.
        let mut of = dwarf.die_ranges(unit, entry)?;
        while let Some(range) = of.next()? {
            ranges.push(range.begin..range.end);
        }
        return Ok(ranges);
    };
    let Some(mut list) = dwarf.attr_ranges(unit, list)? else { return Ok(ranges) };
    // Empty ranges are work too.
    while let Some(raw) = list.next_raw()? {
        found.ranges += 1;
        if found.ranges > MOST_RANGES {
            break;
        }
        ranges.extend(list.convert_raw(raw)?.map(|range| range.begin..range.end));
    }
    Ok(ranges)
}

/// Adds a variable, for each range of addresses where it is in a register.
fn local<'a>(
    dwarf: &Dwarf<Reader<'a>>,
    unit: &Unit<Reader<'a>>,
    entry: &Entry<'a, '_>,
    scopes: &Scopes,
    found: &mut Found,
) -> Result<()> {
    let Some(location) = entry.attr_value(gimli::DW_AT_location)? else { return Ok(()) };
    let mut places: Vec<(Range<u64>, u8)> = Vec::new();
    if let AttributeValue::Exprloc(expression) = location {
        if let Some(register) = register(unit, expression) {
            places.extend(scopes.ranges().iter().map(|range| (range.clone(), register)));
        }
    } else if let Some(mut list) = dwarf.attr_locations(unit, location)? {
        while let Some(raw) = list.next_raw()? {
            found.ranges += 1;
            if found.ranges > MOST_RANGES {
                break;
            }
            let Some(entry) = list.convert_raw(raw)? else { continue };
            let register = register(unit, entry.data);
            places.extend(register.map(|register| (entry.range.begin..entry.range.end, register)));
        }
    }
    if places.is_empty() {
        return Ok(());
    }
    let Some((name, ty)) = name_and_type(dwarf, unit, entry)? else { return Ok(()) };
    let Some((scalar, ty)) = scalar(unit, ty) else { return Ok(()) };
    found.ranges += places.len();
    let enumerators = found.enumerations.of(dwarf, unit, ty, scalar);
    let local = |(range, register)| {
        let (name, enumerators) = (name.clone(), enumerators.clone());
        Local { name, range, register, scalar, enumerators }
    };
    found.locals.extend(places.into_iter().map(local));
    Ok(())
}

/// The register that has the value: `DW_OP_reg6`, or `DW_OP_breg6 +0, DW_OP_stack_value`.
fn register<'a>(unit: &Unit<Reader<'a>>, expression: Expression<Reader<'a>>) -> Option<u8> {
    let mut operations = expression.operations(unit.encoding());
    let register = match operations.next().ok()?? {
        Operation::Register { register } => register,
        Operation::RegisterOffset { register, offset: 0, .. } => {
            operations.next().ok()?.filter(|next| matches!(next, Operation::StackValue))?;
            register
        }
        _ => return None,
    };
    // Another operation would mean that it is a part, or computed.
    if operations.next().ok()?.is_some() {
        return None;
    }
    u8::try_from(register.0).ok().filter(|register| *register <= 10)
}
