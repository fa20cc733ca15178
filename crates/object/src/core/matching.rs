//! Matching of target types with local ones (`bpf_core_type_matches`): stricter than compatibility, as members and enumerators are
//! compared.

use paceline_btf::{Btf, Composite, Enum, IntEncoding, Name, Type, TypeId};

use super::types::{Budget, resolve};
use crate::error::CoreProblem;

/// Maximum length of chains of pointers and arrays, and nesting depth of members.
const MOST_DEPTH: usize = 32;

/// Whether the target's type has everything that the local one has.
pub(super) fn types_match(
    local: &Btf,
    local_id: TypeId,
    target: &Btf,
    target_id: TypeId,
    budget: &mut Budget,
) -> Result<bool, CoreProblem> {
    Matcher { local, target, budget }.types(local_id, target_id, false, MOST_DEPTH)
}

struct Matcher<'a, 'b> {
    local: &'a Btf,
    target: &'a Btf,
    budget: &'b mut Budget,
}

impl Matcher<'_, '_> {
    fn same_name(&mut self, a: Option<Name>, b: Option<Name>) -> Result<bool, CoreProblem> {
        self.budget.same_name((self.local, a), (self.target, b))
    }

    fn types(
        &mut self,
        mut local_id: TypeId,
        mut target_id: TypeId,
        mut behind_pointer: bool,
        level: usize,
    ) -> Result<bool, CoreProblem> {
        if level == 0 {
            return Err(CoreProblem::TooDeep);
        }
        for _ in 0..MOST_DEPTH {
            let (a, b) = (resolve(self.local, local_id)?.1, resolve(self.target, target_id)?.1);
            if !self.same_name(a.name(), b.name())? {
                return Ok(false);
            }
            (local_id, target_id) = match (a, b) {
                (Type::Ptr(a), Type::Ptr(b)) => {
                    behind_pointer = true;
                    (*a, *b)
                }
                (Type::Array { element: a, count: n, .. }, Type::Array { element: b, count: m, .. })
                    if n == m =>
                {
                    (*a, *b)
                }
                (
                    Type::FuncProto { result: a, params: of_a },
                    Type::FuncProto { result: b, params: of_b },
                ) => {
                    if of_a.len() != of_b.len() {
                        return Ok(false);
                    }
                    for (a, b) in of_a.iter().zip(of_b) {
                        if !self.types(a.ty, b.ty, behind_pointer, level - 1)? {
                            return Ok(false);
                        }
                    }
                    (*a, *b)
                }
                (Type::Struct(a), Type::Struct(b)) | (Type::Union(a), Type::Union(b)) if !behind_pointer => {
                    return self.composites(a, b, level);
                }
                (a, b) => return self.leaves(a, b, behind_pointer),
            };
        }
        Err(CoreProblem::TooDeep)
    }

    /// Compares types without their members.
    fn leaves(&mut self, a: &Type, b: &Type, behind_pointer: bool) -> Result<bool, CoreProblem> {
        let is_union = |t: &Type| match t {
            Type::Struct(_) => Some(false),
            Type::Union(_) => Some(true),
            Type::Forward { union, .. } => Some(*union),
            _ => None,
        };
        Ok(match (a, b) {
            (Type::Void, Type::Void) => true,
            (Type::Int(a), Type::Int(b)) => {
                let signed = |encoding| encoding == IntEncoding::Signed;
                a.size == b.size && signed(a.encoding) == signed(b.encoding)
            }
            (Type::Enum(a), Type::Enum(b)) => self.enumerations(a, b)?,
            (Type::Forward { union: a, .. }, Type::Forward { union: b, .. }) => a == b,
            // As the target of a pointer, a forward declaration matches a structure.
            (
                Type::Struct(_) | Type::Union(_) | Type::Forward { .. },
                Type::Struct(_) | Type::Union(_) | Type::Forward { .. },
            ) => behind_pointer && is_union(a) == is_union(b),
            _ => false,
        })
    }

    fn enumerations(&mut self, a: &Enum, b: &Enum) -> Result<bool, CoreProblem> {
        if a.size != b.size || a.values.len() > b.values.len() {
            return Ok(false);
        }
        for value in &a.values {
            let mut found = false;
            for other in &b.values {
                found = self.same_name(Some(value.name), Some(other.name))?;
                if found {
                    break;
                }
            }
            if !found {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn composites(&mut self, a: &Composite, b: &Composite, level: usize) -> Result<bool, CoreProblem> {
        if a.members.len() > b.members.len() {
            return Ok(false);
        }
        for member in &a.members {
            let mut found = false;
            for other in &b.members {
                found = self.same_name(Some(member.name), Some(other.name))?
                    && self.types(member.ty, other.ty, false, level - 1)?;
                if found {
                    break;
                }
            }
            if !found {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
