//! Reference counts, and in the model checker reference counts while workers read:
//! `RUSTFLAGS="--cfg loom" cargo test -p paceline-epoch --release --lib slots`.

#[cfg(loom)]
mod model {
    use loom::sync::atomic::{AtomicBool, Ordering};
    use loom::thread;
    use std::sync::Arc;

    use crate::slots::NoSlot;
    use crate::{Domain, Slots};

    /// True until the last slot and image that hold it are dropped.
    struct Program(AtomicBool);

    /// Shared by a slot and the images built from it.
    #[derive(Clone)]
    struct Held {
        _owner: Arc<Owner>,
    }

    struct Owner(Arc<Program>);

    impl Drop for Owner {
        fn drop(&mut self) {
            self.0.0.store(false, Ordering::Relaxed);
        }
    }

    type Sites = Slots<Held, Vec<(u64, Held)>>;

    /// Two users add and release the same program while a worker calls the one it finds.
    #[test]
    fn a_worker_finds_nothing_that_is_gone() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let domain = Domain::new();
            let sites: Arc<Sites> = Arc::new(Slots::new(Vec::new(), domain.clone()));
            let program = Arc::new(Program(AtomicBool::new(true)));
            let owner = Arc::new(Owner(Arc::clone(&program)));
            let mut reader = domain.reader();
            let worker = {
                let (sites, program) = (Arc::clone(&sites), Arc::clone(&program));
                thread::spawn(move || {
                    let pin = reader.pin();
                    if let Some((key, _)) = sites.image(&pin).first() {
                        assert_eq!(*key, 7);
                        // The lookup in the image; then the call.
                        assert!(program.0.load(Ordering::Relaxed));
                        assert!(program.0.load(Ordering::Relaxed));
                    }
                })
            };
            let user = |sites: &Sites, held: Held| {
                let build = |values| Ok::<_, NoSlot>(values);
                sites.update(None, Some((7, held)), build).unwrap();
                sites.update(Some(7), None, build).unwrap();
            };
            let other = {
                let (sites, held) = (Arc::clone(&sites), Held { _owner: Arc::clone(&owner) });
                thread::spawn(move || user(&sites, held))
            };
            user(&sites, Held { _owner: owner });
            domain.collect();
            worker.join().unwrap();
            other.join().unwrap();
            domain.collect();
            assert!(sites.is_empty() && !program.0.load(Ordering::Relaxed), "the last user takes it along");
        });
    }
}

#[cfg(not(loom))]
mod threads {
    use std::collections::BTreeMap;

    use crate::slots::NoSlot;
    use crate::{Domain, Slots};

    type Numbers = Slots<u32, Vec<(u64, u32)>>;

    fn slots() -> Numbers {
        Slots::new(Vec::new(), Domain::new())
    }

    fn update(slots: &Numbers, old: Option<u64>, new: Option<(u64, u32)>) -> Result<bool, NoSlot> {
        slots.update(old, new, Ok)
    }

    fn image(slots: &Numbers) -> Vec<(u64, u32)> {
        let mut reader = slots.domain().reader();
        let pin = reader.pin();
        slots.image(&pin).clone()
    }

    #[test]
    fn users_of_a_key_share_its_slot() {
        let slots = slots();
        assert_eq!(update(&slots, None, Some((7, 70))), Ok(true));
        assert_eq!(update(&slots, None, Some((7, 71))), Ok(false), "the slot is there");
        assert_eq!(update(&slots, None, Some((3, 30))), Ok(true));
        assert_eq!(image(&slots), [(3, 30), (7, 70)]);
        assert_eq!(update(&slots, Some(7), Some((7, 72))), Ok(false), "one goes and one comes");
        assert_eq!(update(&slots, Some(7), None), Ok(false), "another user is left");
        assert_eq!(update(&slots, Some(7), Some((3, 31))), Ok(true));
        assert_eq!(image(&slots), [(3, 30)]);
        assert_eq!(update(&slots, Some(7), None), Err(NoSlot(7)));
        let mut found = Vec::new();
        slots.each(|key, &value, users| found.push((key, value, users)));
        assert_eq!(found, [(3, 30, 2)]);
    }

    #[test]
    fn the_only_user_replaces_its_value() {
        let slots = slots();
        update(&slots, None, Some((7, 70))).unwrap();
        assert_eq!(update(&slots, Some(7), Some((7, 71))), Ok(true));
        assert_eq!(image(&slots), [(7, 71)]);
    }

    #[test]
    fn a_slot_can_be_set() {
        let slots = slots();
        let set = |key, value| slots.set(key, value, Ok::<_, NoSlot>).unwrap();
        assert!(set(7, Some(70)) && set(7, Some(71)) && set(3, Some(30)));
        assert_eq!(image(&slots), [(3, 30), (7, 71)]);
        assert!(set(7, None) && !set(7, None));
        assert_eq!(image(&slots), [(3, 30)]);
    }

    #[test]
    fn a_failure_changes_nothing() {
        let slots = slots();
        update(&slots, None, Some((7, 70))).unwrap();
        update(&slots, None, Some((8, 80))).unwrap();
        update(&slots, None, Some((8, 80))).unwrap();
        let changes =
            [(Some(7), None), (None, Some((9, 90))), (Some(7), Some((8, 81))), (Some(8), Some((9, 90)))];
        for (old, new) in changes.into_iter().chain([(Some(7), Some((7, 71)))]) {
            let result = slots.update(old, new, |_| Err(NoSlot(0)));
            assert_eq!(result, Err(NoSlot(0)), "{old:?} {new:?}");
            let mut found = BTreeMap::new();
            slots.each(|key, &value, users| found.extend([(key, (value, users))]));
            assert_eq!(found, BTreeMap::from([(7, (70, 1)), (8, (80, 2))]), "{old:?} {new:?}");
            assert_eq!(image(&slots), [(7, 70), (8, 80)]);
        }
    }

    #[test]
    #[should_panic(expected = "another domain")]
    fn workers_of_other_domains_are_turned_away() {
        let mut reader = Domain::new().reader();
        let pin = reader.pin();
        slots().image(&pin);
    }
}
