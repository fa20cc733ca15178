//! Names and types as all comparisons need them, and the limit on these.

use paceline_btf::{Btf, Name, Type, TypeId};

use crate::error::CoreProblem;

/// Limit on type comparisons for the relocations of an object. Types with cyclic references and many parameters or anonymous
/// members could otherwise be compared forever.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    /// Several times the steps of the largest objects in use.
    const STEPS: usize = 1 << 24;

    pub(super) const fn new() -> Self {
        Self(Self::STEPS)
    }

    /// Takes one step.
    pub(super) fn step(&mut self) -> Result<(), CoreProblem> {
        self.spend(1)
    }

    fn spend(&mut self, steps: usize) -> Result<(), CoreProblem> {
        self.0 = self.0.checked_sub(steps).ok_or(CoreProblem::TooComplex)?;
        Ok(())
    }

    /// Whether two names are equal apart from their flavors; long names take several steps.
    pub(super) fn same_name(
        &mut self,
        (local, a): (&Btf, Option<Name>),
        (target, b): (&Btf, Option<Name>),
    ) -> Result<bool, CoreProblem> {
        let a = a.map_or("", |name| essential(local, name));
        let b = b.map_or("", |name| essential(target, name));
        self.spend(1 + (a.len() + b.len()) / 64)?;
        Ok(a == b)
    }
}

/// A name without its flavor, `task_struct` for `task_struct___old`: flavors let a program declare several versions of a type.
pub(super) fn essential_name(name: &str) -> &str {
    let bytes = name.as_bytes();
    let is_separator =
        |w: &[u8]| matches!(w, [before, b'_', b'_', b'_', after] if *before != b'_' && *after != b'_');
    match bytes.windows(5).rposition(is_separator) {
        Some(at) => name.get(..=at).unwrap_or(name),
        None => name,
    }
}

/// A name without its flavor.
pub(super) fn essential(btf: &Btf, name: Name) -> &str {
    essential_name(btf.name(name))
}

/// The type after typedefs and modifiers.
pub(super) fn resolve(btf: &Btf, id: TypeId) -> Result<(TypeId, &Type), CoreProblem> {
    Ok(btf.resolve(id)?)
}

#[cfg(test)]
mod tests {
    use super::essential_name;

    #[test]
    fn flavors_are_cut_off() {
        for (name, essential) in [
            ("task_struct", "task_struct"),
            ("task_struct___old", "task_struct"),
            ("a___b___c", "a___b"),
            ("sample____not", "sample____not"),
            ("___leading", "___leading"),
            ("trailing___", "trailing___"),
            ("x___y", "x"),
            ("", ""),
        ] {
            assert_eq!(essential_name(name), essential, "{name}");
        }
    }
}
