//! The fields of a map that programs read through its pointer: those of `struct bpf_map`.

use std::sync::atomic::AtomicU32;

use paceline_spec::{MapSpec, ObjectKind};

/// Words of the structure, up to its last field that programs read.
const WORDS: usize = 24;

/// The fields, at the offsets of [`ObjectKind::Map`].
#[repr(align(8))]
#[expect(dead_code, reason = "programs read it, by address")]
pub(crate) struct Described([AtomicU32; WORDS]);

impl Described {
    pub(crate) fn new(spec: &MapSpec, id: u32) -> Self {
        let mut words = [0; WORDS];
        for field in ObjectKind::Map.fields() {
            let value = match field.name {
                "map_type" => u64::from(spec.kind.number()),
                "key_size" => spec.key_size.into(),
                "value_size" => spec.value_size.into(),
                "max_entries" => spec.max_entries.into(),
                "map_extra" => spec.extra,
                "map_flags" => spec.flags.0.into(),
                "id" => id.into(),
                _ => continue,
            };
            let halves = if cfg!(target_endian = "big") && field.size == 8 {
                [(value >> 32) as u32, value as u32]
            } else {
                [value as u32, (value >> 32) as u32]
            };
            let places = words.iter_mut().skip(usize::from(field.offset / 4));
            places.zip(halves).take(usize::from(field.size / 4)).for_each(|(word, half)| *word = half);
        }
        Self(words.map(AtomicU32::new))
    }
}
