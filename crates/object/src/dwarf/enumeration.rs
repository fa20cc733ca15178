//! Members of enumerations.

use std::collections::HashMap;
use std::sync::Arc;

use gimli::{AttributeValue, Dwarf, Result, Unit, UnitOffset};
use paceline_spec::{Enumerators, Scalar};

use crate::dwarf::local::Reader;
use crate::dwarf::name::LONGEST;

/// Entries of an enumeration that are read.
const MOST_MEMBERS: usize = 1024;
/// Entries of all enumerations together.
const MOST_IN_ALL: usize = 1 << 16;

/// The enumerations of a unit that variables have, each read once.
#[derive(Default)]
pub(crate) struct Enumerations {
    known: HashMap<usize, Enumerators>,
    entries: usize,
}

impl Enumerations {
    /// Offsets are those of another unit from here on.
    pub(crate) fn enter_unit(&mut self) {
        self.known.clear();
    }

    /// The members of a type; none if it is no enumeration.
    pub(crate) fn of<'a>(
        &mut self,
        dwarf: &Dwarf<Reader<'a>>,
        unit: &Unit<Reader<'a>>,
        at: UnitOffset,
        scalar: Scalar,
    ) -> Enumerators {
        if let Some(known) = self.known.get(&at.0) {
            return Arc::clone(known);
        }
        let most = MOST_IN_ALL.min(self.entries + MOST_MEMBERS);
        let members = members(dwarf, unit, at, scalar, &mut self.entries, most).unwrap_or_default();
        let members = Enumerators::from(members);
        self.known.insert(at.0, Arc::clone(&members));
        members
    }
}

/// Reads until `read` entries are `most`.
fn members<'a>(
    dwarf: &Dwarf<Reader<'a>>,
    unit: &Unit<Reader<'a>>,
    at: UnitOffset,
    scalar: Scalar,
    read: &mut usize,
    most: usize,
) -> Result<Vec<(u64, Arc<str>)>> {
    let mut found = Vec::new();
    let mut entries = unit.entries_at_offset(at)?;
    let is_enumeration =
        entries.next_dfs()?.is_some_and(|(_, entry)| entry.tag() == gimli::DW_TAG_enumeration_type);
    if !is_enumeration {
        return Ok(found);
    }
    // Members are the children, which have none.
    let mut depth = 0;
    while *read < most
        && let Some((delta, entry)) = entries.next_dfs()?
    {
        *read += 1;
        depth += delta;
        if depth < 1 {
            break;
        }
        let value = entry.attr_value(gimli::DW_AT_const_value)?.and_then(|value| number(&value));
        let name = entry.attr_value(gimli::DW_AT_name)?;
        let (Some(value), Some(name), gimli::DW_TAG_enumerator) = (value, name, entry.tag()) else {
            continue;
        };
        let name = dwarf.attr_string(unit, name)?;
        if let Some(name) = name.to_string().ok().filter(|name| name.len() <= LONGEST) {
            found.push((scalar.bits(value), Arc::from(name)));
        }
    }
    Ok(found)
}

fn number(value: &AttributeValue<Reader<'_>>) -> Option<u64> {
    value.udata_value().or_else(|| value.sdata_value().map(i64::cast_unsigned))
}
