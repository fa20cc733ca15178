//! Compatibility of target types with local ones.

use paceline_btf::{Btf, Type, TypeId};

use super::types::{Budget, essential, resolve};
use crate::error::CoreProblem;

/// Maximum length of chains of pointers and arrays, and nesting depth of function types.
const MOST_DEPTH: usize = 32;

/// Whether two types are of the same kind; 32-bit and 64-bit enumerations are.
pub(super) fn same_kind(a: &Type, b: &Type) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Whether an integer is no bitfield, as old compilers encoded them.
fn is_whole(ty: &Type) -> bool {
    matches!(ty, Type::Int(int) if int.bit_offset == 0)
}

/// Whether a field of the target can replace a local one: structures and unions always, integers of any size and sign, enumerations
/// of the same name, arrays of compatible elements.
pub(super) fn fields(
    local: &Btf,
    mut local_id: TypeId,
    target: &Btf,
    mut target_id: TypeId,
) -> Result<bool, CoreProblem> {
    for _ in 0..MOST_DEPTH {
        let (a, b) = (resolve(local, local_id)?.1, resolve(target, target_id)?.1);
        let is_composite = |t: &Type| matches!(t, Type::Struct(_) | Type::Union(_));
        if is_composite(a) && is_composite(b) {
            return Ok(true);
        }
        match (a, b) {
            (Type::Array { element: a, .. }, Type::Array { element: b, .. }) => {
                (local_id, target_id) = (*a, *b)
            }
            (Type::Ptr(_), Type::Ptr(_)) | (Type::Float { .. }, Type::Float { .. }) => return Ok(true),
            (Type::Int(_), Type::Int(_)) => return Ok(is_whole(a) && is_whole(b)),
            (Type::Enum(_), Type::Enum(_)) | (Type::Forward { .. }, Type::Forward { .. }) => {
                let name =
                    |btf, t: &Type| t.name().map_or_else(String::new, |n| essential(btf, n).to_owned());
                let (a, b) = (name(local, a), name(target, b));
                return Ok(a.is_empty() || b.is_empty() || a == b);
            }
            _ => return Ok(false),
        }
    }
    Err(CoreProblem::TooDeep)
}

/// Whether a target type with the same name is compatible with the local one: of the same kind, recursively for pointers, arrays
/// and functions.
pub(super) fn types(
    local: &Btf,
    local_id: TypeId,
    target: &Btf,
    target_id: TypeId,
    budget: &mut Budget,
) -> Result<bool, CoreProblem> {
    // A typedef is compatible with typedefs only; the underlying types are compared afterwards.
    match (local.get(local_id), target.get(target_id)) {
        (Some(a), Some(b)) if same_kind(a, b) => {
            types_at(local, local_id, target, target_id, budget, MOST_DEPTH)
        }
        _ => Ok(false),
    }
}

fn types_at(
    local: &Btf,
    mut local_id: TypeId,
    target: &Btf,
    mut target_id: TypeId,
    budget: &mut Budget,
    level: usize,
) -> Result<bool, CoreProblem> {
    for _ in 0..MOST_DEPTH {
        budget.step()?;
        let (a, b) = (resolve(local, local_id)?.1, resolve(target, target_id)?.1);
        if !same_kind(a, b) {
            return Ok(false);
        }
        (local_id, target_id) = match (a, b) {
            (Type::Void | Type::Struct(_) | Type::Union(_) | Type::Enum(_) | Type::Forward { .. }, _) => {
                return Ok(true);
            }
            (Type::Int(_), Type::Int(_)) => return Ok(is_whole(a) && is_whole(b)),
            (Type::Ptr(a), Type::Ptr(b)) => (*a, *b),
            (Type::Array { element: a, .. }, Type::Array { element: b, .. }) => (*a, *b),
            (Type::FuncProto { result: a, params: of_a }, Type::FuncProto { result: b, params: of_b }) => {
                if of_a.len() != of_b.len() {
                    return Ok(false);
                }
                for (a, b) in of_a.iter().zip(of_b) {
                    let level = level.checked_sub(1).ok_or(CoreProblem::TooDeep)?;
                    if !types_at(local, a.ty, target, b.ty, budget, level)? {
                        return Ok(false);
                    }
                }
                (*a, *b)
            }
            _ => return Ok(false),
        };
    }
    Err(CoreProblem::TooDeep)
}
