//! The kernel as oracle: the same operations on a map of ours and on one of the kernel's, through `bpf(2)`, give the
//! same results and the same error numbers. Where `bpf(2)` is not permitted the tests are skipped, or fail when
//! `PACELINE_REQUIRE_ALL=1`.

mod batches;
mod bpf;
#[path = "../common/mod.rs"]
mod common;
mod containers;
mod create;
mod operations;
mod programs;
mod references;

use std::sync::Arc;

use paceline_maps::{Limits, Map};
use paceline_spec::{Errno, KeyKind, MapFlags, MapKind, MapSpec};

use bpf::KernelMap;
use common::spec;

fn limits() -> Limits {
    Limits { cpus: bpf::possible_cpus(), memory: 1 << 32 }
}

/// Whether the kernel lets us make maps; says so where not.
fn kernel_permits(test: &str) -> bool {
    let probe = spec(MapKind::Hash, 4, 4, 1, MapFlags::default());
    match KernelMap::create(&probe, 4) {
        Ok(_) => true,
        Err(errno) => {
            skip(test, &format!("bpf(2) gives {errno}"));
            false
        }
    }
}

/// Says that a test did not run, which is a failure where everything has to.
fn skip(test: &str, reason: &str) {
    eprintln!("SKIP {test}: {reason}");
    let required = std::env::var_os("PACELINE_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!required, "{test} must not be skipped: {reason}");
}

/// The same map twice.
struct Twin {
    ours: Arc<Map>,
    kernels: KernelMap,
}

impl Twin {
    fn create(spec: &MapSpec) -> Self {
        let ours = Map::create(spec, &limits()).unwrap();
        let kernels = KernelMap::create(ours.spec(), ours.user_value_size());
        // A device map shows the flag that the kernel adds by itself, and would refuse to be given.
        let kernels = kernels.or_else(|_| KernelMap::create(spec, ours.user_value_size())).unwrap();
        Self { ours, kernels }
    }

    fn get(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        let (ours, kernels) = (self.ours.lookup(key), self.kernels.get(key));
        assert_eq!(ours, kernels, "get {key:?}");
        ours
    }

    fn set(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        let (ours, kernels) = (self.ours.update_raw(key, value, flags), self.kernels.set(key, value, flags));
        assert_eq!(ours, kernels, "set {key:?} {value:?} {flags:#x}");
        ours
    }

    fn remove(&self, key: &[u8]) -> Result<(), Errno> {
        let (ours, kernels) = (self.ours.delete(key), self.kernels.remove(key));
        assert_eq!(ours, kernels, "remove {key:?}");
        ours
    }

    fn freeze(&self) -> Result<(), Errno> {
        let (ours, kernels) = (self.ours.freeze(), self.kernels.freeze());
        assert_eq!(ours, kernels, "freeze");
        ours
    }

    /// Orders of hashes differ, so only those of arrays are compared.
    fn compare_keys(&self) {
        let mut ours: Vec<_> = self.ours.keys().unwrap().collect();
        let by_next: Vec<_> =
            std::iter::successors(self.ours.next_key(None).ok(), |key| self.ours.next_key(Some(key)).ok())
                .collect();
        let mut kernels = self.kernels.keys();
        assert_eq!(ours, by_next, "both ways to iterate");
        if has_order(self.ours.spec().kind) {
            assert_eq!(ours, kernels);
        } else {
            ours.sort();
            kernels.sort();
            assert_eq!(ours, kernels);
        }
    }
}

/// Whether the kind's iteration has an order that is part of its interface.
fn has_order(kind: MapKind) -> bool {
    matches!(kind.rules().keys, KeyKind::Index)
}
