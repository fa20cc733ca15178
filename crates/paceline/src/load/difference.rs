//! Whether a map can stand in the place of another of its name.

use paceline_spec::{MapFlags, MapSpec};

/// Difference between two maps of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Difference {
    /// Their kinds.
    #[error("kinds differ")]
    Kind,
    /// The sizes of their keys.
    #[error("sizes of keys differ: {0} and {1} bytes")]
    KeySize(u32, u32),
    /// The sizes of their values.
    #[error("sizes of values differ: {0} and {1} bytes")]
    ValueSize(u32, u32),
    /// Number of elements.
    #[error("numbers of entries differ: {0} and {1}")]
    Entries(u32, u32),
    /// Their flags, or what else their kinds have.
    #[error("flags differ")]
    Flags,
    /// The locks, timers and pointers in their values.
    #[error("special fields of values differ")]
    Special,
    /// The maps that they hold.
    #[error("inner maps differ")]
    Inner,
    /// The global variables that they hold.
    #[error("variables differ")]
    Variables,
    /// They hold constants, which are part of a program.
    #[error("it holds constants")]
    Constants,
    /// They hold programs of their object.
    #[error("it holds programs")]
    Programs,
}

/// The first difference that keeps a map from being used in the place of another of the same name, where nobody says that it is
/// meant to be.
pub(super) fn difference(wanted: &MapSpec, found: &MapSpec) -> Option<Difference> {
    let is_part_of_a_program = match (wanted.frozen || found.frozen, wanted.kind) {
        (true, _) => Some(Difference::Constants),
        (false, kind) if kind.holds_programs() && found.kind == kind => Some(Difference::Programs),
        _ => None,
    };
    is_part_of_a_program.or_else(|| shape_difference(wanted, found))
}

/// The first difference between what two objects say of one map: what libbpf compares before it uses a pinned map
/// (`map_is_reuse_compat` in `libbpf.c`), and what the verifier relies on besides.
pub(super) fn shape_difference(wanted: &MapSpec, found: &MapSpec) -> Option<Difference> {
    // Flags that creation adds.
    let added = if wanted.kind.is_read_only() { MapFlags::RDONLY_PROG.0 } else { 0 };
    let flags = |spec: &MapSpec| (spec.flags.0 | added, spec.extra);
    let counts_cpus = wanted.kind.holds_events() && wanted.max_entries == 0;
    let checks = [
        (wanted.kind != found.kind, Difference::Kind),
        (wanted.key_size != found.key_size, Difference::KeySize(wanted.key_size, found.key_size)),
        (wanted.value_size != found.value_size, Difference::ValueSize(wanted.value_size, found.value_size)),
        (
            wanted.max_entries != found.max_entries && !counts_cpus,
            Difference::Entries(wanted.max_entries, found.max_entries),
        ),
        (flags(wanted) != flags(found), Difference::Flags),
        (wanted.special != found.special, Difference::Special),
    ];
    let first = checks.into_iter().find(|(differs, _)| *differs).map(|(_, difference)| difference);
    first.or_else(|| match (&wanted.inner, &found.inner) {
        (None, None) => None,
        (Some(wanted), Some(found)) => shape_difference(wanted, found).map(|_| Difference::Inner),
        _ => Some(Difference::Inner),
    })
}
