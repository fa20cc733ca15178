//! Batches, and what user space may do with a frozen map.

use paceline_maps::BatchError;
use paceline_spec::{Errno, MapFlags, MapKind, MapSpec};

use crate::bpf::Element;
use crate::operations::{operations, random_prefix};
use crate::{Twin, kernel_permits, spec};

const ENTRIES: u32 = 24;

fn outcome(result: Result<usize, BatchError>) -> (usize, Result<(), Errno>) {
    match result {
        Ok(done) => (done, Ok(())),
        Err(BatchError { done, errno }) => (done, Err(errno)),
    }
}

impl Twin {
    fn update_batch(&self, elements: &[Element], flags: u64) {
        let pairs = elements.iter().map(|(key, value)| (key, value));
        let (ours, kernels) =
            (outcome(self.ours.update_batch(pairs, flags)), self.kernels.update_batch(elements, flags));
        assert_eq!(ours, kernels, "{} set {elements:?} {flags:#x}", self.ours.spec().kind);
    }

    fn delete_batch(&self, keys: &[Vec<u8>]) {
        let (ours, kernels) = (outcome(self.ours.delete_batch(keys)), self.kernels.delete_batch(keys));
        assert_eq!(ours, kernels, "{} remove {keys:?}", self.ours.spec().kind);
    }

    fn take(&self, key: &[u8]) {
        assert_eq!(
            self.ours.lookup_and_delete(key),
            self.kernels.take(key),
            "{} take {key:?}",
            self.ours.spec().kind
        );
    }

    fn compare_elements(&self, take: bool) {
        let ours = if take { self.ours.drain() } else { self.ours.elements() };
        let sorted = |mut elements: Vec<Element>| {
            elements.sort();
            elements
        };
        let ours = ours.map(|elements| sorted(elements.collect()));
        let kernels = self.kernels.elements(1024, take).map(sorted);
        assert_eq!(ours, kernels, "{} take {take}", self.ours.spec().kind);
    }
}

fn key(rng: &mut fastrand::Rng, kind: MapKind) -> Vec<u8> {
    match kind {
        MapKind::LpmTrie => random_prefix(rng, 8),
        _ => rng.u32(..ENTRIES + 2).to_ne_bytes().to_vec(),
    }
}

fn run(spec: &MapSpec, seed: u64) {
    let twin = Twin::create(spec);
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..operations() / 16 {
        let keys: Vec<_> = (0..rng.usize(1..9)).map(|_| key(&mut rng, spec.kind)).collect();
        match rng.u32(..8) {
            0..3 => {
                let mut value = || rng.u64(..).to_ne_bytes().repeat(twin.ours.user_value_size() / 8);
                let elements: Vec<_> = keys.into_iter().map(|key| (key, value())).collect();
                twin.update_batch(&elements, if rng.u32(..10) == 0 { rng.u64(..8) } else { 0 });
            }
            3 => twin.delete_batch(&keys),
            4 => twin.take(&keys[0]),
            5 => drop(twin.freeze_rarely(&mut rng)),
            6 if rng.u32(..4) == 0 => twin.compare_elements(true),
            _ => twin.compare_elements(false),
        }
    }
    twin.compare_keys();
}

impl Twin {
    /// Frozen once, a map stays so: seldom enough that most of the sequence changes it.
    fn freeze_rarely(&self, rng: &mut fastrand::Rng) -> Result<(), Errno> {
        if rng.usize(..operations() / 16) == 0 { self.freeze() } else { Ok(()) }
    }
}

#[test]
fn batches() {
    if !kernel_permits("batches") {
        return;
    }
    let kinds = [
        (MapKind::Array, 4),
        (MapKind::PerCpuArray, 4),
        (MapKind::Hash, 4),
        (MapKind::PerCpuHash, 4),
        (MapKind::LruHash, 4),
        (MapKind::LpmTrie, 8),
    ];
    for (seed, (kind, key_size)) in kinds.into_iter().enumerate() {
        // An LRU list of the kernel's gives up elements before it is full.
        let entries = if kind == MapKind::LruHash { 4096 } else { ENTRIES };
        let flags = if kind == MapKind::LpmTrie { MapFlags::NO_PREALLOC } else { MapFlags::default() };
        run(&spec(kind, key_size, 8, entries, flags), seed as u64);
    }
}

#[test]
fn kinds_without_batches() {
    if !kernel_permits("kinds_without_batches") {
        return;
    }
    for kind in [MapKind::DevMapHash, MapKind::CpuMap, MapKind::ProgArray] {
        let twin = Twin::create(&spec(kind, 4, 4, 4, MapFlags::default()));
        let element = (vec![0; 4], vec![0; 4]);
        twin.update_batch(std::slice::from_ref(&element), 0);
        twin.delete_batch(std::slice::from_ref(&element.0));
        twin.compare_elements(false);
        twin.compare_elements(true);
    }
}
