//! Special fields of map values, which only the kernel may change: locks, timers, pointers to kernel objects.

use std::fmt;

use crate::{Btf, Composite, Type, TypeId};

/// Maximum number of special fields of a value (`BTF_FIELDS_MAX`); the kernel treats a value with more as one without any.
const MOST_FIELDS: usize = 11;

/// Maximum number of members that are examined. Nested structures of a hostile object may have far more.
const MOST_LOOKS: u32 = 1 << 16;

/// Maximum nesting depth of the search (`MAX_RESOLVE_DEPTH`).
const MOST_DEPTH: usize = 32;

macro_rules! special_kinds {
    ($($variant:ident = $name:literal, $size:literal, $align:literal, $once:literal, $doc:literal;)*) => {
        /// Kind of a special field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SpecialKind {
            $(#[doc = $doc] $variant,)*
            /// A pointer to a kernel object: one with the tag `kptr`, `kptr_untrusted`, `percpu_kptr` or `uptr`.
            KernelPointer,
        }

        impl SpecialKind {
            /// The kind of a structure with this name, its size and alignment in bytes, and whether a structure may contain only
            /// one.
            fn of_structure(name: &str) -> Option<(Self, u32, u32, bool)> {
                match name { $($name => Some((Self::$variant, $size, $align, $once)),)* _ => None }
            }

            /// Name of the structure, or of the kind.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::KernelPointer => "kptr" }
            }
        }
    };
}

special_kinds! {
    SpinLock = "bpf_spin_lock", 4, 4, true, "A spin lock.";
    ResilientSpinLock = "bpf_res_spin_lock", 4, 4, true, "A spin lock whose acquisition may fail.";
    Timer = "bpf_timer", 16, 8, true, "A timer.";
    Workqueue = "bpf_wq", 16, 8, true, "A work item that runs later.";
    TaskWork = "bpf_task_work", 8, 8, true, "A work item that runs in the context of a task.";
    ListHead = "bpf_list_head", 16, 8, false, "The head of a list of objects.";
    TreeRoot = "bpf_rb_root", 16, 8, false, "The root of a red-black tree of objects.";
    Refcount = "bpf_refcount", 4, 4, true, "A reference count.";
}

impl fmt::Display for SpecialKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A special field of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpecialField {
    /// Kind.
    pub kind: SpecialKind,
    /// Offset in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

impl Btf {
    /// The special fields of a map's values, by increasing offset, with the rules of `btf_parse_fields` in `kernel/bpf/btf.c`: in
    /// structures, in variables of sections, and nested in these. None if the kernel reports an error, for example for two locks in
    /// one structure.
    #[must_use]
    pub fn special_fields(&self, value: TypeId) -> Box<[SpecialField]> {
        let mut search = Search { btf: self, found: Vec::new(), looks: MOST_LOOKS };
        let searched = match self.get(value) {
            Some(Type::Struct(composite)) => search.structure(composite, 0, 0),
            Some(Type::DataSection(section)) => {
                let mut seen = Vec::new();
                section.vars.iter().try_for_each(|var| match self.get(var.ty) {
                    Some(Type::Var { ty, .. }) => search.field(*ty, var.offset, 0, &mut seen),
                    _ => Some(()),
                })
            }
            _ => None,
        };
        let Search { mut found, .. } = search;
        found.sort_by_key(|field| field.offset);
        let has = |kind| found.iter().any(|field: &SpecialField| field.kind == kind);
        let needs_lock = has(SpecialKind::ListHead) || has(SpecialKind::TreeRoot);
        let has_lock = has(SpecialKind::SpinLock) || has(SpecialKind::ResilientSpinLock);
        if searched.is_none() || needs_lock && !has_lock { Box::default() } else { found.into() }
    }
}

/// The search; its methods return `None` where the kernel reports an error.
struct Search<'a> {
    btf: &'a Btf,
    found: Vec<SpecialField>,
    /// Remaining number of members that may be examined.
    looks: u32,
}

impl Search<'_> {
    fn structure(&mut self, composite: &Composite, base: u32, depth: usize) -> Option<()> {
        if depth >= MOST_DEPTH {
            return None;
        }
        let mut seen = Vec::new();
        composite.members.iter().try_for_each(|member| {
            let offset = base.checked_add(member.bit_offset / 8)?;
            self.field(member.ty, offset, depth, &mut seen)
        })
    }

    /// Examines a member or variable; `seen` are the kinds that its structure or section already has.
    fn field(&mut self, ty: TypeId, offset: u32, depth: usize, seen: &mut Vec<SpecialKind>) -> Option<()> {
        self.looks = self.looks.checked_sub(1)?;
        let (ty, count) = self.element(ty)?;
        match self.btf.get(ty)? {
            Type::Struct(composite) => match SpecialKind::of_structure(self.btf.name(composite.name)) {
                Some((kind, size, align, once)) => {
                    if once && seen.contains(&kind) {
                        return None;
                    }
                    seen.push(kind);
                    let fits = composite.size == size && offset.is_multiple_of(align);
                    if fits { self.add(kind, offset, size, count) } else { Some(()) }
                }
                None => self.structures(composite, offset, count, depth),
            },
            Type::Ptr(pointee) if self.is_kernel_pointer(*pointee) => {
                self.add(SpecialKind::KernelPointer, offset, 8, count)
            }
            _ => Some(()),
        }
    }

    /// Element type of an array of any dimension, and the total number of elements.
    fn element(&self, mut ty: TypeId) -> Option<(TypeId, u32)> {
        let mut count = 1u32;
        for _ in 0..MOST_DEPTH {
            let Some(Type::Array { element, count: more, .. }) = self.btf.get(ty) else { break };
            count = count.checked_mul(*more)?;
            ty = *element;
        }
        Some((ty, count))
    }

    fn structures(&mut self, composite: &Composite, offset: u32, count: u32, depth: usize) -> Option<()> {
        let before = self.found.len();
        for i in 0..count {
            self.structure(composite, offset.checked_add(composite.size.checked_mul(i)?)?, depth + 1)?;
            if self.found.len() == before {
                break;
            }
        }
        Some(())
    }

    fn add(&mut self, kind: SpecialKind, offset: u32, size: u32, count: u32) -> Option<()> {
        for i in 0..count {
            if self.found.len() == MOST_FIELDS {
                return None;
            }
            let offset = offset.checked_add(size.checked_mul(i)?)?;
            self.found.push(SpecialField { kind, offset, size });
        }
        Some(())
    }

    /// The tag precedes the modifiers.
    fn is_kernel_pointer(&self, pointee: TypeId) -> bool {
        let is_tag = |name| matches!(name, "kptr" | "kptr_untrusted" | "percpu_kptr" | "uptr");
        matches!(self.btf.get(pointee), Some(Type::TypeTag { name, .. }) if is_tag(self.btf.name(*name)))
    }
}
