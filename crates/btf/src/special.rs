//! Special fields of map values, which only the kernel may change: locks, timers, pointers to kernel objects.

use std::fmt;

use crate::types::{Btf, Composite, Type, TypeId};

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
    Refcount = "bpf_refcount", 4, 4, false, "A reference count.";
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
    /// structures, in variables of sections, and nested in these. Modifiers and typedefs of the value's type are looked through, those of
    /// members and variables are not: a member whose type is a typedef of `struct bpf_spin_lock` is no lock. None if the kernel reports an
    /// error, for example for two locks in one structure.
    #[must_use]
    pub fn special_fields(&self, value: TypeId) -> Box<[SpecialField]> {
        let mut search = Search { btf: self, found: Vec::new(), looks: MOST_LOOKS };
        let searched = match self.resolve(value) {
            Ok((_, Type::Struct(composite))) => search.structure(composite, 0, 0),
            Ok((_, Type::DataSection(section))) => {
                let mut seen = Vec::new();
                section.vars.iter().try_for_each(|var| match self.get(var.ty) {
                    Some(Type::Var { ty, .. }) => {
                        search.field(*ty, (0, var.offset), Some(var.size), 0, &mut seen)
                    }
                    _ => Some(()),
                })
            }
            _ => None,
        };
        let Search { found, .. } = search;
        let has = |kind| found.iter().any(|field: &SpecialField| field.kind == kind);
        let needs_lock = has(SpecialKind::ListHead) || has(SpecialKind::TreeRoot);
        let locks = [SpecialKind::SpinLock, SpecialKind::ResilientSpinLock].map(has);
        let are_in_order = found.windows(2).all(|two| two[0].offset + two[0].size <= two[1].offset);
        let are_allowed = are_in_order && locks != [true; 2] && (locks != [false; 2] || !needs_lock);
        if searched.is_some() && are_allowed { found.into() } else { Box::default() }
    }
}

/// The search, in the order of members; its methods return `None` where the kernel reports an error.
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
            self.field(member.ty, (base, member.bit_offset / 8), None, depth, &mut seen)
        })
    }

    /// Examines a member, or a variable with its size, by the offset of its structure or section and its own in that; `seen` are the
    /// kinds that the structure already has.
    fn field(
        &mut self,
        ty: TypeId,
        (base, within): (u32, u32),
        variable: Option<u32>,
        depth: usize,
        seen: &mut Vec<SpecialKind>,
    ) -> Option<()> {
        self.looks = self.looks.checked_sub(1)?;
        let (ty, count) = self.element(ty)?;
        if count == 0 {
            return Some(());
        }
        let (found, offset) = (self.btf.get(ty)?, base.checked_add(within)?);
        // The kernel looks at the alignment in the structure alone, also of a structure that is not aligned itself.
        let is_aligned = |align: u32| within.is_multiple_of(align);
        let fills = |size: u32| variable.is_none_or(|there| size.checked_mul(count) == Some(there));
        // By the name alone, also of a typedef, which is counted as seen.
        let Some((kind, size, align, once)) = SpecialKind::of_structure(self.btf.type_name(ty)) else {
            return match found {
                Type::Struct(composite) if fills(composite.size) => {
                    self.structures(composite, offset, count, depth)
                }
                Type::Struct(_) => Some(()),
                _ if !fills(8) || !is_aligned(8) || !self.is_kernel_pointer(found)? => Some(()),
                _ => self.add(SpecialKind::KernelPointer, offset, 8, count),
            };
        };
        if once && seen.contains(&kind) {
            return None;
        }
        seen.push(kind);
        let is_one = matches!(found, Type::Struct(composite) if composite.size == size);
        if is_one && fills(size) && is_aligned(align) {
            self.add(kind, offset, size, count)
        } else {
            Some(())
        }
    }

    /// Element type of an array of any dimension, and the total number of elements.
    fn element(&self, mut ty: TypeId) -> Option<(TypeId, u32)> {
        let mut count = 1u32;
        for _ in 0..MOST_DEPTH {
            let Some(Type::Array { element, count: more, .. }) = self.btf.get(ty) else {
                return Some((ty, count));
            };
            count = count.checked_mul(*more)?;
            ty = *element;
        }
        None
    }

    /// An array of structures, each with the fields of the first.
    fn structures(&mut self, composite: &Composite, offset: u32, count: u32, depth: usize) -> Option<()> {
        let before = self.found.len();
        self.structure(composite, offset, depth + 1)?;
        let first: Vec<SpecialField> = self.found.iter().skip(before).copied().collect();
        if first.is_empty() {
            return Some(());
        }
        for i in 1..count {
            let distance = composite.size.checked_mul(i)?;
            for field in &first {
                self.repeat(SpecialField { offset: field.offset.checked_add(distance)?, ..*field })?;
            }
        }
        Some(())
    }

    fn add(&mut self, kind: SpecialKind, offset: u32, size: u32, count: u32) -> Option<()> {
        let first = SpecialField { kind, offset, size };
        self.push(first)?;
        (1..count).try_for_each(|i| {
            self.repeat(SpecialField { offset: offset.checked_add(size.checked_mul(i)?)?, ..first })
        })
    }

    /// Another element of an array: only fields of some kinds may be in one (`btf_repeat_fields`).
    fn repeat(&mut self, field: SpecialField) -> Option<()> {
        use SpecialKind::{KernelPointer, ListHead, TreeRoot};
        if matches!(field.kind, KernelPointer | ListHead | TreeRoot) { self.push(field) } else { None }
    }

    fn push(&mut self, field: SpecialField) -> Option<()> {
        if self.found.len() == MOST_FIELDS {
            return None;
        }
        self.found.push(field);
        Some(())
    }

    /// Whether a member's type is a pointer to a kernel object; the tag precedes the modifiers of the pointee (`btf_find_kptr`).
    fn is_kernel_pointer(&self, ty: &Type) -> Option<bool> {
        let pointer = match ty {
            Type::Volatile(pointer) => self.btf.get(*pointer)?,
            pointer => pointer,
        };
        let Type::Ptr(pointee) = pointer else { return Some(false) };
        let Type::TypeTag { name, ty } = self.btf.get(*pointee)? else { return Some(false) };
        let is_known = matches!(self.btf.name(*name), "kptr" | "kptr_untrusted" | "percpu_kptr" | "uptr");
        if !is_known || matches!(self.btf.get(*ty)?, Type::TypeTag { .. }) {
            return None;
        }
        let (_, object) = self.btf.resolve(*ty).ok()?;
        matches!(object, Type::Struct(_)).then_some(true)
    }
}
