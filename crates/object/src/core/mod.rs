//! CO-RE ("compile once, run everywhere"): adapts instructions that depend on the layout of types to the target's types.
//!
//! The rules are libbpf's (`src/relo_core.c`), so that objects behave as with libbpf: the candidates among target types,
//! compatibility of fields and types, the replacement of instructions whose field does not exist. Without target types fields keep
//! the compiler's offsets, which the code already contains; relocations that ask whether a field, type or enumerator exists have no
//! answer then, and their instructions are poisoned as if the field did not exist. The types of objects that programs receive
//! pointers to are always those of [`paceline_spec::object`].

mod access;
mod answer;
mod compatible;
mod matching;
mod patch;
mod types;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use paceline_btf::{Btf, BtfExt, CoreKind, CoreRelocation, Type, TypeId};
use paceline_isa::RawInsn;
use paceline_spec::{Poison, object};

use self::access::Access;
use self::answer::{Answer, answer};
use self::types::{Budget, essential_name};
use super::error::LoadError;
use crate::debug_info::by_section;
use crate::error::CoreProblem;
use crate::function::Function;

/// Target types.
#[derive(Debug)]
struct Target<'a> {
    btf: &'a Btf,
    /// By name without flavor.
    by_name: HashMap<&'a str, Vec<TypeId>>,
}

impl<'a> Target<'a> {
    fn new(btf: &'a Btf) -> Self {
        let mut by_name: HashMap<_, Vec<_>> = HashMap::new();
        for (id, name) in btf.types().filter_map(|(id, ty)| Some((id, btf.name(ty.name()?)))) {
            if !name.is_empty() {
                by_name.entry(essential_name(name)).or_default().push(id);
            }
        }
        Self { btf, by_name }
    }
}

/// The structures of the kernel that Paceline lays out itself ([`object::types`]). Those of the kernel's context are Paceline's only for
/// objects that ask for the context: to others they are what the target says.
#[derive(Clone, Copy, Debug)]
struct OwnStructures {
    context: bool,
}

impl OwnStructures {
    fn of(local: &Btf) -> Self {
        let casts = |ty: &Type| match ty {
            Type::Func { name, .. } => local.name(*name) == "bpf_cast_to_kern_ctx",
            _ => false,
        };
        Self { context: local.types().any(|(_, ty)| casts(ty)) }
    }

    fn has(self, name: &str) -> bool {
        object::is_structure(name) || self.context && object::is_context_structure(name)
    }
}

/// The CO-RE relocations of an object and the types to adapt it to.
#[derive(Debug)]
pub(crate) struct CoreRelocations<'a> {
    local: &'a Btf,
    target: Option<Target<'a>>,
    /// The types of objects, and which of them the object is adapted to.
    objects: Target<'a>,
    own: OwnStructures,
    /// By section, in order of offset.
    relocations: HashMap<String, Vec<CoreRelocation>>,
    /// Candidates for each local root type; each relocation removes those that do not fit.
    candidates: RefCell<HashMap<TypeId, Rc<[TypeId]>>>,
    budget: RefCell<Budget>,
}

impl<'a> CoreRelocations<'a> {
    pub(crate) fn new(local: &'a Btf, ext: &BtfExt, target: Option<&'a Btf>) -> Self {
        let relocations = by_section(local, &ext.relocations, |r| r.offset);
        let target = target.filter(|_| !relocations.is_empty()).map(Target::new);
        let budget = RefCell::new(Budget::new());
        let objects = Target::new(object::types());
        let own = OwnStructures::of(local);
        Self { local, target, objects, own, relocations, candidates: RefCell::default(), budget }
    }

