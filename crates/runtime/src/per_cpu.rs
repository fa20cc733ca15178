//! Which CPU a host has in per-CPU maps. Programs store the values of their CPU without synchronization, so that hosts on two threads must
//! not have one number. A host has its CPU alone, from its first run over a map until it gives the CPU back, moves or is dropped.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use paceline_maps::CpuOwners;

/// Programs that a host remembers to have been admitted to.
pub(crate) const RECENT: usize = 16;

/// The per-CPU maps of a program or chain.
#[derive(Clone, Debug, Default)]
pub struct PerCpuMaps {
    /// Unique in the process, and no multiple of [`RECENT`]; 0 without maps.
    pub(crate) id: u32,
    pub(crate) maps: Arc<[Arc<CpuOwners>]>,
}

impl PerCpuMaps {
    /// Of maps with these owners.
    #[must_use]
    pub fn new(maps: impl IntoIterator<Item = Arc<CpuOwners>>) -> Self {
        static LAST_ID: AtomicU32 = AtomicU32::new(0);
        let mut all: Vec<Arc<CpuOwners>> = Vec::new();
        for map in maps {
            if !all.iter().any(|known| Arc::ptr_eq(known, &map)) {
                all.push(map);
            }
        }
        if all.is_empty() {
            return Self::default();
        }
        let id = loop {
            let id = LAST_ID.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if !(id as usize).is_multiple_of(RECENT) {
                break id;
            }
        };
        Self { id, maps: all.into() }
    }

    /// The maps of several programs.
    #[must_use]
    pub fn union<'a>(of: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::new(of.into_iter().flat_map(|one| one.maps.iter().cloned()))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.id == 0
    }

    /// Number of CPUs for which all maps have values.
    pub(crate) fn cpus(&self) -> usize {
        // default: without maps there is no limit.
        self.maps.iter().map(|map| map.cpus()).min().unwrap_or(usize::MAX)
    }
}

static LAST_HOST: AtomicU64 = AtomicU64::new(0);

/// The CPU that a host has.
pub(crate) struct Claims {
    host: NonZeroU64,
    /// Whether the number was not chosen by the user: the lowest one that is free.
    pub(crate) is_lent: bool,
    /// The maps in which the host has its CPU.
    pub(crate) maps: Vec<Arc<CpuOwners>>,
    /// Programs that the host was admitted to, by their ids.
    pub(crate) recent: [u32; RECENT],
}

impl Claims {
    pub(crate) fn new(is_lent: bool) -> Self {
        let host = NonZeroU64::MIN.saturating_add(LAST_HOST.fetch_add(1, Ordering::Relaxed));
        Self { host, is_lent, maps: Vec::new(), recent: [0; RECENT] }
    }

    /// Takes their CPUs from all hosts that there are.
    pub(crate) fn take_from_all() {
        CpuOwners::take_from_all_until(LAST_HOST.load(Ordering::Relaxed));
    }

    /// Takes a CPU in maps, or in none of them.
    pub(crate) fn take<'a>(
        &self,
        cpu: usize,
        maps: impl Iterator<Item = &'a Arc<CpuOwners>> + Clone,
    ) -> bool {
        let taken = maps.clone().take_while(|map| map.take(cpu, self.host)).count();
        let all = taken == maps.clone().count();
        if !all {
            maps.take(taken).for_each(|map| self.leave(cpu, map));
        }
        all
    }

    /// Gives a CPU of one map back.
    pub(crate) fn leave(&self, cpu: usize, map: &CpuOwners) {
        map.give_back(cpu, self.host);
    }

    pub(crate) fn give_back(&mut self, cpu: usize) {
        for map in std::mem::take(&mut self.maps) {
            self.leave(cpu, &map);
        }
        self.recent = [0; RECENT];
    }
}
