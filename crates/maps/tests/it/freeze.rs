//! A frozen map is what it was when it was frozen, whoever writes to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use paceline_maps::{Limits, Map};
use paceline_spec::{Errno, InitialValue, MapFlags, MapKind, MapSpec};

const KEY: [u8; 4] = [0; 4];

fn map(frozen: bool) -> Arc<Map> {
    let flags = MapFlags::RDONLY_PROG;
    let spec = MapSpec { flags, frozen, ..MapSpec::new("m", MapKind::Array, 4, 8, 1) };
    Map::create(&spec, &Limits { cpus: 1, memory: 1 << 20 }).unwrap()
}

fn contents(value: u8) -> [(Vec<u8>, InitialValue); 1] {
    [(KEY.into(), InitialValue::Bytes(vec![value; 8]))]
}

#[test]
fn nothing_of_user_space_writes_to_it() {
    for frozen in [false, true] {
        let map = map(frozen);
        map.fill(&contents(1)).unwrap();
        assert_eq!(map.is_frozen(), frozen);
        if !frozen {
            // Initial values come as often as they are given.
            map.fill(&contents(1)).unwrap();
            map.freeze().unwrap();
        }
        assert_eq!(map.fill(&contents(2)).map_err(|error| error.errno), Err(Errno::EPERM));
        assert_eq!(map.insert(&KEY, &[2; 8]), Err(Errno::EPERM));
        assert!(map.update_batch([(KEY, [2; 8])], 0).is_err());
        assert_eq!(
            map.for_programs().update(&KEY, &[2; 8], 0, 0),
            Err(Errno::EPERM),
            "programs may only read"
        );
        assert_eq!(map.freeze(), Err(Errno::EPERM));
        assert_eq!(map.lookup(&KEY).unwrap(), [1; 8]);
    }
}

#[test]
fn what_is_written_when_it_is_frozen_is_in_it_or_refused() {
    for _ in 0..300 {
        let (map, stop) = (map(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let write = |value: u8| {
                let (map, stop) = (&map, &stop);
                scope.spawn(move || {
                    let mut last = Ok(());
                    while !stop.load(Ordering::Relaxed) && last.is_ok() {
                        last = match value {
                            1 => map.insert(&KEY, &[value; 8]),
                            _ => map.fill(&contents(value)).map_err(|error| error.errno),
                        };
                    }
                    assert!(last.is_ok() || last == Err(Errno::EPERM), "{last:?}");
                })
            };
            let writers = [write(1), write(2)];
            // Somebody may be writing; the kernel does not wait for them either.
            while let Err(error) = map.freeze() {
                assert_eq!(error, Errno::EBUSY);
                thread::yield_now();
            }
            let first = map.lookup(&KEY).unwrap();
            for _ in 0..100 {
                assert_eq!(map.lookup(&KEY).unwrap(), first);
            }
            stop.store(true, Ordering::Relaxed);
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            assert_eq!(map.lookup(&KEY).unwrap(), first);
        });
    }
}
