//! The protocol alone, and in the model checker: `RUSTFLAGS="--cfg loom" cargo test -p paceline-maps --release --lib index`.

/// A hash whose home is a bucket of so many.
fn hash_at(bucket: u64, buckets: u64, tag: u8) -> u64 {
    ((bucket << 32).div_ceil(buckets) << 32) | u64::from(tag) << 24
}

#[cfg(not(loom))]
mod alone {
    use super::super::{FILL, Index, POSITIONS};
    use super::hash_at;

    #[test]
    fn keys_of_one_home_and_tag_are_told_apart() {
        let entries = 4 * FILL as u32;
        let index = Index::new(entries).unwrap();
        // All of a full table want the last bucket: they pass it, and begin again at the first.
        let hash = hash_at(3, 4, 9);
        assert_eq!(index.home(hash), 3);
        for slot in 0..entries {
            assert_eq!(index.find(hash, |found| (found == slot).then_some(found)), None);
            index.insert(hash, slot);
        }
        let other = hash_at(3, 4, 8);
        assert_eq!(index.find(other, Some), None);
        for slot in 0..entries {
            assert_eq!(index.find(hash, |found| (found == slot).then_some(found)), Some(slot));
        }
        let mut seen: Vec<u32> = Vec::new();
        let mut from = 0;
        while let Some((place, slot)) = index.next(from, usize::MAX) {
            seen.push(slot);
            from = place + 1;
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..entries));
        for slot in 0..entries {
            let (place, _) = index.locate(hash, |found| found == slot).unwrap();
            if slot % 2 == 0 {
                index.replace(place, slot + entries);
                assert_eq!(index.locate(hash, |found| found == slot + entries).unwrap().0, place);
            }
            index.remove(hash, place);
        }
        assert_eq!(index.next(0, usize::MAX), None);
        let untouched = |line: &super::super::Bucket| {
            line.tags.iter().all(|tags| tags.load(std::sync::atomic::Ordering::Relaxed) == 0)
        };
        assert!(index.buckets.iter().all(untouched), "nothing is counted any more");
        assert_eq!(index.places(), 4 * POSITIONS);
    }

    #[test]
    fn a_missing_tag_is_never_a_hit() {
        // Every tag, against all others.
        let index = Index::new(1).unwrap();
        for tag in 1..=255 {
            index.insert(hash_at(0, 1, tag), u32::from(tag));
            for other in 0..=255 {
                let found = index.find(hash_at(0, 1, other), |slot| (slot == u32::from(tag)).then_some(slot));
                // A tag of 0 counts as 1.
                assert_eq!(found.is_some(), other.max(1) == tag, "{tag} {other}");
            }
            let (place, _) = index.locate(hash_at(0, 1, tag), |_| true).unwrap();
            index.remove(hash_at(0, 1, tag), place);
        }
    }
}

#[cfg(loom)]
mod model {
    use std::sync::Arc;

    use loom::sync::Mutex;
    use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use loom::thread;
    use paceline_epoch::Domain;

    use super::super::{FILL, Index, POSITIONS};
    use super::hash_at;

    /// Slots with one word of key and one of value, and an index of them.
    struct Table {
        index: Index,
        keys: Vec<AtomicU64>,
        values: Vec<AtomicU64>,
    }

    impl Table {
        fn new(entries: u32, slots: usize) -> Arc<Self> {
            let words = || (0..slots).map(|_| AtomicU64::new(0)).collect();
            Arc::new(Self { index: Index::new(entries).unwrap(), keys: words(), values: words() })
        }

        fn has(&self, slot: u32, key: u64) -> bool {
            self.keys.get(slot as usize).is_some_and(|found| found.load(Relaxed) == key)
        }

        fn write(&self, slot: u32, key: u64, value: u64) {
            self.keys[slot as usize].store(key, Relaxed);
            self.values[slot as usize].store(value, Relaxed);
        }

        fn find(&self, hash: u64, key: u64) -> Option<u32> {
            self.index.find(hash, |slot| self.has(slot, key).then_some(slot))
        }
    }

