//! Computation of relocation values from types.

use paceline_btf::{Btf, CoreKind, IntEncoding, Type, TypeId};

use super::access::{Access, Step, is_about_enumerator, is_about_type};
use super::types::resolve;
use crate::error::CoreProblem;

/// Result of a relocation.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The value that the compiler must have written, if the object's types determine it.
    pub(super) expected: Option<u64>,
    /// The value to write; `None` if the target has none.
    pub(super) value: Option<u64>,
    /// Size of the field in bytes in the object and in the target, if a load or store of it may have to be resized.
    pub(super) sizes: Option<(u64, u64)>,
    /// Whether the sizes differ in a way that a load or store cannot be adapted to.
    pub(super) size_mismatch: bool,
}

impl Answer {
    /// A value that is written without a check of the old one.
    pub(super) const fn unchecked(value: u64) -> Self {
        Self { expected: None, value: Some(value), sizes: None, size_mismatch: false }
    }
}

/// Value from one side's types.
struct Found {
    value: u64,
    /// Whether the compiler certainly wrote the same value.
    certain: bool,
    /// Size in bytes and type of the accessed field.
    field: Option<(u64, TypeId)>,
}

impl Found {
    const fn certain(value: u64) -> Self {
        Self { value, certain: true, field: None }
    }
}

