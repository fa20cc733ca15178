//! The protocol on real threads with both kinds of fences, and in the model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p paceline-epoch --release --lib`.

#[cfg(loom)]
mod model {
    use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use loom::thread;
    use std::sync::Arc;

    use crate::Domain;
    use crate::fence::Membarrier;

    /// Clears a flag when it is freed.
    struct Flag(Arc<AtomicBool>);

    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Relaxed);
        }
    }

    /// Two values, of which the first is replaced and retired while a worker runs bursts with the current one.
    fn replace_while_running(collectors: usize, make: fn() -> Domain) {
        let mut model = loom::model::Builder::new();
        // Unbounded exploration takes hours. Three preemptions exceed the number of dependent steps in the protocol.
        model.preemption_bound = Some(3);
        model.check(move || {
            let domain = make();
            let alive: Arc<[_; 2]> = Arc::new([(); 2].map(|()| Arc::new(AtomicBool::new(true))));
            let current = Arc::new(AtomicUsize::new(0));
            let mut reader = domain.reader();
            let worker = {
                let (alive, current) = (Arc::clone(&alive), Arc::clone(&current));
                thread::spawn(move || {
                    let _burst = reader.pin();
                    let found = current.load(Ordering::Relaxed);
                    assert!(alive[found].load(Ordering::Relaxed));
                    assert!(alive[found].load(Ordering::Relaxed));
                })
            };
            let other = (collectors > 1).then(|| {
                let domain = domain.clone();
                thread::spawn(move || domain.collect())
            });
            current.store(1, Ordering::Relaxed);
            domain.retire(Flag(Arc::clone(&alive[0])));
            domain.collect();
            worker.join().unwrap();
            if let Some(other) = other {
                other.join().unwrap();
            }
            domain.collect();
            assert_eq!(domain.pending(), 0);
            assert!(!alive[0].load(Ordering::Relaxed) && alive[1].load(Ordering::Relaxed));
        });
    }

    #[test]
    fn a_worker_never_finds_what_was_freed() {
        replace_while_running(1, Domain::new);
    }

    /// A cell that is overwritten as soon as its tag has passed, while a worker may have found it.
    #[test]
    fn a_worker_never_sees_what_it_found_reused() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let domain = Domain::new();
            let cells: Arc<[_; 2]> = Arc::new([0, 1].map(AtomicUsize::new));
            let current = Arc::new(AtomicUsize::new(0));
            let mut reader = domain.reader();
            let worker = {
                let (cells, current) = (Arc::clone(&cells), Arc::clone(&current));
                thread::spawn(move || {
                    let _burst = reader.pin();
                    let found = current.load(Ordering::Acquire);
                    assert_eq!(cells[found].load(Ordering::Relaxed), found);
                })
            };
            current.store(1, Ordering::Release);
            let tag = domain.advance();
            // Two threads ask, so that one may rely on the result of the other.
            let other = {
                let (domain, cells) = (domain.clone(), Arc::clone(&cells));
                thread::spawn(move || {
                    if domain.has_passed(tag) {
                        cells[0].store(7, Ordering::Relaxed);
                    }
                })
            };
            if domain.has_passed(tag) {
                cells[0].store(8, Ordering::Relaxed);
            }
            worker.join().unwrap();
            other.join().unwrap();
            assert!(domain.has_passed(tag));
        });
    }

    fn denied_later() -> Domain {
        Domain::with_fence(Some(Membarrier::denied_later()))
    }

    /// The worker pins itself without a fence until it sees the bit, and the kernel's fence is denied.
    #[test]
    fn a_worker_goes_over_to_fences() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let domain = denied_later();
            let alive: Arc<[_; 2]> = Arc::new([(); 2].map(|()| Arc::new(AtomicBool::new(true))));
            let current = Arc::new(AtomicUsize::new(0));
            let mut reader = domain.reader();
            let worker = {
                let (alive, current) = (Arc::clone(&alive), Arc::clone(&current));
                thread::spawn(move || {
                    for _ in 0..2 {
                        let _burst = reader.pin();
                        let found = current.load(Ordering::Relaxed);
                        assert!(alive[found].load(Ordering::Relaxed));
                    }
                })
            };
            current.store(1, Ordering::Relaxed);
            domain.retire(Flag(Arc::clone(&alive[0])));
            domain.collect();
            domain.collect();
            worker.join().unwrap();
            domain.collect();
            assert_eq!(domain.pending(), 0, "no reader is left that does not fence");
        });
    }

    /// A worker registers itself while other threads replace and free the values it reads.
    fn register_while_replacing(make: fn() -> Domain) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let domain = make();
            let alive: Arc<[_; 2]> = Arc::new([(); 2].map(|()| Arc::new(AtomicBool::new(true))));
            let current = Arc::new(AtomicUsize::new(0));
            let worker = {
                let (domain, alive, current) = (domain.clone(), Arc::clone(&alive), Arc::clone(&current));
                thread::spawn(move || {
                    let mut reader = domain.reader();
                    let _burst = reader.pin();
                    let found = current.load(Ordering::Relaxed);
                    assert!(alive[found].load(Ordering::Relaxed));
                })
            };
            current.store(1, Ordering::Relaxed);
            domain.retire(Flag(Arc::clone(&alive[0])));
            domain.collect();
            worker.join().unwrap();
            domain.collect();
            assert_eq!(domain.pending(), 0, "who is gone holds nothing");
        });
    }

    #[test]
    fn a_worker_registers_while_others_free() {
        register_while_replacing(Domain::new);
    }

    #[test]
    fn a_worker_registers_while_the_fence_is_denied() {
        register_while_replacing(denied_later);
    }

    #[test]
    fn two_threads_collect() {
        replace_while_running(2, Domain::new);
    }
}

