//! Which CPU a host has in per-CPU maps. Programs store the values of their CPU without synchronization, so that hosts on two threads must
//! not have one number. A host whose number the user did not choose has its CPU alone, from its first run over a map until it is dropped or
//! moves. Hosts with a chosen number share it with others of that kind: their user has one of them run at a time.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use paceline_maps::{CpuOwner, CpuOwners};

use crate::fault::{Fault, FaultKind};
use crate::host::Host;

/// Programs that a host remembers to have been admitted to.
const RECENT: usize = 16;

/// The per-CPU maps of a program or chain.
#[derive(Clone, Debug, Default)]
pub struct PerCpuMaps {
    /// Unique in the process, and no multiple of [`RECENT`]; 0 without maps.
    id: u32,
    maps: Arc<[Arc<CpuOwners>]>,
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
    fn cpus(&self) -> usize {
        self.maps.iter().map(|map| map.cpus()).min().unwrap_or(usize::MAX)
    }
}

/// The CPU that a host has.
pub(crate) struct Claims {
    host: NonZeroU64,
    /// Whether the number was not chosen by the user: the lowest one that is free.
    is_lent: bool,
    /// The maps in which the host has its CPU.
    maps: Vec<Arc<CpuOwners>>,
    /// Programs that the host was admitted to, by their ids.
    recent: [u32; RECENT],
}

impl Claims {
    pub(crate) fn new(is_lent: bool) -> Self {
        static LAST_HOST: AtomicU64 = AtomicU64::new(0);
        let host = NonZeroU64::MIN.saturating_add(LAST_HOST.fetch_add(1, Ordering::Relaxed));
        Self { host, is_lent, maps: Vec::new(), recent: [0; RECENT] }
    }

    /// Takes a CPU in maps, or in none of them.
    fn take<'a>(&self, cpu: usize, maps: impl Iterator<Item = &'a Arc<CpuOwners>> + Clone) -> bool {
        let taken = maps.clone().take_while(|map| map.take(cpu, self.owner())).count();
        let all = taken == maps.clone().count();
        if !all {
            maps.take(taken).for_each(|map| map.give_back(cpu, self.owner()));
        }
        all
    }

    fn owner(&self) -> CpuOwner {
        if self.is_lent { CpuOwner::One(self.host) } else { CpuOwner::Shared }
    }

    fn give_back(&mut self, cpu: usize) {
        let owner = self.owner();
        self.maps.drain(..).for_each(|map| map.give_back(cpu, owner));
        self.recent = [0; RECENT];
    }
}

impl Host {
    /// Ensures that the host has its CPU in the per-CPU maps of what it runs next.
    ///
    /// # Errors
    /// [`FaultKind::NoCpu`], [`FaultKind::CpuInUse`] or [`FaultKind::NoFreeCpu`].
    #[inline]
    pub fn admit(&mut self, maps: &PerCpuMaps) -> Result<(), Box<Fault>> {
        if self.is_admitted(maps) { Ok(()) } else { self.claim(maps, self.claims.is_lent) }
    }

    /// The same in the middle of a run, for a program that is tail called: the host keeps its number.
    ///
    /// # Errors
    /// [`FaultKind::NoCpu`] or [`FaultKind::CpuInUse`].
    #[inline]
    pub fn admit_within(&mut self, maps: &PerCpuMaps) -> Result<(), Box<Fault>> {
        if self.is_admitted(maps) { Ok(()) } else { self.claim(maps, false) }
    }

    /// Whether the host was admitted to them a moment ago.
    #[inline]
    pub fn is_admitted(&self, maps: &PerCpuMaps) -> bool {
        self.claims.recent[maps.id as usize % RECENT] == maps.id
    }

    #[cold]
    #[inline(never)]
    fn claim(&mut self, maps: &PerCpuMaps, may_move: bool) -> Result<(), Box<Fault>> {
        let (cpus, cpu) = (maps.cpus(), self.cpu());
        // Those of maps that are gone.
        self.claims.maps.retain(|map| Arc::strong_count(map) > 1);
        let is_new = |map: &&Arc<CpuOwners>| !self.claims.maps.iter().any(|known| Arc::ptr_eq(known, map));
        let new: Vec<Arc<CpuOwners>> = maps.maps.iter().filter(is_new).cloned().collect();
        if !self.claims.take(cpu, new.iter()) {
            let fault = |kind| Err(Box::new(Fault { slot: 0, kind, tail_called: None }));
            if !may_move {
                return fault(if cpu < cpus { FaultKind::CpuInUse(cpu) } else { FaultKind::NoCpu(cpu) });
            }
            let all = || self.claims.maps.iter().chain(&new);
            let free = (0..cpus).filter(|&other| other != cpu).find(|&other| self.claims.take(other, all()));
            let Some(free) = free else { return fault(FaultKind::NoFreeCpu(cpus)) };
            self.claims.maps.iter().for_each(|map| map.give_back(cpu, self.claims.owner()));
            self.claims.recent = [0; RECENT];
            self.move_to(free);
        }
        self.claims.maps.extend(new);
        self.claims.recent[maps.id as usize % RECENT] = maps.id;
        Ok(())
    }

    /// Moves the worker to the CPU of a number, between runs: helpers and per-CPU maps go by it from then on.
    pub fn set_cpu(&mut self, cpu: usize) {
        // A lent number that is the wanted one stays lent.
        if cpu != self.cpu() {
            self.claims.give_back(self.cpu());
            self.claims.is_lent = false;
            self.move_to(cpu);
        }
    }

    /// Gives the CPU back to others, as when the host is dropped.
    pub(crate) fn leave_cpu(&mut self) {
        self.claims.give_back(self.cpu());
    }
}
