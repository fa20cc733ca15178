//! What the tests share.

use paceline_spec::{MapFlags, MapKind, MapSpec, Pinning};

/// A map and nothing else: no contents, no types.
pub(crate) fn spec(
    kind: MapKind,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: MapFlags,
) -> MapSpec {
    MapSpec {
        name: "m".to_owned(),
        kind,
        key_size,
        value_size,
        max_entries,
        flags,
        extra: 0,
        pinning: Pinning::None,
        key_type: 0,
        value_type: 0,
        special: Box::default(),
        inner: None,
        contents: Vec::new(),
        frozen: false,
    }
}
