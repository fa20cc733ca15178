//! CO-RE access paths: from a root type through members and array elements to a field, or to an enumerator.

use paceline_btf::{Btf, CoreKind, CoreRelocation, Member, Type, TypeId};

use super::types::{Budget, essential, essential_name, resolve};
use super::{compatible, matching};
use crate::error::CoreProblem;

/// Maximum length of a path (`BPF_CORE_SPEC_MAX_LEN`).
const LONGEST: usize = 64;

/// A step of a path that can be matched between layouts: a named member, an element or an enumerator.
#[derive(Clone, Debug)]
pub(super) struct Step<'a> {
    /// The type of the step: for a member the enclosing structure, for an element the element type.
    pub(super) ty: TypeId,
    /// Index of the member, element or enumerator.
    pub(super) index: u32,
    /// Name of the member or enumerator; none for elements.
    pub(super) name: Option<&'a str>,
}

/// A path from a root type.
#[derive(Clone, Debug)]
pub(super) struct Access<'a> {
    pub(super) root: TypeId,
    /// Empty for a relocation about the root type itself.
    pub(super) path: Vec<Step<'a>>,
    /// Number of steps including those into anonymous members, which is limited.
    depth: usize,
    /// Offset in bits from the root's start.
    pub(super) bit_offset: u64,
}

/// Whether a relocation is about a type; others are about an enumerator or a field.
pub(super) const fn is_about_type(kind: CoreKind) -> bool {
    use CoreKind::{LocalTypeId, TargetTypeId, TypeExists, TypeMatches, TypeSize};
    matches!(kind, LocalTypeId | TargetTypeId | TypeExists | TypeMatches | TypeSize)
}

pub(super) const fn is_about_enumerator(kind: CoreKind) -> bool {
    matches!(kind, CoreKind::EnumeratorExists | CoreKind::EnumeratorValue)
}

impl<'a> Access<'a> {
    fn new(root: TypeId) -> Self {
        Self { root, path: Vec::new(), depth: 0, bit_offset: 0 }
    }

    /// Parses the path of a relocation, such as `0:1:2`: indices of elements and members in the object's own types.
    pub(super) fn parse(btf: &'a Btf, relocation: &CoreRelocation) -> Result<Self, CoreProblem> {
        let text = btf.text(relocation.access).unwrap_or_default();
        let wrong = || CoreProblem::Access(text.chars().take(LONGEST).collect());
        let mut access = Self::new(relocation.ty);
        if is_about_type(relocation.kind) {
            return if text == "0" { Ok(access) } else { Err(wrong()) };
        }
        let indices: Vec<u32> =
            text.split(':').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let (first, rest) = indices.split_first().ok_or_else(wrong)?;
        let (mut id, ty) = resolve(btf, relocation.ty)?;
        if is_about_enumerator(relocation.kind) {
            let Type::Enum(e) = ty else { return Err(wrong()) };
            let value = e.values.get(*first as usize).filter(|_| rest.is_empty()).ok_or_else(wrong)?;
            access.path.push(Step { ty: id, index: *first, name: Some(btf.name(value.name)) });
            return Ok(access);
        }
        access.step_to_element(btf, id, *first)?;
        for index in rest {
            id = access.step_down(btf, id, *index)?.ok_or_else(wrong)?;
        }
        Ok(access)
    }

    /// Steps to a member or element by index; returns its type, or `None` if it does not exist.
    fn step_down(&mut self, btf: &'a Btf, id: TypeId, index: u32) -> Result<Option<TypeId>, CoreProblem> {
        let (id, ty) = resolve(btf, id)?;
        match ty {
            Type::Struct(c) | Type::Union(c) => {
                let Some(m) = c.members.get(index as usize) else { return Ok(None) };
                self.enter(m)?;
                if !m.name.is_empty() {
                    self.path.push(Step { ty: id, index, name: Some(btf.name(m.name)) });
                }
                Ok(Some(m.ty))
            }
            Type::Array { element, count, .. } => {
                if index >= *count && !self.ends_in_flexible_array(btf, *count) {
                    return Ok(None);
                }
                let (element, _) = resolve(btf, *element)?;
                self.step_to_element(btf, element, index)?;
                Ok(Some(element))
            }
            _ => Ok(None),
        }
    }

    fn enter(&mut self, m: &Member) -> Result<(), CoreProblem> {
        if self.depth >= LONGEST {
            return Err(CoreProblem::TooDeep);
        }
        self.depth += 1;
        self.bit_offset = self.bit_offset.checked_add(u64::from(m.bit_offset)).ok_or(CoreProblem::TooDeep)?;
        Ok(())
    }

    fn step_to_element(&mut self, btf: &Btf, ty: TypeId, index: u32) -> Result<(), CoreProblem> {
        if self.depth >= LONGEST {
            return Err(CoreProblem::TooDeep);
        }
        self.depth += 1;
        let bits = btf.size_of(ty)?.checked_mul(8).and_then(|bits| bits.checked_mul(u64::from(index)));
        let offset = bits.and_then(|bits| self.bit_offset.checked_add(bits));
        // libbpf uses 32-bit offsets.
        self.bit_offset = offset.filter(|o| *o <= u64::from(u32::MAX)).ok_or(CoreProblem::OutOfRange)?;
        self.path.push(Step { ty, index, name: None });
        Ok(())
    }

