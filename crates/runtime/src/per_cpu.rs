//! Which CPU a host has in per-CPU maps. Programs store the values of their CPU without synchronization, so that hosts on two threads must
//! not have one number. A host whose number the user did not choose has its CPU alone, from its first run over a map until it is dropped or
//! moves. Hosts with a chosen number share it with others of that kind: their user has one of them run at a time.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use paceline_maps::{CpuOwner, CpuOwners};

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

    /// Number of CPUs for which all maps have values.
    pub(crate) fn cpus(&self) -> usize {
        self.maps.iter().map(|map| map.cpus()).min().unwrap_or(usize::MAX)
    }
}

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
        static LAST_HOST: AtomicU64 = AtomicU64::new(0);
        let host = NonZeroU64::MIN.saturating_add(LAST_HOST.fetch_add(1, Ordering::Relaxed));
        Self { host, is_lent, maps: Vec::new(), recent: [0; RECENT] }
    }

    /// Takes a CPU in maps, or in none of them.
    pub(crate) fn take<'a>(
        &self,
        cpu: usize,
        maps: impl Iterator<Item = &'a Arc<CpuOwners>> + Clone,
    ) -> bool {
        let taken = maps.clone().take_while(|map| map.take(cpu, self.owner())).count();
        let all = taken == maps.clone().count();
        if !all {
            maps.take(taken).for_each(|map| map.give_back(cpu, self.owner()));
        }
        all
    }

    pub(crate) fn owner(&self) -> CpuOwner {
        if self.is_lent { CpuOwner::One(self.host) } else { CpuOwner::Shared }
    }

    pub(crate) fn give_back(&mut self, cpu: usize) {
        let owner = self.owner();
        self.maps.drain(..).for_each(|map| map.give_back(cpu, owner));
        self.recent = [0; RECENT];
    }
}
