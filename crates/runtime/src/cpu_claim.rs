//! How a host takes its CPU in the per-CPU maps of what it runs.

use std::sync::Arc;

use paceline_maps::CpuOwners;

use crate::fault::{Fault, FaultKind};
use crate::host::Host;
use crate::per_cpu::{Claims, PerCpuMaps, RECENT};

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
            self.claims.maps.iter().for_each(|map| self.claims.leave(cpu, map));
            self.claims.recent = [0; RECENT];
            self.world.move_to(free);
        }
        self.claims.maps.extend(new);
        self.claims.recent[maps.id as usize % RECENT] = maps.id;
        Ok(())
    }

    /// Moves the worker to the CPU of a number, between runs: helpers and per-CPU maps go by it from then on.
    pub fn set_cpu(&mut self, cpu: usize) {
        self.claims.is_lent = false;
        if cpu != self.cpu() {
            self.give_back_cpu();
            self.world.move_to(cpu);
        }
    }

    /// Takes their CPUs from all hosts. The child of a fork calls it: threads that ran hosts are in its parent alone.
    pub fn take_all_cpus() {
        Claims::take_from_all();
    }

    /// Gives the CPU back to others until the next run, as when the host is dropped.
    pub fn give_back_cpu(&mut self) {
        if !self.claims.maps.is_empty() {
            self.claims.give_back(self.cpu());
        }
    }
}
