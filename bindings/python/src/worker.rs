//! Workers: what one CPU needs to run packets, taken by one call at a time.
//!
//! A collection has as many workers as its per-CPU maps have values. A call takes the free worker of the lowest number, or waits for
//! one with the interpreter released, so that two runs never share a CPU's values, as in the kernel.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use paceline::{Burst, ChainWorker, Host};
use pyo3::prelude::*;

use crate::effects::Effects;
use crate::process::forks;

/// CPUs that there may be: more than machines have.
pub(crate) const MAX_CPUS: usize = 4096;

/// State of a CPU that runs packets.
pub(crate) struct Worker {
    pub(crate) host: Host,
    /// For one packet.
    pub(crate) single: Burst,
    /// For many; made when there are many.
    pub(crate) burst: Option<Burst>,
    /// Of a chain that runs here.
    pub(crate) chain: Option<ChainWorker>,
    pub(crate) effects: Effects,
    /// Whether the last run took long; true before the first.
    pub(crate) is_slow: bool,
    /// Whether the host has another network than an empty one.
    pub(crate) is_network_set: bool,
}

impl Worker {
    pub(crate) fn new(cpu: usize) -> Self {
        let mut host = Host::new(cpu);
        let effects = Effects::of(&mut host);
        Self {
            host,
            single: Burst::new(1),
            burst: None,
            chain: None,
            effects,
            is_slow: true,
            is_network_set: false,
        }
    }
}

/// The workers of a collection or chain.
pub(crate) struct Workers {
    cpus: usize,
    /// Workers of this process; locked with the interpreter held only, so that no fork meets it locked.
    current: Mutex<(u64, Arc<Pool>)>,
}

struct Pool {
    free: Mutex<Free>,
    returned: Condvar,
}

/// The workers that no call has.
struct Free {
    /// By rising number from the end; `None` stands for one that was not needed yet.
    workers: Vec<(usize, Option<Box<Worker>>)>,
    /// Calls that wait: to wake nobody costs a system call.
    waiting: usize,
}

impl Pool {
    fn new(cpus: usize) -> Arc<Self> {
        let workers = (0..cpus).rev().map(|cpu| (cpu, None)).collect();
        Arc::new(Self { free: Mutex::new(Free { workers, waiting: 0 }), returned: Condvar::new() })
    }

    fn put(&self, cpu: usize, worker: Option<Box<Worker>>) {
        let mut free = lock(&self.free);
        let place = free.workers.partition_point(|(other, _)| *other > cpu);
        free.workers.insert(place, (cpu, worker));
        if free.waiting > 0 {
            // Some wait for one CPU, some for any.
            self.returned.notify_all();
        }
    }

    fn wait(&self, cpu: Option<usize>) -> (usize, Option<Box<Worker>>) {
        let mut free = lock(&self.free);
        loop {
            if let Some(worker) = free.take(cpu) {
                return worker;
            }
            free.waiting += 1;
            free = self.returned.wait(free).unwrap_or_else(PoisonError::into_inner);
            free.waiting -= 1;
        }
    }
}

impl Free {
    /// Takes the worker of a CPU, or of the lowest one that is free.
    fn take(&mut self, cpu: Option<usize>) -> Option<(usize, Option<Box<Worker>>)> {
        let Some(cpu) = cpu else { return self.workers.pop() };
        let place = self.workers.iter().position(|(other, _)| *other == cpu)?;
        Some(self.workers.remove(place))
    }
}

impl Workers {
    pub(crate) fn new(cpus: usize) -> Self {
        let current = Mutex::new((forks(), Pool::new(cpus)));
        Self { cpus, current }
    }

    /// Number of them.
    pub(crate) fn cpus(&self) -> usize {
        self.cpus
    }

    /// Takes a free worker, or waits for one.
    pub(crate) fn take(&self, py: Python<'_>) -> Lease {
        self.take_of(py, None)
    }

    /// Takes the worker of a CPU, as soon as it is free.
    pub(crate) fn take_again(&self, py: Python<'_>, cpu: usize) -> Lease {
        self.take_of(py, Some(cpu))
    }

    /// The workers, for a thread that has no interpreter.
    pub(crate) fn turns(&self) -> Turns {
        Turns(self.pool())
    }

    fn take_of(&self, py: Python<'_>, cpu: Option<usize>) -> Lease {
        let pool = self.pool();
        let free = lock(&pool.free).take(cpu);
        let (cpu, worker) = free.unwrap_or_else(|| py.detach(|| pool.wait(cpu)));
        let worker = worker.unwrap_or_else(|| Box::new(Worker::new(cpu)));
        Lease { pool, cpu, worker: Some(worker) }
    }

    fn pool(&self) -> Arc<Pool> {
        let mut current = lock(&self.current);
        let forks = forks();
        if current.0 != forks {
            *current = (forks, Pool::new(self.cpus));
        }
        Arc::clone(&current.1)
    }
}

/// The workers, for a thread that has no interpreter and runs in the process that made it.
pub(crate) struct Turns(Arc<Pool>);

impl Turns {
    /// Takes a free worker, or waits for one.
    pub(crate) fn take(&self) -> Lease {
        let (cpu, worker) = self.0.wait(None);
        Lease { pool: Arc::clone(&self.0), cpu, worker }
    }
}

/// A worker that a call has, and gives back at its end.
pub(crate) struct Lease {
    pool: Arc<Pool>,
    cpu: usize,
    worker: Option<Box<Worker>>,
}

impl Lease {
    pub(crate) fn cpu(&self) -> usize {
        self.cpu
    }

    pub(crate) fn worker(&mut self) -> &mut Worker {
        let cpu = self.cpu;
        self.worker.get_or_insert_with(|| Box::new(Worker::new(cpu)))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A panic may have left it in any state.
        let mut worker = self.worker.take().filter(|_| !std::thread::panicking());
        // Another collection or chain with the same maps may use the CPU now.
        if let Some(worker) = &mut worker {
            worker.host.give_back_cpu();
        }
        self.pool.put(self.cpu, worker);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