#[cfg(not(loom))]
mod threads {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier};
    use std::thread;
    use std::time::Duration;

    use crate::fence::Membarrier;
    use crate::{Domain, Limit};

    /// Counts drops.
    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn freed_when_those_pinned_before_are_done() {
        let domain = Domain::new();
        let freed = Arc::new(AtomicUsize::new(0));
        let freed_count = || freed.load(Ordering::Relaxed);
        let (mut early, mut late) = (domain.reader(), domain.reader());
        let early_pin = early.pin();
        domain.retire(Counted(Arc::clone(&freed)));
        let late_pin = late.pin();
        domain.retire(Counted(Arc::clone(&freed)));
        assert_eq!((domain.collect(), freed_count(), domain.pending()), (0, 0, 2));
        drop(early_pin);
        assert_eq!((domain.collect(), freed_count(), domain.pending()), (1, 1, 1));
        drop(late_pin);
        assert_eq!((domain.collect(), freed_count(), domain.pending()), (1, 2, 0));
        assert_eq!(domain.collect(), 0);
    }

    /// The epoch that is known to have passed is between the tags of the two values.
    #[test]
    fn a_collection_frees_values_of_all_passed_tags() {
        let domain = Domain::new();
        domain.retire(1);
        assert!(domain.has_passed(domain.advance()));
        domain.retire(2);
        assert_eq!((domain.collect(), domain.pending()), (2, 0));
    }

    #[test]
    fn a_reader_that_is_dropped_holds_nothing() {
        let domain = Domain::new();
        let mut reader = domain.reader();
        std::mem::forget(reader.pin());
        domain.retire(());
        assert_eq!(domain.collect(), 0);
        drop(reader);
        assert_eq!(domain.collect(), 1);
    }

    #[test]
    fn retirements_collect_by_themselves() {
        let domain = Domain::new();
        let mut reader = domain.reader();
        let pin = reader.pin();
        for _ in 0..1000 {
            domain.retire(());
        }
        assert_eq!(domain.pending(), 1000);
        drop(pin);
        // Each retirement after the stall frees a part of the backlog.
        let pending = [(); 20].map(|()| {
            domain.retire(());
            domain.pending()
        });
        assert!(pending[0] < 1000 && pending[19] < 32, "{pending:?}");
    }

    #[test]
    fn many_bytes_are_not_let_wait() {
        let domain = Domain::new();
        domain.retire_sized((), 1 << 10);
        assert_eq!((domain.backlog().objects, domain.backlog().bytes), (1, 1 << 10));
        domain.retire_sized((), 1 << 30);
        assert_eq!((domain.backlog().objects, domain.backlog().bytes), (0, 0));
    }

    #[test]
    fn a_stall_is_told_and_bounded() {
        let domain = Domain::new();
        domain.set_limit(Limit { objects: 100, bytes: 10_000 });
        let (pinned, go_on) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            let (domain, pinned, go_on) = (&domain, &pinned, &go_on);
            let worker = thread::Builder::new().name("stuck".into());
            let stuck = worker.spawn_scoped(scope, move || {
                let mut reader = domain.reader();
                let pin = reader.pin();
                pinned.wait();
                go_on.wait();
                drop(pin);
            });
            pinned.wait();
            let change = || domain.admit().map(|()| domain.retire_sized([0_u8; 10], 10));
            assert_eq!((0..100).filter(|_| change().is_ok()).count(), 100);
            let stalled = change().unwrap_err().0;
            assert_eq!((stalled.objects, stalled.bytes), (100, 1000));
            assert_eq!(stalled.holder.as_deref(), Some("stuck"));
            assert!(stalled.age.is_some_and(|age| age >= Duration::from_millis(200)), "it was waited for");
            let start = std::time::Instant::now();
            assert!((0..10).all(|_| change().is_err()));
            assert!(start.elapsed() < Duration::from_millis(200), "nobody waits for the same worker twice");
            go_on.wait();
            stuck.unwrap().join().unwrap();
            change().unwrap();
            assert_eq!(domain.pending(), 1);
            domain.set_limit(Limit { objects: 100, bytes: 10 });
            let (mut reader, domain) = (domain.reader(), domain.clone());
            let _pin = reader.pin();
            domain.retire_sized((), 10);
            assert!(domain.admit().is_err(), "by bytes");
        });
    }

    /// A seccomp filter installed after the domain: workers switch to fences at their next pin.
    #[test]
    fn the_kernel_denies_its_fence_later() {
        let domain = Domain::with_fence(Some(Membarrier::denied_later()));
        let (mut busy, idle) = (domain.reader(), domain.reader());
        domain.retire(());
        assert_eq!((domain.collect(), domain.backlog().unfenced), (0, 2));
        drop(busy.pin());
        assert_eq!((domain.collect(), domain.backlog().unfenced), (0, 1));
        drop(idle);
        assert_eq!((domain.collect(), domain.backlog().unfenced), (1, 0));
        let mut late = domain.reader();
        domain.retire(());
        assert_eq!(domain.collect(), 1, "who comes later fences from the beginning");
        let pin = late.pin();
        domain.retire(());
        assert_eq!(domain.collect(), 0);
        drop(pin);
        assert_eq!(domain.collect(), 1);
    }

    #[test]
    fn the_last_handle_frees_everything() {
        let freed = Arc::new(AtomicUsize::new(0));
        let domain = Domain::new();
        let reader = domain.reader();
        domain.retire(Counted(Arc::clone(&freed)));
        drop(domain);
        assert_eq!(freed.load(Ordering::Relaxed), 0);
        drop(reader);
        assert_eq!(freed.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn dropping_may_retire() {
        struct Chain(Domain, usize);
        impl Drop for Chain {
            fn drop(&mut self) {
                if self.1 > 0 {
                    self.0.retire(Self(self.0.clone(), self.1 - 1));
                }
            }
        }
        let domain = Domain::new();
        domain.retire(Chain(domain.clone(), 3));
        assert_eq!([(); 5].map(|()| domain.collect()), [1, 1, 1, 1, 0]);
    }

    #[test]
    fn a_tag_passes_when_those_pinned_before_are_done() {
        let domain = Domain::new();
        let (mut early, mut late) = (domain.reader(), domain.reader());
        let early_pin = early.pin();
        let tag = domain.advance();
        let late_pin = late.pin();
        assert!(!domain.has_passed(tag));
        drop(early_pin);
        assert!(domain.has_passed(tag));
        let next = domain.advance();
        assert!(domain.has_passed(tag) && !domain.has_passed(next));
        drop(late_pin);
        assert!(domain.has_passed(next));
    }

    const ALIVE: usize = 0x5afe;

    /// Workers read the current value continuously while others replace it: a value is overwritten before it is freed, so late
    /// reads are detected.
    fn stress(domain: &Domain) {
        const REPLACED: usize = 5000;
        let values: Arc<[AtomicUsize]> = (0..=2 * REPLACED).map(|_| AtomicUsize::new(ALIVE)).collect();
        /// Poisons its value, whose memory remains allocated, so that a late read is only a test failure.
        struct Poison(Arc<[AtomicUsize]>, usize);
        impl Drop for Poison {
            fn drop(&mut self) {
                self.0[self.1].store(0, Ordering::Relaxed);
            }
        }
        let (current, next) = (AtomicUsize::new(0), AtomicUsize::new(1));
        let done = AtomicBool::new(false);
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut reader = domain.reader();
                    start.wait();
                    while !done.load(Ordering::Relaxed) {
                        let _burst = reader.pin();
                        let value = &values[current.load(Ordering::Acquire)];
                        for _ in 0..4 {
                            assert_eq!(value.load(Ordering::Relaxed), ALIVE);
                        }
                    }
                });
            }
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        for _ in 0..REPLACED {
                            let new = next.fetch_add(1, Ordering::Relaxed);
                            let old = current.swap(new, Ordering::AcqRel);
                            domain.retire(Poison(Arc::clone(&values), old));
                            domain.collect();
                        }
                    })
                })
                .collect();
            let results: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            done.store(true, Ordering::Relaxed);
            results.into_iter().for_each(Result::unwrap);
        });
        domain.collect();
        assert_eq!(domain.pending(), 0);
    }

    #[test]
    fn stress_with_membarrier() {
        stress(&Domain::new());
    }

    #[test]
    fn stress_without_membarrier() {
        stress(&Domain::with_fence(None));
    }

    #[test]
    fn stress_with_membarrier_denied() {
        stress(&Domain::with_fence(Some(Membarrier::denied_later())));
    }

    /// Records its drop.
    struct Noted(&'static str, Arc<std::sync::Mutex<Vec<&'static str>>>);

    impl Drop for Noted {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    /// Retires another value when it is dropped.
    struct Chained(Domain, usize);

    impl Drop for Chained {
        fn drop(&mut self) {
            if let Some(left) = self.1.checked_sub(1) {
                self.0.retire(Self(self.0.clone(), left));
                self.0.collect();
            }
        }
    }

    #[test]
    fn values_that_retire_others_are_dropped_one_after_the_other() {
        let domain = Domain::new();
        let (other, length) = (domain.clone(), 100_000);
        let small = thread::Builder::new().stack_size(64 << 10);
        let dropped = small.spawn(move || {
            other.retire(Chained(other.clone(), length));
            other.collect()
        });
        assert_eq!(dropped.unwrap().join().unwrap(), 1);
        assert_eq!(domain.pending(), 0);
    }

    #[test]
    fn drops_wait_for_the_last_deferral() {
        let (domain, notes) = (Domain::new(), Arc::default());
        let noted = |name| Noted(name, Arc::clone(&notes));
        let all = || notes.lock().unwrap().clone();
        let outer = crate::defer_drops();
        {
            let _inner = crate::defer_drops();
            domain.retire(noted("deferred"));
            domain.retire_inert(noted("inert"), 1);
            assert_eq!((domain.collect(), domain.pending()), (2, 0));
            assert_eq!(all(), ["inert"]);
        }
        assert_eq!(all(), ["inert"]);
        let other = domain.clone();
        let there = noted("there");
        thread::spawn(move || {
            other.retire(there);
            other.collect();
        })
        .join()
        .unwrap();
        assert_eq!(all(), ["inert", "there"], "another thread defers nothing");
        drop(outer);
        assert_eq!(all(), ["inert", "there", "deferred"]);
        domain.retire(noted("at once"));
        domain.collect();
        assert_eq!(all().len(), 4);
    }
}
