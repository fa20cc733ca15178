//! Types of locals.

use gimli::{AttributeValue, DwAte, DwTag, Unit, UnitOffset};

use paceline_spec::{Scalar, ScalarKind};

use crate::dwarf::local::Reader;

/// Qualifiers and names on the way to a type, at most: hostile types may be cyclic.
const MOST_STEPS: usize = 16;

/// The type of an entry, if it is a scalar or a pointer, and where its own entry is.
pub(crate) fn scalar(unit: &Unit<Reader<'_>>, mut at: UnitOffset) -> Option<(Scalar, UnitOffset)> {
    for _ in 0..MOST_STEPS {
        let entry = unit.entry(at).ok()?;
        let bytes = entry.attr_value(gimli::DW_AT_byte_size).ok()?.and_then(|size| size.udata_value());
        match entry.tag() {
            gimli::DW_TAG_pointer_type => return Some((Scalar { kind: ScalarKind::Pointer, bytes: 8 }, at)),
            gimli::DW_TAG_enumeration_type => return Some((sized(ScalarKind::Unsigned, bytes?)?, at)),
            gimli::DW_TAG_base_type => {
                let Some(AttributeValue::Encoding(encoding)) =
                    entry.attr_value(gimli::DW_AT_encoding).ok()?
                else {
                    return None;
                };
                return Some((sized(kind(encoding)?, bytes?)?, at));
            }
            tag if is_transparent(tag) => {
                let Some(AttributeValue::UnitRef(to)) = entry.attr_value(gimli::DW_AT_type).ok()? else {
                    return None;
                };
                at = to;
            }
            _ => return None,
        }
    }
    None
}

/// Whether an entry gives a type another name or qualifier.
fn is_transparent(tag: DwTag) -> bool {
    let tags = [
        gimli::DW_TAG_typedef,
        gimli::DW_TAG_const_type,
        gimli::DW_TAG_volatile_type,
        gimli::DW_TAG_restrict_type,
        gimli::DW_TAG_atomic_type,
    ];
    tags.contains(&tag)
}

fn kind(encoding: DwAte) -> Option<ScalarKind> {
    match encoding {
        gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char => Some(ScalarKind::Unsigned),
        gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => Some(ScalarKind::Signed),
        gimli::DW_ATE_boolean => Some(ScalarKind::Bool),
        _ => None,
    }
}

fn sized(kind: ScalarKind, bytes: u64) -> Option<Scalar> {
    let bytes = u8::try_from(bytes).ok().filter(|bytes| matches!(bytes, 1 | 2 | 4 | 8))?;
    Some(Scalar { kind, bytes })
}
