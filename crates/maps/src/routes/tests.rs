//! The trie alone, with room and without, and in the model checker.

#[cfg(loom)]
mod model {
    use loom::thread;
    use std::sync::Arc;

    use super::super::{Prefix, Routes};
    use paceline_epoch::Domain;

    /// Slots of the prefixes of a test.
    const LONG: u32 = 7;
    const SHORT: u32 = 3;
    const OTHER: u32 = 5;
    const LONG_PREFIX: Prefix = Prefix { slot: LONG, length: 9 };
    const SHORT_PREFIX: Prefix = Prefix { slot: SHORT, length: 0 };

    /// A worker looks an address up while `change` takes its longer prefix away.
    fn look_up_during(lines: u64, change: fn(&Routes)) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        // A node has 256 entries.
        model.max_branches = 10_000;
        model.check(move || {
            let domain = Domain::new();
            let routes = Arc::new(Routes::with_lines(lines, domain.clone()).unwrap());
            routes.change(0, 0, &|_| Some(SHORT)).unwrap();
            routes.change(0, 9, &|_| Some(LONG)).unwrap();
            let mut reader = domain.reader();
            let worker = {
                let routes = Arc::clone(&routes);
                thread::spawn(move || {
                    let _burst = reader.pin();
                    let found = routes.find(0).unwrap();
                    assert!(found == LONG || found == SHORT, "{found}");
                    assert_eq!(routes.find(1 << 24), Some(SHORT), "another address of the node");
                })
            };
            change(&routes);
            worker.join().unwrap();
            assert_eq!(routes.find(0), Some(SHORT));
        });
    }

    #[test]
    fn a_look_up_finds_the_old_prefix_or_the_new() {
        // Room for the node there is and the one that replaces it: the next one is written where the first was, if no
        // worker can be looking at that.
        look_up_during(2, |routes| {
            routes.change(1 << 23, 9, &|_| Some(OTHER)).unwrap();
            let _ = routes.change(7 << 23, 9, &|_| Some(OTHER));
            routes.replace(0, LONG_PREFIX, Some(SHORT_PREFIX));
        });
    }

    /// An address always has a prefix while one of both lengths takes the place of the other.
    fn look_up_while(change: fn(&Routes)) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let domain = Domain::new();
            let routes = Arc::new(Routes::with_lines(2, domain.clone()).unwrap());
            routes.change(0, 0, &|_| Some(SHORT)).unwrap();
            let mut reader = domain.reader();
            let worker = {
                let routes = Arc::clone(&routes);
                thread::spawn(move || {
                    let _burst = reader.pin();
                    assert!(matches!(routes.find(0), Some(LONG | SHORT)));
                })
            };
            change(&routes);
            worker.join().unwrap();
        });
    }

    #[test]
    fn a_long_prefix_takes_the_place_of_a_short_one() {
        look_up_while(|routes| {
            routes.change(0, 2, &|_| Some(LONG)).unwrap();
            routes.replace(0, SHORT_PREFIX, None);
        });
    }

    #[test]
    fn a_short_and_a_long_prefix_change_places_and_back() {
        look_up_while(|routes| {
            routes.change(0, 2, &|_| Some(LONG)).unwrap();
            routes.replace(0, SHORT_PREFIX, None);
            routes.change(0, 0, &|_| Some(SHORT)).unwrap();
            routes.replace(0, Prefix { slot: LONG, length: 2 }, Some(SHORT_PREFIX));
        });
    }

    #[test]
    fn a_removal_without_room_is_seen_or_not() {
        look_up_during(1, |routes| routes.replace(0, LONG_PREFIX, Some(SHORT_PREFIX)));
    }
}

#[cfg(not(loom))]
mod threads {
    use paceline_epoch::Domain;

    use super::super::{Prefix, Routes, positions};

    fn of(slot: u32, length: u32) -> Prefix {
        Prefix { slot, length }
    }

    #[test]
    fn positions_of_a_prefix() {
        assert_eq!(positions(0x0a00_0000, 8, 0, 16), 0x0a00..0x0b00);
        assert_eq!(positions(0, 0, 0, 16), 0..65536);
        assert_eq!(positions(0x0a0b_0c00, 22, 16, 8), 12..16);
        assert_eq!(positions(0x0a0b_0c0d, 32, 24, 8), 13..14);
        assert_eq!(positions(0x0a0b_0c0d, 24, 24, 8), 0..256);
    }

    /// Lines that changes leave behind are used again: as many changes as there are lines, many times over.
    #[test]
    fn lines_are_used_again() {
        let routes = Routes::with_lines(256, Domain::new()).unwrap();
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..5_000 {
            let address = 0x0a00_0000 | rng.u32(..1 << 20) & 0xf_0fff;
            routes.change(address, 32, &|_| Some(7)).unwrap();
            assert_eq!(routes.find(address), Some(7));
            routes.replace(address, of(7, 32), None);
            assert_eq!(routes.find(address), None);
        }
        let mut unused = routes.lock();
        unused.close();
        unused.collect();
        assert_eq!(unused.free.free(), 256, "none was lost");
    }

