//! Common code of the tests.

use paceline_spec::{MapFlags, MapKind, MapSpec};

/// A map and nothing else: no contents, no types.
pub(crate) fn spec(
    kind: MapKind,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: MapFlags,
) -> MapSpec {
    MapSpec { flags, ..MapSpec::new("m", kind, key_size, value_size, max_entries) }
}