    fn check(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    /// A key is replaced, its old slot given to another key once that may be: who looks finds a value of its key.
    #[test]
    fn a_key_that_stays_is_always_found_with_a_value_of_its_own() {
        check(|| {
            let (table, domain) = (Table::new(2, 3), Domain::new());
            let hash = |key| hash_at(0, 1, key as u8);
            table.write(0, 5, 50);
            table.index.insert(hash(5), 0);
            let mut reader = domain.reader();
            let worker = {
                let table = Arc::clone(&table);
                thread::spawn(move || {
                    let _burst = reader.pin();
                    let slot = table.find(hash(5), 5).expect("it is there all the time");
                    let value = table.values[slot as usize].load(Relaxed);
                    assert!([50, 51].contains(&value), "{value}");
                    assert_eq!(table.values[slot as usize].load(Relaxed), value, "reused under a reader");
                })
            };
            table.write(1, 5, 51);
            let (place, old) = table.index.locate(hash(5), |slot| table.has(slot, 5)).unwrap();
            table.index.replace(place, 1);
            if domain.has_passed(domain.advance()) {
                table.write(old, 6, 60);
                table.index.insert(hash(6), old);
            }
            worker.join().unwrap();
        });
    }

    /// The same position, and the same tag, go to another key.
    #[test]
    fn a_position_that_is_given_away_misleads_nobody() {
        check(|| {
            let table = Table::new(2, 2);
            let hash = hash_at(0, 1, 7);
            table.write(0, 5, 50);
            table.write(1, 6, 60);
            table.index.insert(hash, 0);
            let worker = {
                let table = Arc::clone(&table);
                thread::spawn(move || {
                    for key in [5, 6] {
                        if let Some(slot) = table.find(hash, key) {
                            assert_eq!(table.values[slot as usize].load(Relaxed), key * 10);
                        }
                    }
                })
            };
            let (place, _) = table.index.locate(hash, |slot| slot == 0).unwrap();
            table.index.remove(hash, place);
            table.index.insert(hash, 1);
            worker.join().unwrap();
            assert_eq!((table.find(hash, 5), table.find(hash, 6)), (None, Some(1)));
        });
    }

    /// Two threads with the locks of different keys want the last position of a bucket; one of them passes it.
    #[test]
    fn two_keys_want_one_position() {
        check(|| {
            let entries = 2 * FILL as u32;
            let table = Table::new(entries, POSITIONS + 1);
            let hash = |key: u32| hash_at(0, 2, key as u8 + 1);
            for slot in 0..POSITIONS as u32 - 1 {
                table.index.insert(hash(slot), slot);
            }
            let last = POSITIONS as u32 - 1;
            let other = {
                let table = Arc::clone(&table);
                thread::spawn(move || {
                    table.index.insert(hash(last), last);
                    assert_eq!(
                        table.index.find(hash(last), |slot| (slot == last).then_some(slot)),
                        Some(last)
                    );
                })
            };
            table.index.insert(hash(last + 1), last + 1);
            assert_eq!(
                table.index.find(hash(last + 1), |slot| (slot == last + 1).then_some(slot)),
                Some(last + 1)
            );
            other.join().unwrap();
            for slot in 0..=last + 1 {
                assert_eq!(
                    table.index.find(hash(slot), |found| (found == slot).then_some(found)),
                    Some(slot)
                );
            }
        });
    }

    /// One thread evicts what another removes, under the lock of their stripe.
    #[test]
    fn an_element_goes_once() {
        check(|| {
            let table = Table::new(1, 1);
            let stripe = Arc::new(Mutex::new(0));
            let hash = hash_at(0, 1, 7);
            table.index.insert(hash, 0);
            let remove = move |table: &Table, stripe: &Mutex<u32>| {
                let mut gone = stripe.lock().unwrap();
                if let Some((place, _)) = table.index.locate(hash, |slot| slot == 0) {
                    table.index.remove(hash, place);
                    *gone += 1;
                }
            };
            let other = {
                let (table, stripe) = (Arc::clone(&table), Arc::clone(&stripe));
                thread::spawn(move || remove(&table, &stripe))
            };
            remove(&table, &stripe);
            other.join().unwrap();
            assert_eq!(*stripe.lock().unwrap(), 1);
            assert_eq!(table.index.next(0, usize::MAX), None);
        });
    }
}