    /// A worker stalls until there is no line left: additions are refused, removals are not; and when it goes on, nothing
    /// stays behind.
    #[test]
    fn a_removal_needs_no_room() {
        let domain = Domain::new();
        let routes = Routes::with_lines(400, domain.clone()).unwrap();
        routes.change(0x0a00_0000, 9, &|_| Some(1)).unwrap();
        let prefix = |number: u32| 0x0a00_0000 | number << 8;
        let added = |number: u32| routes.change(prefix(number), 24, &|_| Some(100 + number)).is_ok();
        (0..100).for_each(|number| assert!(added(2 * number)));
        let mut reader = domain.reader();
        let burst = reader.pin();
        let refused = (0..1000).filter(|number| !added(2000 + 2 * number)).count();
        assert!(refused > 0);
        assert!(!added(9000), "and none is made room for");
        for number in (0..100).step_by(2) {
            routes.replace(prefix(2 * number), of(100 + 2 * number, 24), Some(of(1, 9)));
            assert_eq!(routes.find(prefix(2 * number)), Some(1));
            assert_eq!(routes.find(prefix(2 * number + 2)), Some(102 + 2 * number), "its neighbor stays");
        }
        // A prefix over many entries.
        let remove = |number: u32| routes.replace(prefix(number), of(100 + number, 24), Some(of(1, 9)));
        (0..1000).for_each(|number| remove(2000 + 2 * number));
        (1..100).step_by(2).for_each(|number| remove(2 * number));
        routes.replace(0x0a00_0000, of(1, 9), None);
        assert!((0..1 << 16).all(|number| routes.find(prefix(number)).is_none()));
        drop(burst);
        assert!((0..100).all(|number| added(2 * number)));
        (0..100).for_each(|number| routes.replace(prefix(2 * number), of(100 + 2 * number, 24), None));
        let mut unused = routes.lock();
        unused.close();
        unused.collect();
        routes.compact(&mut unused);
        unused.collect();
        assert_eq!(unused.free.free(), 400, "none was lost");
    }

    /// Short nodes in every second place, and then a long one: others move to make room.
    #[test]
    fn nodes_move_where_free_lines_are_too_short() {
        let routes = Routes::with_lines(128, Domain::new()).unwrap();
        let sparse = |number: u32| number << 16 | 0x100;
        let add = |bits, length, slot| routes.change(bits, length, &|_| Some(slot));
        (0..128).for_each(|number| add(sparse(number), 24, number).unwrap());
        {
            let mut unused = routes.lock();
            unused.close();
            unused.collect();
            assert_eq!(unused.free.free(), 0);
        }
        (0..128).step_by(2).for_each(|number| routes.replace(sparse(number), of(number, 24), None));
        for number in 0..100 {
            add(0x0a00_0000 | number << 9, 24, 1000 + number).unwrap();
        }
        assert!((1..128).step_by(2).all(|number| routes.find(sparse(number)) == Some(number)));
        assert!((0..128).step_by(2).all(|number| routes.find(sparse(number)).is_none()));
        assert!((0..100).all(|number| routes.find(0x0a00_0000 | number << 9) == Some(1000 + number)));
    }

    /// Random prefixes in a trie that is short of lines, against a list of them, with stalls in between.
    #[test]
    fn a_trie_short_of_lines_agrees_with_a_list() {
        let mut rng = fastrand::Rng::with_seed(7);
        let (domain, mut refused) = (Domain::new(), 0);
        let routes = Routes::with_lines(200, domain.clone()).unwrap();
        let mut prefixes: Vec<(u32, u32, u32)> = Vec::new();
        let covers =
            |bits: u32, length: u32, address: u32| length == 0 || (bits ^ address) >> (32 - length) == 0;
        let longest = |prefixes: &[(u32, u32, u32)], address: u32, below: u32| {
            let fits =
                prefixes.iter().filter(|&&(bits, length, _)| length < below && covers(bits, length, address));
            fits.max_by_key(|(_, length, _)| *length).map(|&(_, length, slot)| of(slot, length))
        };
        let mut reader = domain.reader();
        for round in 0..200_u32 {
            let burst = (round % 3 == 0).then(|| reader.pin());
            for number in 0..60 {
                let length = rng.u32(7..=32);
                let address = 0x0a00_0000 | rng.u32(..1 << 10) << 14 | rng.u32(..4) << 7 | rng.u32(..4);
                let bits = address & u32::MAX << (32 - length);
                let known = prefixes.iter().position(|&(other, len, _)| (other, len) == (bits, length));
                match known {
                    None => {
                        let slot = round * 100 + number;
                        let length_of =
                            |slot| prefixes.iter().find(|(.., other)| *other == slot).map_or(0, |p| p.1);
                        let added = routes.change(bits, length, &|found| match found {
                            Some(other) if length_of(other) > length => Some(other),
                            _ => Some(slot),
                        });
                        match added {
                            Ok(()) => prefixes.push((bits, length, slot)),
                            Err(_) => refused += 1,
                        }
                    }
                    Some(index) => {
                        let (bits, length, slot) = prefixes.swap_remove(index);
                        routes.replace(bits, of(slot, length), longest(&prefixes, bits, length));
                    }
                }
                if prefixes.len() > 40 {
                    let (bits, length, slot) = prefixes.swap_remove(rng.usize(..prefixes.len()));
                    routes.replace(bits, of(slot, length), longest(&prefixes, bits, length));
                }
                let looked_up = 0x0a00_0000 | rng.u32(..1 << 10) << 14 | rng.u32(..4) << 7 | rng.u32(..4);
                let expected = longest(&prefixes, looked_up, 33).map(|prefix| prefix.slot);
                assert_eq!(routes.find(looked_up), expected, "{looked_up:#x}");
            }
            drop(burst);
        }
        assert!(refused > 0);
        for (bits, length, slot) in std::mem::take(&mut prefixes) {
            routes.replace(bits, of(slot, length), None);
        }
        let mut unused = routes.lock();
        unused.close();
        unused.collect();
        routes.compact(&mut unused);
        unused.collect();
        assert_eq!(unused.free.free(), 200, "none was lost");
    }
}