    /// Whether the current array is a flexible array member: zero elements, and the last member of its structure.
    fn ends_in_flexible_array(&self, btf: &Btf, count: u32) -> bool {
        let Some(Step { ty, index, name: Some(_) }) = self.path.last() else { return false };
        match btf.get(*ty) {
            Some(Type::Struct(c) | Type::Union(c)) => {
                count == 0 && (*index as usize).checked_add(1) == Some(c.members.len())
            }
            _ => false,
        }
    }

    /// The corresponding path in a target type: members by name, elements by index. `None` if the type lacks it, or has it with an
    /// incompatible type.
    pub(super) fn find_in(
        &self,
        local: &Btf,
        target: &'a Btf,
        candidate: TypeId,
        kind: CoreKind,
        budget: &mut Budget,
    ) -> Result<Option<Self>, CoreProblem> {
        let mut found = Self::new(candidate);
        if is_about_type(kind) {
            let fits = match kind {
                CoreKind::TypeMatches => matching::types_match(local, self.root, target, candidate, budget)?,
                _ => compatible::types(local, self.root, target, candidate, budget)?,
            };
            return Ok(fits.then_some(found));
        }
        if is_about_enumerator(kind) {
            return Ok(found.find_enumerator(self, target, candidate)?.then_some(found));
        }
        let mut id = candidate;
        for (i, step) in self.path.iter().enumerate() {
            let next = match step.name {
                Some(_) => found.find_member(local, step, target, id, budget, 0)?,
                // The first step selects an element of the root type itself, as if it were an array.
                None if i == 0 => {
                    let (id, _) = resolve(target, id)?;
                    found.step_to_element(target, id, step.index)?;
                    Some(id)
                }
                None => match resolve(target, id)?.1 {
                    Type::Array { .. } => found.step_down(target, id, step.index)?,
                    _ => None,
                },
            };
            match next {
                Some(next) => id = next,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    fn find_enumerator(&mut self, of: &Access<'_>, target: &'a Btf, id: TypeId) -> Result<bool, CoreProblem> {
        let (id, ty) = resolve(target, id)?;
        let (Type::Enum(e), Some(Step { name: Some(name), .. })) = (ty, of.path.first()) else {
            return Ok(false);
        };
        let wanted = essential_name(name);
        let found = (0..).zip(&e.values).find(|(_, v)| essential(target, v.name) == wanted);
        self.path.extend(found.map(|(index, v)| Step { ty: id, index, name: Some(target.name(v.name)) }));
        Ok(found.is_some())
    }

    /// Steps to the member of a target structure with the name of a local step; also searches its anonymous members.
    fn find_member(
        &mut self,
        local: &Btf,
        step: &Step<'_>,
        target: &'a Btf,
        id: TypeId,
        budget: &mut Budget,
        level: usize,
    ) -> Result<Option<TypeId>, CoreProblem> {
        let (id, Type::Struct(c) | Type::Union(c)) = resolve(target, id)? else { return Ok(None) };
        let (bit_offset, depth) = (self.bit_offset, self.depth);
        if level >= LONGEST {
            return Err(CoreProblem::TooDeep);
        }
        for (index, m) in (0..).zip(&c.members) {
            budget.step()?;
            let name = target.name(m.name);
            if !name.is_empty() && Some(name) != step.name {
                continue;
            }
            self.enter(m)?;
            if name.is_empty() {
                if let Some(found) = self.find_member(local, step, target, m.ty, budget, level + 1)? {
                    return Ok(Some(found));
                }
                (self.bit_offset, self.depth) = (bit_offset, depth);
                continue;
            }
            let local_member = match local.get(step.ty) {
                Some(Type::Struct(c) | Type::Union(c)) => c.members.get(step.index as usize),
                _ => None,
            };
            let Some(local_member) = local_member else { return Ok(None) };
            if !compatible::fields(local, local_member.ty, target, m.ty)? {
                return Ok(None);
            }
            self.path.push(Step { ty: id, index, name: Some(name) });
            return Ok(Some(m.ty));
        }
        Ok(None)
    }

    /// The path in C syntax, such as `struct net_device.name[3]`, truncated for messages.
    pub(super) fn describe(&self, btf: &Btf) -> String {
        const LONGEST_TEXT: usize = 200;
        let mut text = btf.c_name(self.root);
        for (i, step) in self.path.iter().enumerate() {
            match step.name {
                Some(name) if matches!(btf.get(step.ty), Some(Type::Enum(_))) => text += &format!("::{name}"),
                Some(name) => text += &format!(".{name}"),
                None if i > 0 || step.index > 0 => text += &format!("[{}]", step.index),
                None => {}
            }
            if text.len() > LONGEST_TEXT {
                break;
            }
        }
        let end = (0..=LONGEST_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text
    }
}
