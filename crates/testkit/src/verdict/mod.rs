//! Random programs for the verifier: most nearly right, some not, so that both verdicts are common.
//!
//! A [`Candidate`] is lists of [`Step`]s, the main program's and its functions'. Steps refer to each other by distance,
//! so that any may be taken out, which is how a program that shows something is shrunk.

mod generate;
mod hostile;
mod judge;
mod layout;
mod soundness;

pub use generate::candidate;
pub use hostile::{arbitrary, mutated};
pub use judge::{Judge, Judgement, Ran, reason_class};
pub use layout::{Candidate, Step, Target};
pub use soundness::{States, Witness};

use paceline_spec::{InitialValue, MapFlags, MapKind, MapSpec, Pinning};

/// The maps that candidates use, by index.
#[must_use]
pub fn maps() -> Vec<MapSpec> {
    let mut constants = map("constants", MapKind::Array, 4, 16, 1);
    constants.flags = MapFlags::RDONLY_PROG;
    constants.frozen = true;
    let bytes = (0..16u8).map(|i| if i % 4 == 0 { i / 4 } else { 0 }).collect();
    constants.contents = vec![(vec![0; 4], InitialValue::Bytes(bytes))];
    vec![
        map("array", MapKind::Array, 4, 16, 4),
        map("hash", MapKind::Hash, 8, 24, 8),
        map("per_cpu", MapKind::PerCpuArray, 4, 8, 2),
        constants,
        map("globals", MapKind::Array, 4, 32, 1),
    ]
}

fn map(name: &str, kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> MapSpec {
    MapSpec {
        name: name.to_owned(),
        kind,
        key_size,
        value_size,
        max_entries,
        flags: MapFlags::default(),
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
