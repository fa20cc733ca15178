//! A worker that stays in its burst. Alone in its process, whose other tests would feel it.

mod common;

use paceline_epoch::Domain;
use paceline_maps::{Limits, Map};
use paceline_spec::{Errno, MapFlags, MapKind};

use common::spec;

const UPDATES: usize = 50_000;

/// It keeps what others replace from being used again. They go on for as long as there is room, and then are told at once; when it is
/// done, all of the room is there again.
#[test]
fn a_worker_that_is_stuck_in_its_burst_stops_no_other() {
    let key = |number: u32| (number % 1000).to_ne_bytes();
    for kind in [MapKind::Hash, MapKind::LruHash] {
        let limits = Limits { cpus: 2, memory: 1 << 30 };
        let map = Map::create(&spec(kind, 4, 64, 1000, MapFlags::default()), &limits).unwrap();
        let mut stuck = Domain::global().reader();
        let mut update_until_refused = || {
            let burst = stuck.pin();
            let results = (0..).map(|number| map.update(&key(number), &[1; 64], 0, 0));
            let updates = results.take_while(|result| *result != Err(Errno::ENOMEM)).count();
            drop(burst);
            updates
        };
        let first = update_until_refused();
        assert!(first > UPDATES, "{kind}: {first}");
        let second = update_until_refused();
        assert!(second > UPDATES, "{kind}: {second} after {first}");
    }
}