    /// The target types for a root type, if any.
    fn target_of(&self, root: TypeId) -> Option<&Target<'a>> {
        let name = essential_name(self.local.type_name(root));
        if self.own.has(name) { Some(&self.objects) } else { self.target.as_ref() }
    }

    /// Adapts a function's code. The second result lists the instructions without an answer in the target.
    pub(crate) fn apply(
        &self,
        section: &str,
        function: &Function<'_>,
        insns: &mut [RawInsn],
    ) -> Result<Vec<Poison>, LoadError> {
        let bytes = RawInsn::BYTES as u64;
        let (start, end) = (function.start as u64 * bytes, function.end as u64 * bytes);
        let relocations = self.relocations.get(section).map(Vec::as_slice).unwrap_or_default();
        let first = relocations.partition_point(|r| u64::from(r.offset) < start);
        let mut poisoned = Vec::new();
        for relocation in relocations.iter().skip(first).take_while(|r| u64::from(r.offset) < end) {
            let error = |problem| LoadError::Core {
                section: section.to_owned(),
                offset: relocation.offset,
                kind: relocation.kind.name(),
                ty: self.local.c_name(relocation.ty),
                problem,
            };
            let slot = (u64::from(relocation.offset) - start) / bytes;
            let slot = usize::try_from(slot).map_err(|_| error(CoreProblem::Misplaced))?;
            if !relocation.offset.is_multiple_of(RawInsn::BYTES as u32) {
                return Err(error(CoreProblem::Misplaced));
            }
            let reason = self.relocate(relocation, slot, insns).map_err(error)?;
            if let Some(reason) = reason {
                let reason: Arc<str> = reason.into();
                poisoned.extend(
                    patch::poison(insns, slot).map(|slot| Poison { slot, reason: Arc::clone(&reason) }),
                );
            }
        }
        Ok(poisoned)
    }

    /// Adapts one instruction; returns the reason if it is to be poisoned.
    fn relocate(
        &self,
        relocation: &CoreRelocation,
        slot: usize,
        insns: &mut [RawInsn],
    ) -> Result<Option<String>, CoreProblem> {
        if relocation.kind == CoreKind::LocalTypeId {
            // Linkers renumber types, so the instruction's value cannot be checked.
            patch::apply(insns, slot, &Answer::unchecked(u64::from(relocation.ty)))?;
            return Ok(None);
        }
        let Some(target) = self.target_of(relocation.ty) else {
            let question = asks_whether_it_exists(relocation.kind);
            return question.then(|| self.describe_question(relocation)).transpose();
        };
        let access = Access::parse(self.local, relocation)?;
        let found = self.search(relocation, target, &access)?;
        let answer = match found {
            Some(answer) => answer,
            None => answer(relocation.kind, (self.local, &access), None)?,
        };
        if answer.value.is_none() {
            return Ok(Some(format!(
                "{} `{}` is not in the target's types",
                if access.path.is_empty() { "type" } else { "field or enumerator" },
                access.describe(self.local)
            )));
        }
        if answer.size_mismatch && patch::is_memory(insns, slot) {
            return Ok(Some(format!(
                "`{}` is in the target's types, but of a size or sign that the instruction cannot be adapted to",
                access.describe(self.local)
            )));
        }
        patch::apply(insns, slot, &answer)?;
        Ok(None)
    }

    fn describe_question(&self, relocation: &CoreRelocation) -> Result<String, CoreProblem> {
        let access = Access::parse(self.local, relocation)?;
        let matches = relocation.kind == CoreKind::TypeMatches;
        let asked = if matches { "is in the kernel as the object declares it" } else { "is in the kernel" };
        Ok(format!("asks whether `{}` {asked}, and no kernel's types are given", access.describe(self.local)))
    }

    /// The target's value; `None` if no candidate fits. All fitting candidates have to agree.
    fn search(
        &self,
        relocation: &CoreRelocation,
        types: &Target<'a>,
        access: &Access<'a>,
    ) -> Result<Option<Answer>, CoreProblem> {
        let budget = &mut *self.budget.borrow_mut();
        let mut found: Option<(Answer, u64)> = None;
        let mut fitting = Vec::new();
        for candidate in self.candidates(relocation.ty, types)?.iter() {
            budget.step()?;
            let Some(target) = access.find_in(self.local, types.btf, *candidate, relocation.kind, budget)?
            else {
                continue;
            };
            let new = answer(relocation.kind, (self.local, access), Some((types.btf, &target)))?;
            if let Some((known, bits)) = &found {
                if *bits != target.bit_offset {
                    return Err(CoreProblem::OffsetAmbiguity { first: *bits, second: target.bit_offset });
                }
                if known.value != new.value {
                    return Err(CoreProblem::Ambiguity);
                }
            }
            found = found.or(Some((new, target.bit_offset)));
            fitting.push(*candidate);
        }
        if !fitting.is_empty() {
            self.candidates.borrow_mut().insert(relocation.ty, fitting.into());
        }
        Ok(found.map(|(answer, _)| answer))
    }

    /// Target types of the same kind and the same name, apart from flavors, as a local type.
    fn candidates(&self, local: TypeId, target: &Target<'a>) -> Result<Rc<[TypeId]>, CoreProblem> {
        if let Some(known) = self.candidates.borrow().get(&local) {
            return Ok(Rc::clone(known));
        }
        let name = match self.local.type_name(local) {
            "" => return Err(CoreProblem::Anonymous),
            name => essential_name(name),
        };
        let local_type = self.local.get(local).ok_or(CoreProblem::Anonymous)?;
        let same_name = target.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        let same_kind =
            |id: &TypeId| target.btf.get(*id).is_some_and(|t| compatible::same_kind(local_type, t));
        let found: Rc<[TypeId]> = same_name.iter().copied().filter(same_kind).collect();
        self.candidates.borrow_mut().insert(local, Rc::clone(&found));
        Ok(found)
    }
}

/// Number of relocations that depend on target types.
pub(crate) fn needed(local: &Btf, ext: &BtfExt) -> usize {
    let sections = by_section(local, &ext.relocations, |r| r.offset);
    let own = OwnStructures::of(local);
    let is_answered = |r: &&CoreRelocation| {
        r.kind == CoreKind::LocalTypeId || own.has(essential_name(local.type_name(r.ty)))
    };
    sections.values().flatten().filter(|r| !is_answered(r)).count()
}

/// Whether only target types can answer: the compiler always writes that the item exists.
const fn asks_whether_it_exists(kind: CoreKind) -> bool {
    matches!(
        kind,
        CoreKind::FieldExists | CoreKind::TypeExists | CoreKind::TypeMatches | CoreKind::EnumeratorExists
    )
}
