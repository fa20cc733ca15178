//! Handles on several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use paceline_c::*;

use crate::door::*;
use crate::library::c;

/// A handle that goes to other threads, as it may in C.
struct Shared<O>(*mut O);

impl<O> Copy for Shared<O> {}

impl<O> Clone for Shared<O> {
    fn clone(&self) -> Self {
        *self
    }
}

// SAFETY: a handle is a number, and nothing is read through it.
unsafe impl<O> Send for Shared<O> {}
// SAFETY: as above.
unsafe impl<O> Sync for Shared<O> {}

impl<O> Shared<O> {
    fn handle(&self) -> *mut O {
        self.0
    }
}

/// A burst with packets in it.
fn burst_of(packets: usize) -> *mut paceline_burst {
    let burst = handle(|error| c::paceline_burst_new(64, error)).unwrap();
    let data = [0; 60];
    let packets = vec![packet(&data); packets];
    status(|error| c::paceline_burst_push(burst, all(&packets), packets.len(), unwanted(), error)).unwrap();
    burst
}

/// A program is freed while others run it, a burst and a host are used by several threads: all of it ends as a status.
#[test]
fn what_threads_do_to_each_other_is_a_status() {
    let program = Shared(example("counter.o", "counter"));
    let (burst, host) =
        (Shared(burst_of(8)), Shared(handle(|error| c::paceline_host_new(0, error)).unwrap()));
    let (runs, busy, gone) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let is_freed = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while gone.load(Ordering::Relaxed) < 4 {
                    let (program, burst, host) = (program.handle(), burst.handle(), host.handle());
                    let run = status(|error| c::paceline_program_run_burst(program, burst, host, error));
                    match run.map_err(|told| told.status) {
                        Ok(()) => runs.fetch_add(1, Ordering::Relaxed),
                        Err(paceline_status::Busy) => busy.fetch_add(1, Ordering::Relaxed),
                        Err(paceline_status::Handle) => {
                            assert!(is_freed.load(Ordering::Relaxed));
                            gone.fetch_add(1, Ordering::Relaxed)
                        }
                        Err(other) => panic!("{other:?}"),
                    };
                }
            });
        }
        while runs.load(Ordering::Relaxed) < 1000 {
            thread::yield_now();
        }
        is_freed.store(true, Ordering::Relaxed);
        assert_eq!(c::paceline_program_free(program.handle()), paceline_status::Ok);
    });
    assert_eq!(c::paceline_burst_free(burst.handle()), paceline_status::Ok);
    assert_eq!(c::paceline_host_free(host.handle()), paceline_status::Ok);
}

/// Each thread has a worker, a burst and a host; one more changes the chain under them.
#[test]
fn a_chain_changes_under_its_workers() {
    let programs = [0, 1].map(|_| Shared(example("counter.o", "counter")));
    let [first, second] = ["first", "second"].map(c_string);
    let member = |name: &std::ffi::CStr, program: Shared<paceline_program>| paceline_member {
        name: text(name),
        program: program.handle(),
        ..zeroed()
    };
    let members = [member(&first, programs[0])];
    let chain = Shared(handle(|error| c::paceline_chain_new(all(&members), 1, 0, error)).unwrap());
    let (is_over, bursts) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for cpu in 0..2 {
            let (is_over, bursts) = (&is_over, &bursts);
            scope.spawn(move || {
                let worker = handle(|error| c::paceline_chain_worker(chain.handle(), 1, error)).unwrap();
                let (burst, host) = (burst_of(64), handle(|error| c::paceline_host_new(cpu, error)).unwrap());
                while !is_over.load(Ordering::Relaxed) {
                    status(|error| c::paceline_worker_run_burst(worker, burst, host, error)).unwrap();
                    bursts.fetch_add(1, Ordering::Relaxed);
                }
                let freed = [
                    c::paceline_worker_free(worker),
                    c::paceline_burst_free(burst),
                    c::paceline_host_free(host),
                ];
                assert_eq!(freed, [paceline_status::Ok; 3]);
            });
        }
        let mut revision = 0;
        let mut seen = 0;
        for _ in 0..200 {
            let new = member(&second, programs[1]);
            let changes = [
                paceline_change {
                    kind: paceline_change_kind::Add as u32,
                    member: given(&new),
                    name: no_text(),
                    ..zeroed()
                },
                paceline_change {
                    kind: paceline_change_kind::Remove as u32,
                    name: text(&second),
                    ..zeroed()
                },
            ];
            for change in &changes {
                let change = |error| {
                    let (chain, any) = (chain.handle(), PACELINE_ANY_REVISION);
                    c::paceline_chain_change(chain, given(change), 1, any, out(&mut revision), error)
                };
                status(change).unwrap();
                assert!(revision > seen);
                seen = revision;
            }
        }
        let stale = |error| {
            let change =
                paceline_change { kind: paceline_change_kind::Remove as u32, name: text(&first), ..zeroed() };
            c::paceline_chain_change(chain.handle(), given(&change), 1, revision - 1, unwanted(), error)
        };
        let told = status(stale).unwrap_err();
        assert_eq!(told.status, paceline_status::Chain);
        assert!(told.message.contains("has changed"), "{}", told.message);
        while bursts.load(Ordering::Relaxed) < 1000 {
            thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(c::paceline_chain_free(chain.handle()), paceline_status::Ok);
    programs
        .iter()
        .for_each(|program| assert_eq!(c::paceline_program_free(program.handle()), paceline_status::Ok));
}