/// The result for a target type, or for none.
pub(super) fn answer(
    kind: CoreKind,
    local: (&Btf, &Access<'_>),
    target: Option<(&Btf, &Access<'_>)>,
) -> Result<Answer, CoreProblem> {
    let old = find(kind, local)?;
    let expected = old.certain.then_some(old.value);
    let Some(target) = target else {
        let value = match kind {
            CoreKind::FieldExists
            | CoreKind::TypeExists
            | CoreKind::TypeMatches
            | CoreKind::TypeSize
            | CoreKind::TargetTypeId
            | CoreKind::EnumeratorExists => Some(0),
            _ => None,
        };
        return Ok(Answer { expected, value, sizes: None, size_mismatch: false });
    };
    let new = find(kind, target)?;
    let (old_size, new_size) = (old.field.map_or(0, |f| f.0), new.field.map_or(0, |f| f.0));
    let sizes = (old_size != new_size).then_some((old_size, new_size));
    let size_mismatch = match (sizes, old.field, new.field) {
        (None, ..) => false,
        (Some(_), Some((_, old)), Some((_, new))) => !is_extended(local.0, old, target.0, new)?,
        (Some(_), ..) => true,
    };
    Ok(Answer { expected, value: Some(new.value), sizes, size_mismatch })
}

/// Whether a load of another size returns the same value: for pointers and unsigned integers, which are zero-extended.
fn is_extended(local: &Btf, old: TypeId, target: &Btf, new: TypeId) -> Result<bool, CoreProblem> {
    Ok(match (resolve(local, old)?.1, resolve(target, new)?.1) {
        (Type::Ptr(_), Type::Ptr(_)) => true,
        (Type::Int(a), Type::Int(b)) => {
            a.encoding != IntEncoding::Signed && b.encoding != IntEncoding::Signed
        }
        _ => false,
    })
}

fn find(kind: CoreKind, (btf, access): (&Btf, &Access<'_>)) -> Result<Found, CoreProblem> {
    match kind {
        CoreKind::FieldExists | CoreKind::TypeExists | CoreKind::TypeMatches | CoreKind::EnumeratorExists => {
            Ok(Found::certain(1))
        }
        CoreKind::TypeSize => Ok(Found::certain(btf.size_of(access.root)?)),
        // Linkers renumber types, so the compiler's number is not known.
        kind if is_about_type(kind) => {
            Ok(Found { value: u64::from(access.root), certain: false, field: None })
        }
        kind if is_about_enumerator(kind) => find_enumerator(btf, access),
        kind => match access.path.last() {
            Some(step @ Step { name: Some(_), .. }) => find_member(kind, btf, access, step),
            Some(step) => find_element(kind, btf, access, step),
            None => Err(CoreProblem::OutOfRange),
        },
    }
}

fn find_enumerator(btf: &Btf, access: &Access<'_>) -> Result<Found, CoreProblem> {
    let step = access.path.first().ok_or(CoreProblem::OutOfRange)?;
    let Type::Enum(e) = resolve(btf, step.ty)?.1 else { return Err(CoreProblem::OutOfRange) };
    let value = e.values.get(step.index as usize).ok_or(CoreProblem::OutOfRange)?.value;
    // libbpf treats 32-bit enumerators as signed, and so do compilers in 64-bit immediates.
    let value = if e.wide { value } else { i64::from(value as i32) };
    Ok(Found::certain(value.cast_unsigned()))
}

fn find_element(
    kind: CoreKind,
    btf: &Btf,
    access: &Access<'_>,
    step: &Step<'_>,
) -> Result<Found, CoreProblem> {
    let size = btf.size_of(step.ty)?;
    match kind {
        CoreKind::FieldOffset => {
            Ok(Found { value: access.bit_offset / 8, certain: true, field: Some((size, step.ty)) })
        }
        CoreKind::FieldSize => Ok(Found::certain(size)),
        _ => Err(CoreProblem::Element),
    }
}

fn find_member(
    kind: CoreKind,
    btf: &Btf,
    access: &Access<'_>,
    step: &Step<'_>,
) -> Result<Found, CoreProblem> {
    let (Some(Type::Struct(c)) | Some(Type::Union(c))) = btf.get(step.ty) else {
        return Err(CoreProblem::OutOfRange);
    };
    let member = c.members.get(step.index as usize).ok_or(CoreProblem::OutOfRange)?;
    let (id, ty) = resolve(btf, member.ty)?;
    let is_bitfield = member.bit_size != 0;
    let place = match is_bitfield {
        true => Place::of_bitfield(btf, id, access.bit_offset, u64::from(member.bit_size))?,
        false => Place::of_bytes(access.bit_offset, btf.size_of(id)?),
    };
    let uncertain = |value| Found { value, certain: !is_bitfield, field: None };
    Ok(match kind {
        CoreKind::FieldOffset => {
            let field = (!is_bitfield).then_some((place.bytes, id));
            Found { value: place.offset, certain: !is_bitfield, field }
        }
        CoreKind::FieldSize => uncertain(place.bytes),
        CoreKind::FieldSigned => Found::certain(u64::from(match ty {
            Type::Int(int) => int.encoding == IntEncoding::Signed,
            Type::Enum(e) => e.signed,
            _ => false,
        })),
        CoreKind::FieldLeftShift => uncertain(place.left_shift().ok_or(CoreProblem::OutOfRange)?),
        CoreKind::FieldRightShift => {
            Found::certain(64u64.checked_sub(place.bits).ok_or(CoreProblem::OutOfRange)?)
        }
        _ => return Err(CoreProblem::OutOfRange),
    })
}

/// Location of a field, and of the naturally aligned bytes that contain it.
struct Place {
    /// Offset of these bytes.
    offset: u64,
    /// Number of these bytes.
    bytes: u64,
    /// Offset of the field from the structure's start in bits.
    bit_offset: u64,
    /// Size of the field in bits.
    bits: u64,
}

impl Place {
    fn of_bytes(bit_offset: u64, bytes: u64) -> Self {
        Self { offset: bit_offset / 8, bytes, bit_offset, bits: bytes.saturating_mul(8) }
    }

    /// The smallest load that covers a bitfield, starting with the size of its type.
    fn of_bitfield(btf: &Btf, ty: TypeId, bit_offset: u64, bits: u64) -> Result<Self, CoreProblem> {
        let mut bytes = btf.size_of(ty)?;
        if bytes == 0 {
            return Err(CoreProblem::OutOfRange);
        }
        loop {
            let offset = bit_offset / 8 / bytes * bytes;
            if bit_offset + bits - offset * 8 <= bytes.saturating_mul(8) {
                return Ok(Self { offset, bytes, bit_offset, bits });
            }
            if bytes >= 8 {
                return Err(CoreProblem::OutOfRange);
            }
            bytes *= 2;
        }
    }

    fn left_shift(&self) -> Option<u64> {
        let before = self.bit_offset - self.offset * 8;
        if cfg!(target_endian = "little") {
            64u64.checked_sub(before.checked_add(self.bits)?)
        } else {
            8u64.checked_sub(self.bytes)?.checked_mul(8)?.checked_add(before)
        }
    }
}
